"""SWE-agent trajectories: actions become calls and the observations after them results (section 4, 18)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from chats.domain.formats.documents import Document, Head
from chats.domain.formats.drafts import Call, ChatDraft, Reading
from chats.domain.formats.foreign_nudges import foreign_nudge
from chats.domain.formats.openai_chat import MESSAGE_KEYS, read_calls
from chats.domain.formats.parts import plain_text
from chats.domain.formats.problems import ReadingProblem
from chats.domain.formats.reading_rows import Item, read_rows, share
from chats.domain.formats.values import label, mapping, mappings, scalars, sequence, text

FORMAT: Final = "swe-agent"
COMMANDS: Final = frozenset(
    {
        "open",
        "goto",
        "scroll_up",
        "scroll_down",
        "create",
        "edit",
        "insert",
        "search_dir",
        "search_file",
        "find_file",
        "submit",
        "str_replace_editor",
        "exit_forfeit",
    }
)
NOT_APPLIED: Final = "Your proposed edit has introduced new syntax error(s)"
_OBSERVATION: Final = "OBSERVATION:"
_KEYS: Final = MESSAGE_KEYS | frozenset(
    {
        "agent",
        "action",
        "thought",
        "message_type",
        "is_demo",
        "tool_call_ids",
        "tags",
        "thinking_blocks",
        "cache_control",
    }
)


def recognise(head: Head) -> float:
    return share(head, lambda row: isinstance(row.get("trajectory"), list) and isinstance(row.get("history"), list))


def read(document: Document, reading: Reading) -> Iterator[Item]:
    return read_rows(document.rows(), reading, lambda row: [_chat(mapping(row), reading)])


def _chat(row: dict[str, Any], reading: Reading) -> Item:
    history = row.get("history")
    if not isinstance(history, list):
        raise ReadingProblem("wrong_type", path="history", expected="list", found=type(history).__name__)
    info = mapping(row.get("info"))
    draft = ChatDraft(reading, FORMAT)
    draft.external_id = label(row.get("instance_id"))
    draft.identity_by_content = True
    draft.metadata = scalars(row) | scalars(info)
    known = reading.objects(history)
    entries = [m for m in known if not m.get("is_demo")]
    if len(entries) < len(known):
        reading.report.note_skipped("demonstration", reading.place, len(known) - len(entries))
    waiting: list[str] = []
    for entry in entries:
        reading.report.note_unknown_fields(entry, _KEYS, "history[].")
        waiting = _add(draft, entry, waiting)
    return draft.record()


def _add(draft: ChatDraft, entry: dict[str, Any], waiting: list[str]) -> list[str]:
    """Add one entry of the history; gives the ids of the calls that wait for a result."""
    role = label(entry.get("role")) or "user"
    content = plain_text(entry.get("content"))
    ref = f"history/{len(draft)}"
    if role == "assistant":
        return _add_answer(draft, entry, content, ref)
    if role == "tool":
        ids = [i for i in sequence(entry.get("tool_call_ids")) if isinstance(i, str)]
        known: list[str | None] = [*ids] or [label(entry.get("tool_call_id")) or next(iter(waiting), None)]
        for call_id in known:
            _add_result(draft, content, call_id, ref)
        return []
    if role == "user" and waiting and foreign_nudge(content) is None:
        _add_result(draft, content, waiting[0], ref)
        return []
    draft.add_parts(role, entry.get("content"), ref=ref)
    return []


def _add_answer(draft: ChatDraft, entry: dict[str, Any], content: str, ref: str) -> list[str]:
    calls = read_calls(entry, draft.reading.cleaner)
    action = text(entry.get("action"))
    if not calls and action is not None and action.strip():
        calls = [Call(f"call-{len(draft)}-0", command_name(action), {"command": action})]
        thought = entry.get("thought")
        content = thought if isinstance(thought, str) else content
    reasoning = "\n".join(t for b in mappings(entry.get("thinking_blocks")) if (t := text(b.get("thinking"))))
    index = draft.add("assistant", content, calls=calls, reasoning=reasoning or None, ref=ref)
    return [c.id for c in draft.details[index].tool_calls]


def _add_result(draft: ChatDraft, content: str, call_id: str | None, ref: str) -> None:
    told = content.removeprefix(_OBSERVATION).lstrip()
    status: Any = "not_run" if told.startswith(NOT_APPLIED) else None
    draft.add("tool", content, tool_call_id=call_id, status=status, ref=ref)


def command_name(action: str) -> str:
    """The action's first word if it is a command of the agent, else `bash`."""
    words = action.split(maxsplit=1)
    return words[0] if words and words[0] in COMMANDS else "bash"
