"""A segment in, a result out: where each rule fires, and the counts (rule-engine.md section 7.2).

Pure: the same segment and rules give the same bytes, however often a task runs.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from rules.domain.masks import Points
from rules.domain.settling import NONE, Outcome, Places, Rule, candidates, codes_of, matched, settle

_NARROW_NONE: Final = 0xFF
_MOST_NARROW: Final = 254
COUNTED: Final = ("points", "matches", "fires", "shadowed", "capped", "reproduced", "different", "new")


@dataclass(frozen=True, slots=True)
class SegmentResult:
    """The outcome of a segment and its counts: `rules` by code, `recorded_only` by code, `points` by stage.

    `matches` are the points at which each rule's predicate holds.
    """

    outcome: Outcome
    counts: Mapping[str, Any]
    matches: Sequence[Places]

    def packed(self) -> bytes:
        """The outcome as it is stored, deflated."""
        return pack_outcome(self.outcome)


class Finding(NamedTuple):
    """A point of a segment where a rule fired or a nudge is recorded, by their codes."""

    point: int
    code: str | None
    recorded: str | None


def replay_segment(points: Points, rules: Sequence[Rule]) -> SegmentResult:
    """Settle the rules over all points of a segment. Text terms without bits are found first, to be stored after."""
    columns = points.columns
    points.atoms.fill(rule.tree for rule in rules)
    open_codes = codes_of(rules)
    found = [candidates(rule, points, open_codes) for rule in rules]
    outcome = settle(columns, points, rules, found)
    matches = [matched(columns, points, rules, at, found[at], outcome) for at in range(len(rules))]
    return SegmentResult(outcome, counts_of(points, rules, outcome, matches), matches)


def matches_of(points: Points, rules: Sequence[Rule], outcome: Outcome) -> list[Places]:
    """The points at which the predicate of each rule holds, given what was decided there. All bits must be known."""
    open_codes = codes_of(rules)
    found = [candidates(rule, points, open_codes) for rule in rules]
    return [matched(points.columns, points, rules, at, found[at], outcome) for at in range(len(rules))]


def counts_of(points: Points, rules: Sequence[Rule], outcome: Outcome, matches: Sequence[Places]) -> dict[str, Any]:
    """What became of each rule, and of the recorded nudges where no rule fired."""
    columns = points.columns
    at_stage = {stage: int(np.count_nonzero(points.at_stage(stage))) for stage in ("final", "round")}
    counts: dict[str, Any] = {"rules": {}, "recorded_only": {}, "points": at_stage}
    following = columns.field("next_nudge")
    for at, rule in enumerate(rules):
        taken = outcome[matches[at]]
        fired = matches[at][taken == at]
        held = following[fired]
        reproduced = int(np.count_nonzero(held == columns.code_number(rule.code)))
        new = int(np.count_nonzero(held == 0))
        shadowed = int(np.count_nonzero(taken < at))
        values = (at_stage[rule.stage], len(taken), len(fired), shadowed, len(taken) - len(fired) - shadowed,
                  reproduced, len(fired) - reproduced - new, new)  # fmt: skip
        counts["rules"][rule.code] = dict(zip(COUNTED, values, strict=True))
    is_alone = (outcome == NONE) & (following > 0)
    if points.scope is not None:
        is_alone &= points.scope
    alone = np.bincount(following[is_alone], minlength=len(columns.codes) + 1).tolist()
    counts["recorded_only"] = {code: alone[n] for n, code in enumerate(columns.codes, start=1) if alone[n]}
    return counts


def pack_outcome(outcome: Outcome) -> bytes:
    """The outcome deflated: a byte a point, two where there are more than 254 rules. The first byte tells which."""
    fired = outcome[outcome != NONE]
    if len(fired) and int(fired.max()) > _MOST_NARROW:
        return b"\x02" + zlib.compress(outcome.astype("<u2").tobytes(), 1)
    narrow = np.where(outcome == NONE, _NARROW_NONE, outcome).astype(np.uint8)
    return b"\x01" + zlib.compress(narrow.tobytes(), 1)


def unpack_outcome(blob: bytes) -> Outcome:
    """The outcome of a stored result."""
    data = zlib.decompress(blob[1:])
    if blob[:1] == b"\x02":
        return np.frombuffer(data, dtype="<u2").astype(np.uint16)
    narrow = np.frombuffer(data, dtype=np.uint8)
    return np.where(narrow == _NARROW_NONE, NONE, narrow.astype(np.uint16))


def findings(points: Points, rules: Sequence[Rule], outcome: Outcome, *, after: int = -1) -> Iterator[Finding]:
    """Points with a firing or a recorded nudge, in order, those behind `after` only."""
    columns = points.columns
    following = columns.field("next_nudge")
    told = (outcome != NONE) | (following > 0)
    places = np.flatnonzero(told if points.scope is None else told & points.scope)
    for place in places[np.searchsorted(places, after, side="right") :].tolist():
        fired, recorded = int(outcome[place]), int(following[place])
        code = None if fired == NONE else rules[fired].code
        yield Finding(place, code, columns.codes[recorded - 1] if recorded else None)
