"""What came after firings, chat by chat in plain loops: the definition that counting over columns is held against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rules.domain.aftermath import Aftermath
from rules.domain.deciding import Decision
from rules.domain.phrases import is_go_ahead
from rules.domain.phrases.folding import fold
from rules.domain.points import NO_DEFAULTS, Defaults, Point, Walk

ROUNDS_LOOKED_AT = 2


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
