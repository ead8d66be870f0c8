"""Which rule fires where: order, caps and counters over a segment (rule-engine.md section 7.1).

Two ways, which give the same: a walk over the candidate points, simple and always right, and rule by rule over arrays.
An outcome has one entry a point: the place of the rule that fires in the list, or `NONE`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from rules.domain.columns import Columns
from rules.domain.context import Stage
from rules.domain.language.tree import Node, canonical, counters_read
from rules.domain.masks import OPERATIONS, Bounds, Points, bounds, mask, number

Outcome = npt.NDArray[np.uint16]
Places = npt.NDArray[np.int64]

NONE: Final = 0xFFFF


@dataclass(frozen=True)
class Rule:
    """A rule as the engine sees it: the checked tree of its predicate, its stage and its cap in a turn."""

    code: str
    stage: Stage
    max_nudges: int
    tree: Node

    @cached_property
    def reads(self) -> frozenset[str]:
        """The codes whose counters its predicate reads."""
        return counters_read(self.tree)

    @cached_property
    def meaning(self) -> str:
        """Equal for rules with equal predicates."""
        return canonical(self.tree)


@dataclass(frozen=True, slots=True)
class Candidates:
    """Points of a rule's stage at which its predicate may hold, ascending, and at which of them it surely does."""

    places: Places
    sure: npt.NDArray[np.bool_]

    @property
    def all_sure(self) -> bool:
        return bool(self.sure.all())


def codes_of(rules: Sequence[Rule]) -> frozenset[str]:
    """The codes that a replay of these rules can fire: their counters are open until it is settled."""
    return frozenset(rule.code for rule in rules if rule.max_nudges > 0)


def candidates(rule: Rule, points: Points, open_codes: frozenset[str]) -> Candidates:
    """Where the rule may hold among the points."""
    return candidates_in(rule, points, bounds(rule.tree, points, open_codes))


def candidates_in(rule: Rule, points: Points, found: Bounds) -> Candidates:
    """The same from a predicate that has been evaluated at all of the points, which are a stretch of a segment."""
    at_stage = points.at_stage(rule.stage)
    start = points.selection.indices(points.columns.points)[0] if isinstance(points.selection, slice) else 0
    places = np.flatnonzero(found.may & at_stage)
    sure = np.ones(len(places), dtype=np.bool_) if found.sure is found.may else found.sure[places]
    return Candidates(places + start, sure)


def reads_later(rules: Sequence[Rule]) -> bool:
    """Whether some rule reads the counter of a rule listed after it."""
    place = {rule.code: at for at, rule in enumerate(rules) if rule.max_nudges > 0}
    return any(place.get(code, -1) > at for at, rule in enumerate(rules) for code in rule.reads)


def settle(columns: Columns, points: Points, rules: Sequence[Rule], found: Sequence[Candidates]) -> Outcome:
    """The outcome of the rule list: rule by rule where that is possible, else by walking the candidates."""
    if reads_later(rules):
        return settle_by_walk(columns, points, rules, found)
    return settle_rule_by_rule(columns, points, rules, found)


# --- rule by rule


def settle_rule_by_rule(
    columns: Columns,
    points: Points,
    rules: Sequence[Rule],
    found: Sequence[Candidates],
    outcome: Outcome | None = None,
    which: Sequence[int] | None = None,
) -> Outcome:
    """Settle in list order. Raises ValueError when a rule reads the counter of a later one.

    With `outcome`, only the rules at the places `which` are settled, on the points that nobody holds there yet; the
    rules before each of them must have been settled.
    """
    if reads_later(rules):
        raise ValueError("a rule reads the counter of a later rule")
    if outcome is None:
        outcome = np.full(columns.points, NONE, dtype=np.uint16)
    for at in range(len(rules)) if which is None else which:
        rule = rules[at]
        if rule.max_nudges == 0:
            continue
        places = found[at].places
        is_free = outcome[places] == NONE
        places = places[is_free]
        if not len(places):
            continue
        sure = found[at].sure[is_free]
        if sure.all():
            outcome[places[_under_cap(columns, rule, places)]] = at
            continue
        turns = columns.field("turn")[places]
        is_open = np.zeros(columns.turns, dtype=np.bool_)
        is_open[turns[~sure]] = True
        undecided = is_open[turns]
        settled = places[~undecided]
        outcome[settled[_under_cap(columns, rule, settled)]] = at
        fired = _walked(columns, points, rules, at, places[undecided], outcome)
        outcome[fired] = at
    return outcome


