"""mini-swe-agent trajectories: one fenced command an answer, the result as a user message (section 4, 26)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from chats.domain.formats.documents import Document, Head
from chats.domain.formats.drafts import Call, ChatDraft, Reading
from chats.domain.formats.foreign_nudges import foreign_nudge
from chats.domain.formats.marks import is_mini_swe_run
from chats.domain.formats.openai_chat import read_calls
from chats.domain.formats.parts import plain_text
from chats.domain.formats.reading_rows import Item, read_rows, read_whole, share
from chats.domain.formats.text_protocols import fenced_command
from chats.domain.formats.values import at, label, mapping, mappings, moment, scalars, text, whole

FORMAT: Final = "mini-swe-agent"
_RETURN_CODE: Final = re.compile(r"<returncode>\s*(-?\d+)\s*</returncode>")


def recognise(head: Head) -> float:
    if head.rows and all(isinstance(r, dict) and "role" in r for r in head.rows):
        return 1.0 if is_mini_swe_run(head.rows) else 0.0
    return share(head, lambda r: str(r.get("trajectory_format", "")).startswith("mini-swe-agent") or _is_old(r))


def _is_old(row: dict[str, Any]) -> bool:
    """Older files have no mark: messages with commands, beside `info`."""
    return isinstance(row.get("info"), dict) and is_mini_swe_run(mappings(row.get("messages")))


def read(document: Document, reading: Reading) -> Iterator[Item]:
    rows = document.head.rows
    if rows and all(isinstance(r, dict) and "role" in r for r in rows):
        return read_whole(document, reading, lambda messages: [_chat({}, reading.objects(messages), reading)])
    return read_rows(
        document.rows(),
        reading,
        lambda row: [_chat(mapping(row), reading.objects(mapping(row).get("messages")), reading)],
    )


def _chat(row: dict[str, Any], messages: list[dict[str, Any]], reading: Reading) -> Item:
    draft = ChatDraft(reading, FORMAT)
    info = mapping(row.get("info"))
    draft.external_id = label(row.get("instance_id"))
    draft.identity_by_content = True
    draft.metadata = scalars(row) | scalars(info)
    if model := text(at(info, "config", "model", "model_name")):
        draft.metadata["model"] = model
    limit = whole(at(info, "config", "agent", "step_limit"))
    draft.step_budget = limit or None
    waiting: list[str] = []
    for i, message in enumerate(messages):
        waiting = _add(draft, message, waiting, f"messages/{i}")
    return draft.record()


def _add(draft: ChatDraft, message: dict[str, Any], waiting: list[str], ref: str) -> list[str]:
    """Add one message; gives the calls that wait for a result."""
    role = label(message.get("role")) or "user"
    content = plain_text(message.get("content"))
    extra = mapping(message.get("extra"))
    created = moment(extra.get("timestamp")) or moment(message.get("timestamp"))
    if role == "exit":
        draft.metadata["exit"] = content[:500]
        draft.reading.report.note_skipped("exit_message", draft.reading.place)
        return waiting
    if role == "assistant":
        calls = read_calls(message, draft.reading.cleaner)
        found = fenced_command(content) if not calls else None
        if found is not None:
            content, calls = found[0], [Call(f"call-{len(draft)}-0", "bash", {"command": found[1]})]
        answer = mapping(extra.get("response"))
        index = draft.add(
            "assistant",
            content,
            calls=calls,
            reasoning=text(message.get("reasoning_content")),
            finish=text(at(answer, "choices", 0, "finish_reason")),
            model=text(answer.get("model")),
            created_at=created,
            ref=ref,
        )
        return [c.id for c in draft.details[index].tool_calls]
    call_id = label(message.get("tool_call_id"))
    if role == "tool" or (role == "user" and waiting and foreign_nudge(content) is None):
        code = whole(extra.get("returncode"))
        if code is None and (found_code := _RETURN_CODE.search(content[:200])) is not None:
            code = int(found_code[1])
        used = call_id or next(iter(waiting), None)
        draft.add("tool", content, tool_call_id=used, exit_code=code, created_at=created, ref=ref)
        return [w for w in waiting if w != used]
    draft.add(role, content, created_at=created, ref=ref)
    return []
