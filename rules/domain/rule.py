"""One continuation rule, and choosing among several (continuation.md section 9)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from rules.domain.context import TurnContext

LONGEST_CODE = 64


@dataclass(frozen=True, slots=True)
class PredicateProblem:
    """Why a predicate counts as false at a point: it raised, or gave something else than true or false.

    `detail` is the text of the exception or the type of the value, for whoever wrote the predicate.
    """

    code: Literal["raised", "not-bool"]
    detail: str


@dataclass(frozen=True, slots=True)
class ContinuationRule:
    """A rule: when its predicate holds at its stage and its ceiling is not reached, `prompt` is sent to the model.

    `max_nudges` is the ceiling in one turn; 0 switches the rule off. Raises ValueError for a code that is empty, longer
    than 64 characters or has white space at its ends, and for a negative ceiling.
    """

    code: str
    max_nudges: int
    predicate: Callable[[TurnContext], bool]
    prompt: str
    stage: str = "final"

    def __post_init__(self) -> None:
        if not 1 <= len(self.code) <= LONGEST_CODE:
            raise ValueError(f"a rule code has 1 to {LONGEST_CODE} characters, not {len(self.code)}")
        if self.code != self.code.strip():
            raise ValueError(f"a rule code has no white space at its ends: {self.code!r}")
        if self.max_nudges < 0:
            raise ValueError(f"max_nudges of {self.code} is negative: {self.max_nudges}")

    def capped(self, ctx: TurnContext) -> bool:
        """Whether the rule has fired as often in this turn as it may."""
        return ctx.nudges.get(self.code, 0) >= self.max_nudges

    def holds(self, ctx: TurnContext) -> bool | PredicateProblem:
        """What the predicate says, whatever the ceiling; a problem counts as false and never spreads."""
        try:
            value = self.predicate(ctx)
        except Exception as error:  # whatever a tenant's predicate raises must not hide the other rules
            return PredicateProblem("raised", f"{type(error).__name__}: {error}")
        if not isinstance(value, bool):
            return PredicateProblem("not-bool", type(value).__name__)
        return value

    def applies(self, ctx: TurnContext) -> bool:
        """True when the rule fired less than `max_nudges` times in the turn and its predicate is true.

        The ceiling is looked at first; above it the predicate is not called.
        """
        return not self.capped(ctx) and self.holds(ctx) is True


def first_applicable(rules: Sequence[ContinuationRule], ctx: TurnContext, stage: str) -> ContinuationRule | None:
    """The first rule of the stage that applies, in the order of the list; None for an unknown stage."""
    return next((rule for rule in rules if rule.stage == stage and rule.applies(ctx)), None)
