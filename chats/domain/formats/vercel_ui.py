"""Vercel AI SDK UI messages: one message holds several steps, which are split (section 4, 13)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from chats.domain.details import ResultStatus
from chats.domain.formats.documents import Document, Head
from chats.domain.formats.drafts import Call, ChatDraft, Reading
from chats.domain.formats.parts import Content, read_part
from chats.domain.formats.problems import Problem, ReadingProblem
from chats.domain.formats.reading_rows import Item, read_rows, share
from chats.domain.formats.values import at, label, mapping, mappings, moment, scalars, sequence, shown, text

FORMAT: Final = "vercel-ui-messages"
_PASSED_OVER: Final = frozenset({"source-url", "source-document", "source", "step-start"})


def recognise(head: Head) -> float:
    if head.rows and all(_is_message(r) for r in head.rows):
        return 1.0 if any(_has_marks(r) for r in head.rows) else 0.0
    if head.rows and all(isinstance(r, list) and r and all(map(_is_message, r)) for r in head.rows):
        return 1.0
    return share(head, lambda row: _is_list(row.get("messages")))


def _is_message(value: Any) -> bool:
    known = mapping(value)
    if known.get("role") not in ("system", "user", "assistant"):
        return False
    parts = known.get("parts")
    if isinstance(parts, list):
        return all(isinstance(mapping(p).get("type"), str) and "content" not in mapping(p) for p in parts)
    return isinstance(known.get("toolInvocations"), list) or isinstance(known.get("content"), str)


def _has_marks(value: Any) -> bool:
    return "parts" in mapping(value) or "toolInvocations" in mapping(value)


def _is_list(value: Any) -> bool:
    """Most are messages, and one of them is of this form."""
    if not isinstance(value, list) or not any(map(_has_marks, value)):
        return False
    return sum(map(_is_message, value)) * 2 >= len(value)


def read(document: Document, reading: Reading) -> Iterator[Item]:
    if document.head.rows and all(_is_message(r) for r in document.head.rows):
        draft = ChatDraft(reading, FORMAT)

        def add(row: Any) -> Iterator[Item]:
            for message in reading.objects([row]):
                _add(draft, message)
            return iter(())

        for item in read_rows(document.rows(), reading, add):
            yield Problem(item.code, item.place, item.args, chat_lost=False) if isinstance(item, Problem) else item
        reading.place = document.place
        yield draft.record() if len(draft) else Problem("no_messages", document.place)
        return
    yield from read_rows(document.rows(), reading, lambda row: [_chat(row, reading)])


def _chat(row: Any, reading: Reading) -> Item:
    known = {"messages": row} if isinstance(row, list) else mapping(row)
    messages = known.get("messages")
    if not isinstance(messages, list):
        raise ReadingProblem("wrong_type", path="messages", expected="list", found=type(messages).__name__)
    draft = ChatDraft(reading, FORMAT)
    draft.external_id = label(known.get("id")) or label(known.get("chatId"))
    draft.title = text(known.get("title"))
    draft.metadata = scalars(known, without=frozenset({"id", "title"}))
    for message in reading.objects(messages):
        _add(draft, message)
    return draft.record()


@dataclass(slots=True)
class _Step:
    """What one answer said and called, and the results that came back."""

    content: Content = field(default_factory=Content)
    calls: list[Call] = field(default_factory=list)
    results: list[tuple[int, str, str | None, ResultStatus]] = field(default_factory=list)

    def is_empty(self) -> bool:
        return not (self.content.texts or self.content.reasoning or self.calls)


def _add(draft: ChatDraft, message: dict[str, Any]) -> None:
    role = label(message.get("role")) or "user"
    known = mapping(message.get("metadata"))
    created = moment(known.get("createdAt")) or moment(message.get("createdAt"))
    ref = label(message.get("id"))
    parts = message.get("parts")
    if not isinstance(parts, list):
        parts = _parts_of_old(message)
    unknown: list[str] = []
    if role != "assistant":
        content = Content()
        for part in parts:
            _read(content, part, unknown)
        _note(draft, unknown)
        draft.add(role, content, created_at=created, ref=ref)
        return
    steps = [s for s in _steps(parts, unknown) if not s.is_empty()] or [_Step()]
    _note(draft, unknown)
    model = text(known.get("model"))
    for n, step in enumerate(steps):
        last = n == len(steps) - 1
        finish = text(known.get("finishReason")) if last else None
        usage = mapping(known.get("usage")) if last else {}
        _add_step(draft, step, created, ref, model, finish, usage or None)


def _add_step(
    draft: ChatDraft,
    step: _Step,
    created: datetime | None,
    ref: str | None,
    model: str | None,
    finish: str | None,
    usage: dict[str, Any] | None,
) -> None:
    index = draft.add(
        "assistant",
        step.content,
        calls=step.calls,
        created_at=created,
        ref=ref,
        model=model,
        finish=finish,
        usage=usage,
    )
    for position, told, name, status in step.results:
        call_id = draft.details[index].tool_calls[position].id
        draft.add("tool", told, name=name, tool_call_id=call_id, status=status, ref=ref)


def _parts_of_old(message: dict[str, Any]) -> list[dict[str, Any]]:
    """SDK 4 without parts: finished calls come before the text that they led to."""
    calls = [{"type": "tool-invocation", "toolInvocation": c} for c in mappings(message.get("toolInvocations"))]
    said = [{"type": "text", "text": message["content"]}] if message.get("content") else []
    files = [{"type": "file", **a} for a in mappings(message.get("experimental_attachments"))]
    finished = calls and all(at(c, "toolInvocation", "state") == "result" for c in calls)
    thought = [{"type": "reasoning", "text": message["reasoning"]}] if text(message.get("reasoning")) else []
    return [*thought, *calls, *said, *files] if finished else [*thought, *said, *calls, *files]


def _steps(parts: list[Any], unknown: list[str]) -> list[_Step]:
    """The steps between `step-start` marks; without marks a text after a tool part starts one."""
    marked = any(mapping(p).get("type") == "step-start" for p in parts)
    steps = [_Step()]
    for part in parts:
        known = mapping(part)
        kind = text(known.get("type")) or ""
        if kind == "step-start":
            steps.append(_Step())
        elif kind == "tool-invocation" or kind == "dynamic-tool" or kind.startswith("tool-"):
            _read_tool(steps[-1], known, kind)
        else:
            if not marked and steps[-1].calls and kind == "text":
                steps.append(_Step())
            _read(steps[-1].content, part, unknown)
    return steps


def _read_tool(step: _Step, part: dict[str, Any], kind: str) -> None:
    known = mapping(part.get("toolInvocation")) or part
    name = label(known.get("toolName")) or (kind.removeprefix("tool-") if kind.startswith("tool-") else "unknown")
    state = text(known.get("state")) or ""
    position = len(step.calls)
    step.calls.append(Call(label(known.get("toolCallId")), name, known.get("input", known.get("args"))))
    approval = mapping(known.get("approval"))
    if state == "output-denied" or approval.get("approved") is False:
        step.results.append((position, text(approval.get("reason")) or "", name, "not_run"))
    elif state == "output-error":
        step.results.append((position, shown(known.get("errorText")), name, "error"))
    elif state == "output-available":
        step.results.append((position, shown(known.get("output")), name, "ok"))
    elif state == "result":
        step.results.append((position, shown(known.get("result")), name, "ok"))


def _read(content: Content, part: Any, unknown: list[str]) -> None:
    known = mapping(part)
    kind = text(known.get("type")) or ""
    if kind in _PASSED_OVER or kind.startswith("data-"):
        return
    if kind == "reasoning":
        details = "\n".join(t for d in sequence(known.get("details")) if (t := text(mapping(d).get("text"))))
        if told := text(known.get("text")) or text(known.get("reasoning")) or details:
            content.reasoning.append(told)
        return
    read_part(content, part, unknown)


def _note(draft: ChatDraft, unknown: list[str]) -> None:
    for name in unknown:
        draft.reading.report.note_unknown_field(f"parts[].{name}")
