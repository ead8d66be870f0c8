"""From the messages of a chat to turns, rounds, finals and points (continuation.md sections 2 to 6)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Final

from chats.domain.details import MessageDetails, ToolCall
from chats.domain.messages import ROLE_TOOL, CanonicalMessage
from chats.domain.record import ChatRecord
from rules.domain.context import FinishReason, Stage
from rules.domain.nudges import KnownPrompts, NudgeOutcome
from rules.domain.points import NO_COUNTS, ChatFacts, HistoryNudge, Point, Skipped, Turn, Walk
from rules.domain.repeats import call_key, multiset
from rules.domain.tools import ToolCatalogue, ToolEntry, outcome, was_not_run

WALKER_VERSION: Final = 1
"""Raised by every change of what a walk gives, since columns made from it are kept."""
_ANSWER_ARGUMENTS: Final = (
    "result", "message", "answer", "final_answer", "final_thought", "summary", "text", "output",
)  # fmt: skip


def walk(record: ChatRecord, catalogue: ToolCatalogue, prompts: KnownPrompts = KnownPrompts()) -> Walk:  # noqa: B008
    """Go through a chat once and work out its points. Nothing of the chat is changed."""
    facts = _facts(record, catalogue)
    walker = _Walker(facts, catalogue, prompts)
    chat = record.chat
    for index, (message, details) in enumerate(zip(chat.messages, record.details, strict=True)):
        role = message.role
        if role == chat.system_role or message.fewshot_example:
            continue
        if role == chat.human_role:
            walker.human(index, message.content, details)
        elif role == chat.ai_role:
            walker.response(index, message.content, details)
        elif role == ROLE_TOOL:
            walker.result(index, message, details)
    walker.end_turn()
    return Walk(facts, walker.points, walker.turns, walker.nudges, sorted(walker.skipped))


def _facts(record: ChatRecord, catalogue: ToolCatalogue) -> ChatFacts:
    if record.tools is not None:
        names = {tool.name for tool in record.tools}
    else:
        names = {call.name for details in record.details for call in details.tool_calls}
    return ChatFacts(
        step_budget=record.step_budget,
        require_delivery=record.require_delivery,
        audit_mode=record.audit_mode,
        tools_known=record.tools is not None,
        tools_available=bool(names),
        verify_available=any(catalogue.can_verify(name) for name in names),
    )


class _Batch:
    """The calls of the last response, with the results and nudges that came since."""

    __slots__ = (
        "calls",
        "entries",
        "final_text",
        "finish_reason",
        "message",
        "nudges_after",
        "nudges_between",
        "results",
        "text",
        "working",
    )

    def __init__(self, message: int, text: str, details: MessageDetails, catalogue: ToolCatalogue) -> None:
        self.message = message
        self.text = text
        self.calls: Sequence[ToolCall] = details.tool_calls
        self.entries = [catalogue.entry_for(call.name, call.arguments) for call in self.calls]
        self.results: list[tuple[str, MessageDetails] | None] = [None] * len(self.calls)
        self.finish_reason: FinishReason = details.finish_reason or "tool_calls"
        # places of the calls that are no finishing ones
        self.working = [at for at, entry in enumerate(self.entries) if entry.kind != "finish"]
        self.final_text: str | None = None
        if len(self.working) < len(self.calls):
            finishing = (call for call, entry in zip(self.calls, self.entries, strict=True) if entry.kind == "finish")
            self.final_text = _finishing_text(finishing, text)
        self.nudges_between: list[tuple[int, str]] = []
        self.nudges_after: list[tuple[int, str]] = []

    def add_result(self, message: CanonicalMessage, details: MessageDetails) -> bool:
        """Whether the result belongs to a call. The later one of two counts; nudges before it stand between results.

        The result of a finishing call closes nothing: a nudge before it comes right after the final answer.
        """
        at = self._place_of(message)
        if at is None:
            return False
        self.results[at] = message.content, details
        if self.entries[at].kind != "finish":
            self.nudges_between += self.nudges_after
            self.nudges_after.clear()
        return True

    def _place_of(self, message: CanonicalMessage) -> int | None:
        calls = self.calls
        if message.tool_call_id:
            return next((at for at, call in enumerate(calls) if call.id == message.tool_call_id), None)
        unanswered = [at for at, result in enumerate(self.results) if result is None]
        named = (at for at in unanswered if calls[at].name == message.name)
        return next(named, unanswered[0] if unanswered else None)


class _Round:
    """The calls of an evaluated round that are compared with those of the next one, as multisets."""

    __slots__ = ("_keys", "batch", "compared", "names")

    def __init__(self, batch: _Batch, compared: list[int]) -> None:
        self.batch = batch
        self.compared = compared
        self.names = sorted(batch.calls[at].name for at in compared)
        self._keys: list[Hashable] | None = None

    def keys(self) -> Hashable:
        """Worked out only when the names are the same."""
        return multiset(self._call_keys())

    def results(self) -> Hashable:
        given = (self.batch.results[at] for at in self.compared)
        return multiset(zip(self._call_keys(), (result and result[0] for result in given), strict=True))

    def _call_keys(self) -> list[Hashable]:
        if self._keys is None:
            self._keys = [call_key(self.batch.calls[at]) for at in self.compared]
        return self._keys


class _Walker:
    """The state of the walk: counters of the turn in progress, and the calls whose results are still coming in."""

    def __init__(self, facts: ChatFacts, catalogue: ToolCatalogue, prompts: KnownPrompts) -> None:
        self.facts = facts
        self.catalogue = catalogue
        self.prompts = prompts
        self.points: list[Point] = []
        self.turns: list[Turn] = []
        self.nudges: list[HistoryNudge] = []
        self.skipped: list[Skipped] = []
        self.in_turn = False
        self.batch: _Batch | None = None
        self._forget_turn()

    def _forget_turn(self) -> None:
        """Every counter is per turn; nothing is carried over (section 2, rule 5)."""
        self.turn_message = 0
        self.first_point = len(self.points)
        self.user_text = ""
        self.responses = 0
        self.total = 0
        self.since_user = 0
        self.mutated = False
        self.verified = True
        self.verify_failed = False
        self.no_progress = 0
        self.read_only = 0
        self.recorded: Mapping[str, int] = NO_COUNTS
        self.round_before: _Round | None = None
        self.same_results: bool | None = None
        self.point_before: int | None = None  # the point right before the next message, skipped ones aside
        self.untold = len(self.nudges)  # nudges from here on have no outcome yet
        self.has_final = False

    def human(self, index: int, text: str, details: MessageDetails) -> None:
        if self.in_turn and self.responses == 0:
            self.user_text = text
            return
        code = (details.nudge_code or self.prompts.code_of(text)) if self.in_turn else None
        if code is None:
            self.end_turn()
            self.in_turn = True
            self.turn_message = index
            self.user_text = text
        elif self.batch is not None:
            self.batch.nudges_after.append((index, code))
        else:
            self._nudge(index, code)

    def response(self, index: int, text: str, details: MessageDetails) -> None:
        if not self.in_turn:
            self.skipped.append(Skipped(index, "preamble"))
            return
        self._close_batch(answered=True)
        self.responses += 1
        self.point_before = None
        if not details.tool_calls:
            self._tell_outcome("ignored")
            self._add_point(index, "final", text.strip(), details.finish_reason)
            return
        batch = self.batch = _Batch(index, text.strip(), details, self.catalogue)
        self._tell_outcome("acted" if batch.working else "finished")

    def result(self, index: int, message: CanonicalMessage, details: MessageDetails) -> None:
        if self.batch is None or not self.batch.add_result(message, details):
            self.skipped.append(Skipped(index, "orphan_result"))

    def end_turn(self) -> None:
        """What closes the turn in progress, if any: a human message or the end of the chat."""
        if not self.in_turn:
            return
        self._close_batch(answered=False)
        self.turns.append(
            Turn(len(self.turns), self.turn_message, self.first_point, len(self.points), not self.has_final)
        )
        self._forget_turn()

    def _nudge(self, index: int, code: str) -> None:
        point = self.point_before
        if point is not None:
            self.points[point] = self.points[point]._replace(next_nudge=code)
        self.nudges.append(HistoryNudge(index, code, len(self.turns), point, None))
        self.recorded = {**self.recorded, code: self.recorded.get(code, 0) + 1}
        self.since_user = 0
        self.point_before = None

    def _tell_outcome(self, outcome_of_nudges: NudgeOutcome) -> None:
        for at in range(self.untold, len(self.nudges)):
            self.nudges[at] = self.nudges[at]._replace(outcome=outcome_of_nudges)
        self.untold = len(self.nudges)

    def _close_batch(self, *, answered: bool) -> None:
        batch = self.batch
        if batch is None:
            return
        self.batch = None
        working = batch.working
        for index, code in batch.nudges_between:
            self._nudge(index, code)
        if working:
            if answered or any(batch.results[at] is not None for at in working):
                self._apply_round(batch, working)
                self._add_point(batch.message, "round", batch.text, batch.finish_reason)
            else:
                self.skipped.append(Skipped(batch.message, "pending_round"))
        if batch.final_text is not None:
            self._add_point(batch.message, "final", batch.final_text, "tool_calls")
        for index, code in batch.nudges_after:
            self._nudge(index, code)

    def _apply_round(self, batch: _Batch, working: list[int]) -> None:
        """Update all counters, call by call in the order in which the response lists them."""
        self.total += len(working)
        if not batch.nudges_between:  # else the calls came before the last user-role message
            self.since_user += len(working)
        only_reads = True
        for at in working:
            entry = batch.entries[at]
            if entry.kind == "read":
                continue
            only_reads = False
            if entry.kind == "verify":
                self._apply_check(batch.results[at], entry)
            elif self.facts.verify_available and not _not_run(batch.results[at]):
                self.mutated = True
                self.verified = False
        self.read_only = self.read_only + 1 if only_reads else 0
        self._compare_with_round_before(batch, working)

    def _apply_check(self, result: tuple[str, MessageDetails] | None, entry: ToolEntry) -> None:
        if result is None:
            return
        content, details = result
        told = outcome(content, details.result_status, details.exit_code, entry)
        if told == "ok":
            self.verify_failed = False
            self.verified = True
        elif told == "failed":
            self.verify_failed = True

    def _compare_with_round_before(self, batch: _Batch, working: list[int]) -> None:
        before = self.round_before
        compared = [at for at in working if not batch.entries[at].repeatable]
        self.round_before = this = _Round(batch, compared) if compared else None
        self.no_progress, self.same_results = self._repeats(this, before)

    def _repeats(self, this: _Round | None, before: _Round | None) -> tuple[int, bool | None]:
        """Repeats in a row, and whether the results are the same too if this round is one."""
        if this is None or before is None or this.names != before.names or this.keys() != before.keys():
            return 0, None
        return self.no_progress + 1, this.results() == before.results()

    def _add_point(self, message: int, stage: Stage, text: str, finish_reason: FinishReason | None) -> None:
        seq = len(self.points)
        self.has_final = self.has_final or stage == "final"
        self.point_before = seq
        self.points.append(
            Point(
                seq,
                len(self.turns),
                message,
                stage,
                text,
                finish_reason,
                self.user_text,
                self.facts.tools_available,
                self.total,
                self.since_user,
                self.mutated,
                self.verified,
                self.verify_failed,
                self.no_progress,
                self.read_only,
                self.responses,
                self.recorded,
                None,
                self.same_results if stage == "round" else None,
            )
        )


def _finishing_text(finishing: Iterable[ToolCall], text: str) -> str:
    """The first text argument that holds an answer, else the response's text (section 6, `final_text`)."""
    for call in finishing:
        for name in _ANSWER_ARGUMENTS:
            value = (call.arguments or {}).get(name)
            if isinstance(value, str):
                return value.strip()
    return text


def _not_run(result: tuple[str, MessageDetails] | None) -> bool:
    if result is None:
        return False
    content, details = result
    return was_not_run(content, details.result_status, details.exit_code)
