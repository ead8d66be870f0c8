"""ATIF trajectories: steps with a source, continuation files of one session (section 4, 27)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from chats.domain.formats.documents import Document, Head
from chats.domain.formats.drafts import Call, ChatDraft, Reading, offered_tools
from chats.domain.formats.parts import read_content
from chats.domain.formats.problems import ReadingProblem
from chats.domain.formats.reading_rows import Item, read_rows, share
from chats.domain.formats.values import at, label, mapping, mappings, moment, scalars, shown, text

FORMAT: Final = "atif"
_ROLES: Final = {"agent": "assistant", "user": "user", "system": "system"}
_STEP_KEYS: Final = frozenset(
    {"step_id", "timestamp", "source", "message", "model_name", "reasoning_content", "tool_calls", "observation"}
    | {"metrics", "extra", "is_copied_context", "reasoning_effort", "llm_call_count"}
)


def recognise(head: Head) -> float:
    return share(
        head,
        lambda row: (
            isinstance(row.get("steps"), list)
            and ("schema_version" in row or all("source" in mapping(s) for s in row["steps"]))
        ),
    )


def read(document: Document, reading: Reading) -> Iterator[Item]:
    """Rows that go on with the session before them belong to the same chat."""
    session = _Session(reading)
    yield from read_rows(document.rows(), reading, lambda row: session.take(mapping(row)))
    yield from session.finish()


class _Session:
    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._draft: ChatDraft | None = None
        self._place = reading.place

    def take(self, row: dict[str, Any]) -> Iterator[Item]:
        steps = row.get("steps")
        if not isinstance(steps, list):
            raise ReadingProblem("wrong_type", path="steps", expected="list", found=type(steps).__name__)
        session = label(row.get("session_id"))
        goes_on = self._draft is not None and session is not None and session == self._draft.external_id
        if not goes_on:
            yield from self.finish()
            self._draft = _started(row, self._reading)
            self._place = self._reading.place
        if self._draft is not None:
            for step in self._reading.objects(steps):
                if not (goes_on and step.get("is_copied_context") is True):
                    _add(self._draft, step)

    def finish(self) -> Iterator[Item]:
        draft, self._draft = self._draft, None
        if draft is not None:
            self._reading.place = self._place
            yield draft.record()


def _started(row: dict[str, Any], reading: Reading) -> ChatDraft:
    draft = ChatDraft(reading, FORMAT)
    agent = mapping(row.get("agent"))
    draft.external_id = label(row.get("session_id"))
    draft.tools = offered_tools(agent.get("tool_definitions"), reading.cleaner)
    draft.metadata = (
        scalars(row, without=frozenset({"session_id"}))
        | {f"agent_{k}": v for k, v in scalars(agent).items()}
        | scalars(mapping(agent.get("extra")))
    )
    return draft


def _add(draft: ChatDraft, step: dict[str, Any]) -> None:
    draft.reading.report.note_unknown_fields(step, _STEP_KEYS, "steps[].")
    source = label(step.get("source")) or "unknown"
    role = _ROLES.get(source, source)
    created = moment(step.get("timestamp"))
    step_id = step.get("step_id")
    ref = f"step {step_id}" if isinstance(step_id, int) else label(step_id)
    content = read_content(step.get("message"))
    if role != "assistant":
        draft.add(role, content, created_at=created, ref=ref)
        _add_results(draft, mappings(at(step, "observation", "results")), [], created, ref)
        return
    calls = [
        Call(label(c.get("tool_call_id")), label(c.get("function_name")) or "unknown", c.get("arguments"))
        for c in mappings(step.get("tool_calls"))
    ]
    results = mappings(at(step, "observation", "results"))
    if results and not calls:
        calls = [Call(None, "unknown", {})]
    metrics = {k: v for k, v in mapping(step.get("metrics")).items() if isinstance(v, (int, float))}
    index = draft.add(
        "assistant",
        content,
        calls=calls,
        reasoning=text(step.get("reasoning_content")),
        model=text(step.get("model_name")),
        usage=metrics or None,
        created_at=created,
        ref=ref,
    )
    _add_results(draft, results, [c.id for c in draft.details[index].tool_calls], created, ref)


def _add_results(
    draft: ChatDraft, results: list[dict[str, Any]], waiting: list[str], created: datetime | None, ref: str | None
) -> None:
    for result in results:
        call_id = label(result.get("source_call_id"))
        if call_id is None:
            call_id = next(iter(waiting), None)
        if call_id in waiting:
            waiting.remove(call_id)
        value = result.get("content")
        in_parts = isinstance(value, list) and all("type" in mapping(v) for v in value)
        told = read_content(value) if in_parts else shown(value)
        draft.add("tool", told, tool_call_id=call_id, created_at=created, ref=ref)