def _under_cap(columns: Columns, rule: Rule, places: Places) -> npt.NDArray[np.bool_]:
    """Which of the places, where the predicate holds, the rule's counter lets through.

    Along the candidates of a turn both parts of the counter only grow, so those let through are the first ones, and
    every candidate before one of them has fired: counting candidates counts firings.
    """
    foreign = columns.field("next_nudge")[places] != columns.code_number(rule.code)
    turns = columns.field("turn")[places]
    before = np.cumsum(foreign) - foreign
    starts = np.flatnonzero(np.diff(turns, prepend=-1))
    own = before - np.repeat(before[starts], np.diff(starts, append=len(places)))
    kept: npt.NDArray[np.bool_] = own + columns.recorded(rule.code)[places] < rule.max_nudges
    return kept


def own_counts(columns: Columns, code: str, fired: Places, places: Places) -> Places:
    """Firings of the code earlier in the turn of each place that the history does not hold. Both lists ascend."""
    foreign = fired[columns.field("next_nudge")[fired] != columns.code_number(code)]
    starts = columns.turn_starts[columns.field("turn")[places]]
    return np.searchsorted(foreign, places) - np.searchsorted(foreign, starts)


def _walked(
    columns: Columns, points: Points, rules: Sequence[Rule], at: int, places: Places, outcome: Outcome
) -> list[int]:
    """The places where a rule fires that reads counters, in turns in which its own firings may matter."""
    rule = rules[at]
    before = counts_of_others(columns, rules, at, places, outcome)
    recorded = columns.recorded(rule.code)[places].astype(np.int64)
    turns = columns.field("turn")[places]
    most = min(rule.max_nudges, int(np.unique(turns, return_counts=True)[1].max()))
    # For each number of own firings so far: whether the rule holds and is below its cap. All in one go.
    counter = np.tile(recorded, most) + np.repeat(np.arange(most), len(places))
    counters = {code: np.tile(counts, most) for code, counts in before.items()} | {rule.code: counter}
    here = Points(points.columns, points.atoms, np.tile(places, most), counters)
    fires = (mask(rule.tree, here) & (counter < rule.max_nudges)).reshape(most, len(places))
    is_own = columns.field("next_nudge")[places] == columns.code_number(rule.code)
    fired: list[int] = []
    own, turn = 0, -1
    table = fires.T.tolist()
    for place, its_turn, held, row in zip(places.tolist(), turns.tolist(), is_own.tolist(), table, strict=True):
        if its_turn != turn:
            own, turn = 0, its_turn
        if own < most and row[own]:
            fired.append(place)
            own += not held
    return fired


def counts_of_others(
    columns: Columns, rules: Sequence[Rule], at: int, places: Places, outcome: Outcome
) -> dict[str, Any]:
    """The counters, at the given places, of the other rules that a rule reads, from what they fired in `outcome`."""
    rule = rules[at]
    counts: dict[str, Any] = {}
    for other, read in enumerate(rules):
        if other != at and read.code in rule.reads:
            fired = np.flatnonzero(outcome == other)
            counts[read.code] = columns.recorded(read.code)[places] + own_counts(columns, read.code, fired, places)
    return counts


# --- by candidates


