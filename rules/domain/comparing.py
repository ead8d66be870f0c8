"""Two outcomes of the same points: what fires newly, what no longer does, and what becomes of other rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rules.domain.atoms import Flags
from rules.domain.columns import Columns
from rules.domain.settling import NONE, Outcome, Places, Rule

NOWHERE: Final = NONE - 1


@dataclass(frozen=True, slots=True)
class Difference:
    """Of one rule: points where it fires newly, no longer, and still. Of the others: firings gained less lost."""

    newly: Places
    gone: Places
    same: Places
    others: dict[str, int]


def compare(
    before: Outcome, rules_before: Sequence[Rule], after: Outcome, rules_after: Sequence[Rule], code: str
) -> Difference:
    """What the change from one rule list to another does, seen from the rule `code`, which either list may lack."""
    old, new = place_of(rules_before, code), place_of(rules_after, code)
    fired_before, fired_after = np.flatnonzero(before == old), np.flatnonzero(after == new)
    still = before[fired_after] == old
    newly, same = fired_after[~still], fired_after[still]
    gone = fired_before[after[fired_before] != new]
    others = changes(before, rules_before, after, rules_after)
    others.pop(code, None)
    return Difference(newly, gone, same, others)


def changes(
    before: Outcome, rules_before: Sequence[Rule], after: Outcome, rules_after: Sequence[Rule]
) -> dict[str, int]:
    """Firings gained less firings lost, of each rule where that is not nought."""
    return gains(firings(before, rules_before), firings(after, rules_after))


def firings(outcome: Outcome, rules: Sequence[Rule]) -> dict[str, int]:
    """How often each rule fires."""
    counts = np.bincount(outcome[outcome != NONE], minlength=len(rules)).tolist()
    return {rule.code: count for rule, count in zip(rules, counts, strict=True)}


def gains(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """Of two counts by code, the differences that are not nought."""
    codes = before.keys() | after.keys()
    return {code: d for code in codes if (d := after.get(code, 0) - before.get(code, 0))}


def place_of(rules: Sequence[Rule], code: str) -> int:
    """Where the rule stands in the list; a place that no outcome holds when it isn't there."""
    return next((at for at, rule in enumerate(rules) if rule.code == code), NOWHERE)


def translation(rules_before: Sequence[Rule], rules_after: Sequence[Rule]) -> Outcome:
    """A table from places in one list to places in the other, by code; rules that are gone are `NOWHERE`."""
    table = np.full(NONE + 1, NOWHERE, dtype=np.uint16)
    table[NONE] = NONE
    places = {rule.code: at for at, rule in enumerate(rules_after)}
    for at, rule in enumerate(rules_before):
        table[at] = places.get(rule.code, NOWHERE)
    return table


def counterfactual(columns: Columns, before: Outcome, after: Outcome, table: Outcome) -> Flags:
    """Points that follow, in their turn, one where the two outcomes differ: what the model would have said is unknown.

    `table` is the `translation` of places in the first rule list to places in the second.
    """
    changed = np.flatnonzero(table[before] != after)
    turns = columns.field("turn")
    first = np.full(columns.turns, columns.points, dtype=np.int64)
    np.minimum.at(first, turns[changed], changed)
    flags: Flags = np.arange(columns.points) > first[turns]
    return flags
