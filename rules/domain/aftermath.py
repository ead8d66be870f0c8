"""What came after firings that the history doesn't hold, and where a rule can't see (continuation.md section 14).

A firing is a statement about its point. What the model went on to do without the nudge tells whether it was needed:
a round rule whose row ends by itself, or a final rule after which nobody has to ask again, is early or idle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Self

from rules.domain.phrases import is_go_ahead
from rules.domain.phrases.folding import fold
from rules.domain.turns import NO_DEFAULTS, Defaults, Point, Walk
from rules.domain.walk import Decision

ROUNDS_LOOKED_AT: Final = 2


@dataclass
class Aftermath:
    """Counts for one rule, over chats that were walked.

    Of `new` final firings: what the first response of the next turn did (`next_acted`, `next_finished`,
    `next_talked`; `next_none` when the chat ends there), and whether the person had to ask again, which is when the
    next turn says to go ahead or says the same once more. Of `new` round firings: whether the row ended by itself
    within two rounds, went on, or isn't known because the turn ends. `ceiling_turns` are turns in which the rule
    matched above its cap. `blind_chats` counts, by field, chats in which the rule reads a field that is unknown at
    all points of its stage.
    """

    chats: int = 0
    turns: int = 0
    fires: int = 0
    new_final: int = 0
    next_acted: int = 0
    next_finished: int = 0
    next_talked: int = 0
    next_none: int = 0
    asked_again: int = 0
    new_round: int = 0
    ended_by_itself: int = 0
    went_on: int = 0
    ended_unknown: int = 0
    ceiling_turns: int = 0
    repeats_same: int = 0
    repeats_changing: int = 0
    blind: int = 0
    blind_chats: Counter[str] = field(default_factory=Counter)

    def add(self, other: Self) -> None:
        for name, value in vars(other).items():
            if isinstance(value, Counter):
                getattr(self, name).update(value)
            else:
                setattr(self, name, getattr(self, name) + value)

    @property
    def per_hundred_turns(self) -> float | None:
        return 100 * self.fires / self.turns if self.turns else None

    @property
    def blind_fields(self) -> list[tuple[str, int]]:
        """The unknown fields with their chats, the most frequent first."""
        return sorted(self.blind_chats.items(), key=lambda item: (-item[1], item[0]))


def aftermath(
    walked: Walk,
    decisions: Sequence[Decision],
    reads: Mapping[str, tuple[str, frozenset[str]]],
    defaults: Defaults = NO_DEFAULTS,
) -> dict[str, Aftermath]:
    """For each rule what this chat tells. `reads` gives its stage and the fields that it reads, by code."""
    found = {code: Aftermath(chats=1, turns=len(walked.turns)) for code in reads}
    for at, decision in enumerate(decisions):
        for rule in decision.rules:
            of_rule = found.get(rule.code)
            if of_rule is None or rule.outcome == "false":
                continue
            if rule.outcome == "fires":
                of_rule.fires += 1
                _count_firing(of_rule, walked, decisions, at, rule.code)
    _count_ceilings(found, decisions)
    _count_blindness(found, walked, reads, defaults)
    return found


def merged(parts: Iterable[Mapping[str, Aftermath]]) -> dict[str, Aftermath]:
    """The counts of several chats together."""
    total: dict[str, Aftermath] = {}
    for part in parts:
        for code, counts in part.items():
            total.setdefault(code, Aftermath()).add(counts)
    return total


def _count_firing(of_rule: Aftermath, walked: Walk, decisions: Sequence[Decision], at: int, code: str) -> None:
    decision = decisions[at]
    if decision.point.same_results is not None:
        of_rule.repeats_same += decision.point.same_results
        of_rule.repeats_changing += not decision.point.same_results
    if decision.status != "new":
        return
    if decision.point.stage == "final":
        of_rule.new_final += 1
        _count_next_turn(of_rule, walked, decision.point)
    else:
        of_rule.new_round += 1
        _count_row(of_rule, decisions, at, code)


def _count_next_turn(of_rule: Aftermath, walked: Walk, point: Point) -> None:
    following = walked.turns[point.turn + 1] if point.turn + 1 < len(walked.turns) else None
    if following is None or following.first_point == following.end_point:
        of_rule.next_none += 1
        return
    first = walked.points[following.first_point]
    if first.stage == "round":
        of_rule.next_acted += 1
    elif first.finish_reason == "tool_calls":
        of_rule.next_finished += 1
    else:
        of_rule.next_talked += 1
    of_rule.asked_again += is_go_ahead(first.user_text) or fold(first.user_text) == fold(point.user_text)


def _count_row(of_rule: Aftermath, decisions: Sequence[Decision], at: int, code: str) -> None:
    turn = decisions[at].point.turn
    following = [d for d in decisions[at + 1 : at + 1 + ROUNDS_LOOKED_AT] if d.point.turn == turn]
    for decision in following:
        if decision.point.stage == "final" or _outcome(decision, code) == "false":
            of_rule.ended_by_itself += 1
            return
    if len(following) == ROUNDS_LOOKED_AT:
        of_rule.went_on += 1
    else:
        of_rule.ended_unknown += 1


def _outcome(decision: Decision, code: str) -> str:
    return next((rule.outcome for rule in decision.rules if rule.code == code), "false")


def _count_ceilings(found: Mapping[str, Aftermath], decisions: Sequence[Decision]) -> None:
    reached = {(r.code, d.point.turn) for d in decisions for r in d.rules if r.outcome == "capped"}
    for code, _turn in reached:
        if code in found:
            found[code].ceiling_turns += 1


def _count_blindness(
    found: Mapping[str, Aftermath],
    walked: Walk,
    reads: Mapping[str, tuple[str, frozenset[str]]],
    defaults: Defaults,
) -> None:
    settings = walked.facts.settled(defaults)
    unknown: dict[str, frozenset[str]] = {}
    for point in walked.points:
        here = point.unknown(walked.facts, settings)
        unknown[point.stage] = unknown[point.stage] & here if point.stage in unknown else here
    for code, (stage, fields) in reads.items():
        blind = fields & unknown.get(stage, frozenset())
        found[code].blind += bool(blind)
        found[code].blind_chats.update(blind)
