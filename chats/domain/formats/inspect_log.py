"""Inspect logs: one chat per sample and epoch, from `.json` and from the archive `.eval` (section 4, 20)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from chats.domain.formats.documents import Document, Head
from chats.domain.formats.drafts import Call, ChatDraft, Reading
from chats.domain.formats.limits import Limits
from chats.domain.formats.parts import Content, read_part
from chats.domain.formats.problems import LimitPassed, Problem, ReadingProblem
from chats.domain.formats.reading_rows import Item, read_rows, share
from chats.domain.formats.values import at, label, mapping, mappings, moment, scalars, sequence, shown, text

FORMAT: Final = "inspect"
SAMPLE_MEMBER: Final = re.compile(r"^samples/.+\.json$")
HEADER_MEMBERS: Final = ("header.json", "_journal/start.json")
_REFERENCE: Final = re.compile(r"attachment://([0-9a-f]{16,})")
_MESSAGE_KEYS: Final = frozenset(
    {"id", "content", "source", "role", "tool_calls", "tool_call_id", "function", "error", "model", "metadata"}
    | {"internal"}
)


def recognise(head: Head) -> float:
    if head.top is not None and isinstance(head.top.get("eval"), dict):
        samples = head.top.get("samples")
        if isinstance(samples, list) or (samples is None and head.top.keys() & {"version", "status", "plan"}):
            return 1.0  # a task that failed early has no samples
    return share(head, _is_sample)


def _is_sample(row: dict[str, Any]) -> bool:
    return "epoch" in row and "target" in row and ("messages" in row or "events" in row)


def read(document: Document, reading: Reading) -> Iterator[Item]:
    top = document.head.top
    if top is not None and "eval" in top:
        task = mapping(top.get("eval"))
        yield from read_rows(document.items("samples"), reading, lambda row: [_chat(mapping(row), task, reading)])
        return
    yield from read_rows(document.rows(), reading, lambda row: [_chat(mapping(row), {}, reading)])


def read_sample(document: Document, task: dict[str, Any], reading: Reading) -> Iterator[Item]:
    """The chat of one sample member of an `.eval` archive."""
    return read_rows(document.rows(), reading, lambda row: [_chat(mapping(row), task, reading)])


def _chat(sample: dict[str, Any], task: dict[str, Any], reading: Reading) -> Item:
    texts = mapping(sample.get("attachments")) or mapping(at(sample, "transcript", "content"))
    attachments = _Attachments(texts, reading.options.limits)
    messages = [attachments.resolved(m) for m in _messages(sample, reading.options.limits)]
    if not messages:
        error = text(at(sample, "error", "message"))
        return Problem("failed_run" if error else "no_messages", reading.place, {"error": (error or "")[:200]})
    draft = ChatDraft(reading, FORMAT)
    sample_id, epoch = label(sample.get("id")), label(sample.get("epoch"))
    run = label(task.get("run_id")) or label(task.get("eval_id")) or label(task.get("task_id"))
    draft.external_id = label(sample.get("uuid")) or (f"{run}/{sample_id}/{epoch}" if run is not None else None)
    draft.metadata = scalars({"sample": sample.get("id"), "epoch": sample.get("epoch")}) | {
        k: v for k in ("task", "model") if (v := text(task.get(k))) is not None
    }
    scores = {k: at(v, "value") for k, v in mapping(sample.get("scores")).items()}
    if scores:
        draft.metadata["scores"] = scores
    if isinstance(sample.get("metadata"), dict):
        draft.metadata.update(scalars(sample["metadata"]))
    for message in messages:
        _add(draft, message)
    _finish_last(draft, mapping(sample.get("output")))
    return draft.record()


def _messages(sample: dict[str, Any], limits: Limits) -> list[dict[str, Any]]:
    """The messages of a sample, which may be indices or ranges into a pool, or only stand in its events."""
    pool = sequence(sample.get("message_pool")) or sequence(at(sample, "events_data", "messages"))
    given = sequence(sample.get("messages")) or sequence(sample.get("messages_refs"))
    if given:
        return _expanded(given, pool, limits)
    best: list[Any] = []
    answer: dict[str, Any] = {}
    longest = -1
    for event in mappings(sample.get("events")):
        if event.get("event") != "model":
            continue
        found = mapping(at(event, "output", "choices", 0, "message"))
        inputs = sequence(event.get("input_refs")) or mappings(event.get("input"))
        length = sum(_count(e, len(pool)) for e in inputs) + bool(found)
        if length >= longest:
            best, answer, longest = inputs, found, length
    return [*_expanded(best, pool, limits), *([answer] if answer else [])]


def _expanded(entries: list[Any], pool: list[Any], limits: Limits) -> list[dict[str, Any]]:
    """Messages for entries; a few ranges may stand for more than a chat can hold."""
    if sum(_count(e, len(pool)) for e in entries) > limits.messages:
        raise LimitPassed("messages", limits.messages)
    return [m for e in entries for m in _entry(e, pool)]


def _count(entry: Any, most: int) -> int:
    if isinstance(entry, list) and len(entry) == 2 and all(isinstance(e, int) for e in entry):
        return max(0, min(int(entry[1]), most) - max(int(entry[0]), 0))
    return 1


def _entry(entry: Any, pool: list[Any]) -> list[dict[str, Any]]:
    if isinstance(entry, dict):
        return [entry]
    if isinstance(entry, int) and not isinstance(entry, bool) and 0 <= entry < len(pool):
        return mappings([pool[entry]])
    if isinstance(entry, list) and len(entry) == 2 and all(isinstance(e, int) for e in entry):
        return mappings(pool[max(entry[0], 0) : max(entry[1], 0)])
    raise ReadingProblem("unreadable", reason="a message that is not in the pool")


class _Attachments:
    """Puts texts in the place of references to them; a small sample may refer to a long text many times."""

    def __init__(self, texts: dict[str, Any], limits: Limits) -> None:
        self._texts = texts
        self._allowed = limits.record_bytes
        self._used = 0

    def resolved(self, value: Any) -> Any:
        """A value with its references replaced. Raises LimitPassed when that makes too much of it."""
        if isinstance(value, str):
            return _REFERENCE.sub(self._text, value) if "attachment://" in value else value
        if isinstance(value, dict):
            return {k: self.resolved(v) for k, v in value.items()}
        if isinstance(value, list):
            return [self.resolved(v) for v in value]
        return value

    def _text(self, found: re.Match[str]) -> str:
        told = str(self._texts.get(found[1], found[0]))
        self._used += len(told)
        if self._used > self._allowed:
            raise LimitPassed("record_bytes", self._allowed)
        return told


def _add(draft: ChatDraft, message: dict[str, Any]) -> None:
    draft.reading.report.note_unknown_fields(message, _MESSAGE_KEYS, "messages[].")
    role = label(message.get("role")) or "user"
    ref = label(message.get("id")) or f"messages/{len(draft)}"
    if role == "assistant":
        _add_answer(draft, message, ref)
        return
    failed = mapping(message.get("error"))
    content, unknown = Content(), list[str]()
    for part in _parts(message.get("content")):
        read_part(content, part, unknown)
    _note(draft, unknown)
    if failed and not content.text:
        content.texts = [text(failed.get("message")) or shown(failed)]
    draft.add(
        role,
        content,
        name=label(message.get("function")),
        tool_call_id=label(message.get("tool_call_id")),
        status=("error" if failed else "ok") if role == "tool" else None,
        ref=ref,
    )


def _parts(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value] if value is not None else []


def _add_answer(draft: ChatDraft, message: dict[str, Any], ref: str) -> None:
    """One answer; a tool that the server ran inside it splits it."""
    content, calls, unknown = Content(), list[Call](), list[str]()
    model = text(message.get("model"))
    added = False
    for part in _parts(message.get("content")):
        known = mapping(part)
        if known.get("type") != "tool_use":
            if not (known.get("type") == "reasoning" and known.get("redacted") is True):
                read_part(content, part, unknown)
            continue
        name = label(known.get("name")) or label(known.get("tool_type")) or "unknown"
        calls.append(Call(label(known.get("id")), name, known.get("arguments")))
        index = draft.add("assistant", content, calls=calls, model=model, ref=ref)
        failed = text(known.get("error"))
        draft.add(
            "tool",
            failed or shown(known.get("result")),
            name=name,
            tool_call_id=draft.details[index].tool_calls[-1].id,
            status="error" if failed else "ok",
            ref=ref,
        )
        content, calls, added = Content(), [], True
    _note(draft, unknown)
    calls += [
        Call(label(c.get("id")), label(c.get("function")) or "unknown", c.get("arguments"))
        for c in mappings(message.get("tool_calls"))
    ]
    if content.texts or content.reasoning or calls or not added:
        draft.add("assistant", content, calls=calls, model=model, ref=ref)


def _note(draft: ChatDraft, unknown: list[str]) -> None:
    for name in unknown:
        draft.reading.report.note_unknown_field(f"messages[].{name}")


def _finish_last(draft: ChatDraft, output: dict[str, Any]) -> None:
    """The stop reason and counts of the sample's output belong to the last answer."""
    last = next((i for i in range(len(draft) - 1, -1, -1) if draft.messages[i].role == "assistant"), None)
    if last is None or not output:
        return
    draft.extend_answer(
        last, finish=text(at(output, "choices", 0, "stop_reason")), usage=mapping(output.get("usage")) or None
    )
    details = draft.details[last]
    details.model = details.model or text(output.get("model"))
    details.created_at = details.created_at or moment(output.get("completed_at"))
