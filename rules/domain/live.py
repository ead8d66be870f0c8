"""Deciding in live use: the rules of a release at one point, those under observation included.

An observed rule is evaluated at its place and takes nothing from the others: it never injects (product.md section 6).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from chats.domain import ROLE_TOOL, ChatRecord
from rules.domain.context import TurnContext
from rules.domain.deciding import RuleDecision, decide
from rules.domain.points import Walk
from rules.domain.rule import ContinuationRule, PredicateProblem

LiveOutcome = Literal["fires", "observes", "capped", "shadowed", "false"]


@dataclass(frozen=True, slots=True)
class LiveRule:
    """A rule of a release; an observed one is only watched."""

    rule: ContinuationRule
    observed: bool = False


@dataclass(frozen=True, slots=True)
class LiveDecision:
    """What one rule of the stage came to. `observes`: it would fire, were it live."""

    code: str
    outcome: LiveOutcome
    observed: bool
    problem: PredicateProblem | None = None


def decide_live(rules: Sequence[LiveRule], ctx: TurnContext, stage: str) -> tuple[LiveDecision, ...]:
    """Every rule of the stage in order. At most one fires; any number may observe."""
    decided = iter(decide([live.rule for live in rules if not live.observed], ctx, stage))
    found: list[LiveDecision] = []
    fired = False
    for live in rules:
        if live.rule.stage != stage:
            continue
        if live.observed:
            found.append(_observed(live.rule, ctx, fired))
            continue
        decision: RuleDecision = next(decided)
        fired = fired or decision.outcome == "fires"
        found.append(LiveDecision(decision.code, decision.outcome, False, decision.problem))
    return tuple(found)


def _observed(rule: ContinuationRule, ctx: TurnContext, fired: bool) -> LiveDecision:
    holds = rule.holds(ctx)
    if holds is not True:
        return LiveDecision(rule.code, "false", True, holds or None)
    if fired:
        return LiveDecision(rule.code, "shadowed", True)
    return LiveDecision(rule.code, "capped" if rule.capped(ctx) else "observes", True)


def awaits_decision(record: ChatRecord, walked: Walk) -> bool:
    """Whether the conversation ends at its last point: nobody has spoken since, and no call is without its result."""
    if not walked.points:
        return False
    chat = record.chat
    last = walked.points[-1].message
    for message in chat.messages[last + 1 :]:
        if message.role in (chat.human_role, chat.ai_role) and not message.fewshot_example:
            return False
    calls = {call.id for call in record.details[last].tool_calls}
    given = {m.tool_call_id for m in chat.messages[last + 1 :] if m.role == ROLE_TOOL}
    # Results without an id are matched by name or order; what is missing then can't be told from here.
    return walked.points[-1].stage == "final" or None in given or calls <= given
