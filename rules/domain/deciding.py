"""Replaying a chat point by point, which defines what faster engines must give (rule-engine.md section 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rules.domain.context import TurnContext
from rules.domain.points import NO_DEFAULTS, Defaults, Point, Walk
from rules.domain.rule import ContinuationRule, PredicateProblem

RuleOutcome = Literal["fires", "capped", "shadowed", "false"]
Status = Literal["reproduced", "different", "new", "recorded_only"]


@dataclass(frozen=True, slots=True)
class RuleDecision:
    """What one rule of the stage came to at a point. `shadowed` and `capped` ones match too, but do not fire."""

    code: str
    outcome: RuleOutcome
    problem: PredicateProblem | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """What a rule list says at one point: its context, each rule of the stage in order, and how history compares.

    `fired` and `recorded` are codes; `status` is None where neither a rule fires nor a nudge is recorded.
    """

    point: Point
    context: TurnContext
    rules: tuple[RuleDecision, ...]
    fired: str | None
    status: Status | None

    @property
    def recorded(self) -> str | None:
        return self.point.next_nudge


def status_of(fired: str | None, recorded: str | None) -> Status | None:
    """How a firing compares with the nudge recorded right after the point (continuation.md section 8)."""
    if fired is None:
        return None if recorded is None else "recorded_only"
    if recorded is None:
        return "new"
    return "reproduced" if fired == recorded else "different"


def decide(rules: Sequence[ContinuationRule], ctx: TurnContext, stage: str) -> tuple[RuleDecision, ...]:
    """Every rule of the stage in order; every predicate is called, also above its ceiling and behind a firing."""
    decisions = []
    fired = False
    for rule in rules:
        if rule.stage != stage:
            continue
        holds = rule.holds(ctx)
        if holds is not True:
            decisions.append(RuleDecision(rule.code, "false", holds or None))
        elif fired:
            decisions.append(RuleDecision(rule.code, "shadowed"))
        elif rule.capped(ctx):
            decisions.append(RuleDecision(rule.code, "capped"))
        else:
            fired = True
            decisions.append(RuleDecision(rule.code, "fires"))
    return tuple(decisions)


def replay(chat: Walk, rules: Sequence[ContinuationRule], defaults: Defaults = NO_DEFAULTS) -> list[Decision]:
    """Go through the points of a walked chat and decide at each. The history is never changed.

    A firing that the history does not hold is counted for its code from the next point of the turn on.
    """
    settings = chat.facts.settled(defaults)
    decisions = []
    own: Mapping[str, int] = {}
    turn = -1
    for point in chat.points:
        if point.turn != turn:
            turn, own = point.turn, {}
        ctx = point.context(settings, own)
        outcomes = decide(rules, ctx, point.stage)
        fired = next((outcome.code for outcome in outcomes if outcome.outcome == "fires"), None)
        decisions.append(Decision(point, ctx, outcomes, fired, status_of(fired, point.next_nudge)))
        if fired is not None and fired != point.next_nudge:
            own = {**own, fired: own.get(fired, 0) + 1}
    return decisions
