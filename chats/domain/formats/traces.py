"""Chats out of traces: per agent, the model step with the longest input, and its output (section 4, 7, 8 and 21)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from chats.domain.details import ResultStatus
from chats.domain.formats.any_messages import AnyMessages, messages_in, tools_in
from chats.domain.formats.drafts import ChatDraft, Reading
from chats.domain.formats.exchanges import set_aside
from chats.domain.formats.parts import read_content
from chats.domain.formats.reading_rows import Item
from chats.domain.formats.values import label, mapping, shown


@dataclass(slots=True)
class Step:
    """A model step. `agent` is who took it, where the trace says so; `started` orders steps of equal length."""

    id: str | None
    group: str
    agent: str | None
    inputs: Any
    outputs: Any
    started: float = 0.0
    ended: datetime | None = None
    model: str | None = None
    usage: dict[str, Any] | None = None
    finish: str | None = None
    tools: Any = None
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class _Best:
    step: Step
    length: int


class TraceChats:
    """Keeps the longest step of each agent, and outcomes and results of tool steps by the id of their call."""

    def __init__(self, reading: Reading, source_format: str) -> None:
        self._reading = reading
        self._format = source_format
        self._best: dict[tuple[str, str], _Best] = {}
        self.outcomes: dict[str, ResultStatus] = {}
        self.results: dict[str, str] = {}

    def add(self, step: Step) -> None:
        """Take in a model step; one without input or output is passed over."""
        messages = self._messages(step.inputs)
        if not messages and step.outputs in (None, "", [], {}):
            return
        agent = step.agent or _system_text(messages)
        known = self._best.get((step.group, agent))
        found = (len(messages), _rank(step))
        if known is None or found >= (known.length, _rank(known.step)):
            self._best[(step.group, agent)] = _Best(step, len(messages))

    def _messages(self, inputs: Any) -> list[Any]:
        return messages_in(inputs, ChatDraft(self._reading, self._format))

    def chats(self) -> Iterator[Item]:
        """One chat a group; the chats of other agents in it are marked as sub-agents."""
        main: dict[str, tuple[int, float]] = {}
        for (group, _), best in self._best.items():
            rank = (best.length, -best.step.started)
            if group not in main or rank > main[group]:
                main[group] = rank
        taken: set[str] = set()
        for (group, _), best in self._best.items():
            draft = self._chat(best.step)
            if not len(draft):
                continue
            is_main = group not in taken and (best.length, -best.step.started) == main[group]
            if is_main:
                taken.add(group)
                draft.external_id = group
                yield draft.record()
            else:
                draft.external_id = f"{group}/{best.step.agent or best.step.id}"
                draft.metadata["parent_id"] = group
                yield set_aside(draft.record(), "sub-agent", self._reading)

    def _chat(self, step: Step) -> ChatDraft:
        draft = ChatDraft(self._reading, self._format)
        draft.tools = step.tools if step.tools is not None else tools_in(step.inputs, draft)
        draft.metadata = dict(step.metadata)
        reader = AnyMessages(draft)
        reader.add_all(messages_in(step.inputs, draft))
        before = len(draft)
        if reader.add_output(step.outputs, finish=step.finish, created_at=step.ended, model=step.model):
            self._finish_answer(draft, before, step)
        self._add_last_results(draft)
        self._set_outcomes(draft)
        return draft

    def _add_last_results(self, draft: ChatDraft) -> None:
        """Results of the last answer's calls: no later step repeats them, but their tool steps say them."""
        if not draft.messages or draft.messages[-1].role != "assistant":
            return
        for call in list(draft.details[-1].tool_calls):
            if call.id in self.results:
                draft.add("tool", self.results[call.id], name=call.name, tool_call_id=call.id)

    def _finish_answer(self, draft: ChatDraft, before: int, step: Step) -> None:
        """What the trace knows of the last answer, where the answer itself does not say."""
        answers = [i for i in range(before, len(draft)) if draft.messages[i].role == "assistant"]
        if not answers:
            return
        details = draft.details[answers[-1]]
        if step.finish is not None and details.finish_reason_raw is None:
            draft.extend_answer(answers[-1], finish=step.finish)
        details.model = details.model or step.model
        details.usage = details.usage or step.usage or None
        details.created_at = details.created_at or step.ended
        details.source_ref = step.id or details.source_ref

    def _set_outcomes(self, draft: ChatDraft) -> None:
        for message, details in zip(draft.messages, draft.details, strict=True):
            if message.role == "tool" and details.result_status is None and message.tool_call_id is not None:
                details.result_status = self.outcomes.get(message.tool_call_id)


def _rank(step: Step) -> tuple[bool, float]:
    """Of two steps with equally long inputs, the one with an output, then the later one."""
    return step.outputs not in (None, "", "None", [], {}), step.started


def _system_text(messages: list[Any]) -> str:
    """The instructions that tell agents apart where the trace doesn't name them."""
    first = mapping(messages[0]) if messages else {}
    if label(first.get("role")) not in ("system", "developer") and first.get("type") != "system":
        return ""
    content = first.get("content", first.get("parts", mapping(first.get("data")).get("content")))
    return read_content(content).text or shown(content)