def settle_by_walk(columns: Columns, points: Points, rules: Sequence[Rule], found: Sequence[Candidates]) -> Outcome:
    """Settle point by point over the points where any rule may hold, with the counters in a list.

    Right for every rule list, also one in which a rule reads the counter of a later rule.
    """
    outcome = np.full(columns.points, NONE, dtype=np.uint16)
    active = [at for at, rule in enumerate(rules) if rule.max_nudges > 0 and len(found[at].places)]
    if not active:
        return outcome
    places = np.unique(np.concatenate([found[at].places for at in active]))
    turns = columns.field("turn")[places].tolist()
    numbers = [columns.code_number(rule.code) for rule in rules]
    nexts = columns.field("next_nudge")[places].tolist()
    recorded = {at: columns.recorded(rule.code)[places].tolist() for at, rule in enumerate(rules)}
    words = np.zeros(len(places), dtype=object if len(active) > 63 else np.int64)
    for bit, at in enumerate(active):
        words[np.searchsorted(places, found[at].places)] |= 1 << bit
    holds = [_holds(rules, at, found[at], points, places) for at in active]
    caps = [rule.max_nudges for rule in rules]
    own = [0] * len(rules)
    fired = [NONE] * len(places)
    turn = -1
    for step, word in enumerate(words.tolist()):
        if turns[step] != turn:
            turn = turns[step]
            own = [0] * len(rules)
        for bit, at in enumerate(active):
            if not word >> bit & 1 or own[at] + recorded[at][step] >= caps[at]:
                continue
            check = holds[bit]
            if check is not None and not check(step, own):
                continue
            fired[step] = at
            own[at] += nexts[step] != numbers[at]
            break
    outcome[places] = fired
    return outcome


def _holds(
    rules: Sequence[Rule], at: int, found: Candidates, points: Points, places: Places
) -> Callable[[int, Sequence[int]], bool] | None:
    """How to tell whether a rule holds at a step of the walk, given own firings by rule; None: wherever it may."""
    if found.all_sure:
        return None
    here = Points(points.columns, points.atoms, places)
    place_of = {rule.code: number for number, rule in enumerate(rules)}
    return _stepwise(rules[at].tree, here, place_of)


def _stepwise(tree: Node, points: Points, place_of: Mapping[str, int]) -> Callable[[int, Sequence[int]], Any]:
    """A part of a predicate as a function of the step and the own firings by rule; what reads no counter is a list."""
    if not counters_read(tree) & place_of.keys():
        values = mask(tree, points) if tree.type == "bool" else number(tree, points)
        if not isinstance(values, np.ndarray):
            return lambda step, own: values
        column = values.tolist()
        return lambda step, own: column[step]
    if tree.kind == "call" or (tree.kind == "in" and tree.children[1].kind == "field"):
        code = str(tree.children[0].value)
        recorded, place = points.counter(code).tolist(), place_of[code]
        if tree.kind == "in":
            return lambda step, own: recorded[step] + own[place] > 0
        return lambda step, own: recorded[step] + own[place]
    if tree.kind == "in":
        item = _stepwise(tree.children[0], points, place_of)
        values_in = frozenset(child.value for child in tree.children[1].children)
        return lambda step, own: item(step, own) in values_in
    parts = [_stepwise(child, points, place_of) for child in tree.children]
    match tree.kind:
        case "and":
            return lambda step, own: all(part(step, own) for part in parts)
        case "or":
            return lambda step, own: any(part(step, own) for part in parts)
        case "not":
            return lambda step, own: not parts[0](step, own)
        case "negative":
            return lambda step, own: -parts[0](step, own)
        case "choice":
            return lambda step, own: parts[1](step, own) if parts[0](step, own) else parts[2](step, own)
    operation = OPERATIONS[str(tree.value)]
    return lambda step, own: operation(parts[0](step, own), parts[1](step, own))


# --- what became of each rule


def matched(
    columns: Columns, points: Points, rules: Sequence[Rule], at: int, found: Candidates, outcome: Outcome
) -> Places:
    """The points of the stage where the rule's predicate holds, counters of the settled replay included."""
    if found.all_sure:
        return found.places
    open_places = found.places[~found.sure]
    counters = counts_of_others(columns, rules, at, open_places, outcome)
    code = rules[at].code
    if code in rules[at].reads:
        fired = np.flatnonzero(outcome == at)
        counters[code] = columns.recorded(code)[open_places] + own_counts(columns, code, fired, open_places)
    holds = mask(rules[at].tree, Points(points.columns, points.atoms, open_places, counters))
    keep = found.sure.copy()
    keep[~found.sure] = holds
    return found.places[keep]
