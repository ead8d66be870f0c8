"""tau-bench results: runs with `traj` in OpenAI form, and few-shot rows of display text (section 4, 17)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from chats.domain.formats.documents import Document, Head
from chats.domain.formats.drafts import Call, ChatDraft, Reading
from chats.domain.formats.openai_chat import add_message
from chats.domain.formats.problems import Problem, ReadingProblem
from chats.domain.formats.reading_rows import Item, read_rows, share
from chats.domain.formats.values import label, mapping, scalars, text

FORMAT: Final = "tau-bench"
_STARTS: Final = re.compile(r"^(user|assistant|tool): ", re.MULTILINE)
CONTROL_MARKS: Final = re.compile(r"###(?:STOP|TRANSFER|OUT-OF-SCOPE)###")


def recognise(head: Head) -> float:
    """Runs with `traj`, alone or under `results`, or rows whose only key is `messages_display`."""
    if head.top is not None and isinstance(head.top.get("results"), list):
        runs = head.top["results"]
        return sum("traj" in mapping(r) for r in runs) / len(runs) if runs else 0.0
    return share(head, lambda row: _is_run(row) or row.keys() == {"messages_display"})


def _is_run(row: dict[str, Any]) -> bool:
    return isinstance(row.get("traj"), list) and bool(row.keys() & {"reward", "task_id", "info", "trial"})


def read(document: Document, reading: Reading) -> Iterator[Item]:
    nested = document.head.top is not None and "results" in document.head.top
    rows = document.items("results") if nested else document.rows()
    yield from read_rows(rows, reading, lambda row: _convert(row, reading))


def _convert(row: Any, reading: Reading) -> Iterator[Item]:
    run = mapping(row)
    if "messages_display" in run:
        yield _display_chat(run["messages_display"], reading)
        return
    messages = run.get("traj")
    if not isinstance(messages, list):
        raise ReadingProblem("wrong_type", path="traj", expected="list", found=type(messages).__name__)
    info = mapping(run.get("info"))
    if not messages:
        error = text(info.get("error"))
        if error is None:
            raise ReadingProblem("no_messages")
        yield Problem("failed_run", reading.place, {"error": error[:200]})
        return
    draft = ChatDraft(reading, FORMAT)
    draft.external_id = label(run.get("task_id"))
    draft.identity_by_content = True
    draft.metadata = scalars(run) | scalars(info)
    for message in reading.objects(messages):
        add_without_marks(draft, message)
    yield draft.record()


def add_without_marks(draft: ChatDraft, message: dict[str, Any]) -> None:
    """Add a message without the simulator's control marks; nothing when nothing else is in it."""
    content = message.get("content")
    if message.get("role") in ("user", "assistant") and isinstance(content, str) and "###" in content:
        left = without_marks(content)
        if left != content:
            if not left and not message.get("tool_calls"):
                draft.reading.report.note_skipped("control_mark", draft.reading.place)
                return
            message = {**message, "content": left}
    add_message(draft, message)


def without_marks(content: str) -> str:
    """The text without stop and transfer tokens; what stands before and after one stays apart."""
    pieces = CONTROL_MARKS.split(content)
    if len(pieces) == 1:
        return content
    return "\n".join(p for piece in pieces if (p := piece.strip()))


def _display_chat(display: Any, reading: Reading) -> Item:
    """A conversation written as one text; an answer `None` before a result is a call whose name isn't known."""
    if not isinstance(display, str):
        raise ReadingProblem("wrong_type", path="messages_display", expected="text", found=type(display).__name__)
    draft = ChatDraft(reading, FORMAT)
    starts = list(_STARTS.finditer(display))
    ends = [m.start() for m in starts[1:]] + [len(display)]
    if starts and display[: starts[0].start()].strip():
        reading.report.note_skipped("text_before_first_message", reading.place)
    spoken = [(m.group(1), display[m.end() : end].strip("\n")) for m, end in zip(starts, ends, strict=True)]
    call_id: str | None = None
    for i, (role, content) in enumerate(spoken):
        if role == "tool":
            draft.add("tool", content, tool_call_id=call_id)
            call_id = None
        elif role == "assistant" and content == "None" and i + 1 < len(spoken) and spoken[i + 1][0] == "tool":
            call_id = f"call-{len(draft)}-0"
            draft.add("assistant", "", calls=[Call(call_id, "unknown", {})])
        else:
            call_id = None
            add_without_marks(draft, {"role": role, "content": content})
    return draft.record()
