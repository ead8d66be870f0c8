"""What a stored chat gives for evaluation: facts, points, turns and nudges (continuation.md sections 2 to 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from rules.domain.context import FinishReason, Stage, TurnContext
from rules.domain.nudges import NudgeOutcome

SkipReason = Literal["preamble", "orphan_result", "pending_round"]
_LOW_BUDGET: Final = 2
NO_COUNTS: Final[Mapping[str, int]] = {}


class Skipped(NamedTuple):
    """A message that is not evaluated, and why."""

    message: int
    reason: SkipReason


@dataclass(frozen=True, slots=True)
class Defaults:
    """What holds for chats that say nothing: of the replay, else of the tenant."""

    step_budget: int | None = None
    require_delivery: bool | None = None
    audit_mode: bool | None = None

    def before(self, other: Defaults) -> Defaults:
        """These, and the others where these say nothing."""
        return Defaults(
            other.step_budget if self.step_budget is None else self.step_budget,
            other.require_delivery if self.require_delivery is None else self.require_delivery,
            other.audit_mode if self.audit_mode is None else self.audit_mode,
        )


NO_DEFAULTS: Final = Defaults()


@dataclass(frozen=True, slots=True)
class ChatFacts:
    """What holds for all points of a chat. None means that the chat does not say.

    `tools_known` tells whether the list of offered tools is stored; without one the tools called anywhere count.
    """

    step_budget: int | None
    require_delivery: bool | None
    audit_mode: bool | None
    tools_known: bool
    tools_available: bool
    verify_available: bool

    def settled(self, defaults: Defaults) -> Defaults:
        """The chat's own settings, and the defaults where it has none."""
        return Defaults(self.step_budget, self.require_delivery, self.audit_mode).before(defaults)


class Point(NamedTuple):
    """A place where rules are evaluated. Named for good by chat version, `message` and `stage`.

    `seq` counts the points of the chat and `turn` its turns, from 0. `message` is the index of the response.
    `responses` are those of the turn so far. `recorded` counts the recorded nudges of the turn so far by code;
    `next_nudge` is the code of the nudge recorded right after the point. `same_results` says of a round that repeats
    the one before whether the results were the same too; None when it does not repeat.
    """

    seq: int
    turn: int
    message: int
    stage: Stage
    final_text: str
    finish_reason: FinishReason | None
    user_text: str
    tools_available: bool
    tool_calls_total: int
    tool_calls_since_user: int
    mutated: bool
    verified_after_mutation: bool
    verify_failed: bool
    no_progress_rounds: int
    read_only_rounds: int
    responses: int
    recorded: Mapping[str, int]
    next_nudge: str | None
    same_results: bool | None

    def context(self, settings: Defaults = NO_DEFAULTS, own: Mapping[str, int] = NO_COUNTS) -> TurnContext:
        """The context of the turn here; `own` counts firings of a replay in the turn that the history does not hold.

        `settings` are those of the chat with all defaults filled in (`ChatFacts.settled`).
        """
        nudges = self.recorded
        if own:
            nudges = dict(nudges)
            for code, count in own.items():
                nudges[code] = nudges.get(code, 0) + count
        return TurnContext(
            self.final_text,
            self.finish_reason,
            self.user_text,
            self.tools_available,
            self.tool_calls_total,
            self.tool_calls_since_user,
            self.mutated,
            self.verified_after_mutation,
            self.verify_failed,
            self.no_progress_rounds,
            self.read_only_rounds,
            self.budget_low(settings.step_budget),
            bool(settings.require_delivery),
            bool(settings.audit_mode),
            nudges,
        )

    def budget_low(self, step_budget: int | None) -> bool:
        """Whether a budget is known and at most two responses of it are left in the turn."""
        return step_budget is not None and step_budget - self.responses <= _LOW_BUDGET

    def unknown(self, facts: ChatFacts, settings: Defaults = NO_DEFAULTS) -> frozenset[str]:
        """The fields whose value here is only assumed, since the history does not tell (rule-engine.md section 6)."""
        fields = set()
        if self.finish_reason is None:
            fields.add("finish_reason")
        if not facts.tools_known:
            fields.add("tools_available")
        if settings.step_budget is None:
            fields.add("budget_low")
        if not facts.verify_available:
            fields |= {"mutated", "verified_after_mutation", "verify_failed"}
        return frozenset(fields)


class HistoryNudge(NamedTuple):
    """A nudge that the history holds. `point` is the seq of the point right before it, None if there is none.

    `outcome` tells what the next response of the turn did: called a working tool, only a finishing one, or only talked;
    None when no response follows in the turn.
    """

    message: int
    code: str
    turn: int
    point: int | None
    outcome: NudgeOutcome | None


class Turn(NamedTuple):
    """A turn: its number, the index of the human message that starts it, and its points by seq, end excluded.

    `no_final` marks one that ends without a final point: interrupted or cut off.
    """

    number: int
    message: int
    first_point: int
    end_point: int
    no_final: bool


@dataclass(frozen=True, slots=True)
class Walk:
    """All that a stored chat gives for evaluation, in stored order."""

    facts: ChatFacts
    points: list[Point]
    turns: list[Turn]
    nudges: list[HistoryNudge]
    skipped: list[Skipped]
