"""What an edit does to a whole corpus, while it is typed (rule-engine.md section 6).

The live rules are settled once and kept. An edit evaluates the edited rule and settles again only the rules of its
stage that come after the first difference; a preview is a replay restricted to what changed.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import numpy as np

from rules.domain.atoms import OutOfTime, atoms_of
from rules.domain.columns import STRIPES, is_known
from rules.domain.comparing import NOWHERE, firings, gains, place_of
from rules.domain.context import Stage
from rules.domain.language.tree import Node, fields_read
from rules.domain.masks import Points
from rules.domain.settling import (
    NONE,
    Candidates,
    Outcome,
    Places,
    Rule,
    candidates,
    codes_of,
    matched,
    reads_later,
    settle,
    settle_by_walk,
    settle_rule_by_rule,
)

PREVIEW_SECONDS: Final = 0.12
_KEPT_MASKS: Final = 16
_Z: Final = 1.96

_NOWHERE: Final = np.empty(0, dtype=np.int64)

Zero = Literal["no-data", "not-evaluable", "zero"]


@dataclass(slots=True)
class _Mask:
    """Candidates of one predicate at one stage in every segment, as far as they are known: `stripes` of each."""

    parts: list[list[Candidates]]
    stripes: list[int]
    whole: list[Candidates | None]

    def upto(self, segment: int, stripes: int) -> Candidates:
        """The candidates in the first stripes of a segment."""
        if stripes == STRIPES:
            known = self.whole[segment]
            if known is None:
                known = self.whole[segment] = _joined(self.parts[segment])
                self.parts[segment] = [known]
            return known
        return _joined(self.parts[segment][:stripes])


def _joined(parts: Sequence[Candidates]) -> Candidates:
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return Candidates(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.bool_))
    return Candidates(np.concatenate([p.places for p in parts]), np.concatenate([p.sure for p in parts]))


@dataclass(frozen=True, slots=True)
class SegmentEffect:
    """Of one segment: the outcome under the edited rules, and the points where the edited rule matches."""

    outcome: Outcome
    matches: Places


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of an edit, in points. While not `exact`, numbers are estimates from `seen` points of the stage, and
    `low` and `high` bound `fires` in nineteen of twenty cases.

    `zero` says which kind of nought it is when nothing matches. `segments` are the seen parts, for lists of points.
    """

    fires: int
    matches: int
    shadowed: int
    capped: int
    points: int
    newly: int
    gone: int
    same: int
    others: tuple[tuple[str, int], ...]
    exact: bool
    seen: int
    low: int | None
    high: int | None
    zero: Zero | None
    ms: float
    segments: tuple[SegmentEffect, ...] = field(repr=False, compare=False, default=())

    def as_json(self) -> dict[str, Any]:
        """The form of rule-engine.md section 6."""
        return {
            "fires": self.fires,
            "matches": self.matches,
            "shadowed": self.shadowed,
            "capped": self.capped,
            "points": self.points,
            "newly": self.newly,
            "gone": self.gone,
            "same": self.same,
            "others": [{"code": code, "delta": delta} for code, delta in self.others],
            "exact": self.exact,
            "seen": self.seen,
            "low": self.low,
            "high": self.high,
            "zero": self.zero,
            "ms": round(self.ms, 1),
        }


class LiveEffects:
    """A corpus with its live rules settled, ready for edits. Threads wait for each other.

    Text terms of the live rules that have no bits yet are found when it is made, so that belongs into the background.
    """

    def __init__(self, views: Sequence[Points], rules: Sequence[Rule]) -> None:
        self.views = list(views)
        self.rules = list(rules)
        self._lock = threading.Lock()
        self._masks: OrderedDict[tuple[str, str, frozenset[str]], _Mask] = OrderedDict()
        self._stage_points: dict[str, list[int]] = {}
        self._live_keys = {self._key(rule, self.rules) for rule in self.rules}
        for rule in self.rules:
            self._known(rule, self.rules, None)
        masks = self._all_masks(self.rules)
        self.outcomes = [self._settled(segment, masks) for segment in range(len(self.views))]
        self._firings = [firings(outcome, self.rules) for outcome in self.outcomes]

    # --- masks

    def _key(self, rule: Rule, rules: Sequence[Rule]) -> tuple[str, str, frozenset[str]]:
        return rule.meaning, rule.stage, rule.reads & codes_of(rules)

    def _mask(self, rule: Rule, rules: Sequence[Rule]) -> _Mask:
        key = self._key(rule, rules)
        if key not in self._masks:
            count = len(self.views)
            self._masks[key] = _Mask([[] for _ in range(count)], [0] * count, [None] * count)
        self._masks.move_to_end(key)
        for old in [k for k in self._masks if k not in self._live_keys][:-_KEPT_MASKS]:
            del self._masks[old]
        return self._masks[key]

    def _known(self, rule: Rule, rules: Sequence[Rule], deadline: float | None) -> int:
        """Work out the rule's candidates stripe by stripe until the deadline; how many stripes are known everywhere."""
        found = self._mask(rule, rules)
        open_codes = codes_of(rules)
        has_begun = False
        for stripe in range(min(found.stripes, default=STRIPES), STRIPES):
            for segment, view in enumerate(self.views):
                if found.stripes[segment] > stripe:
                    continue
                if not found.stripes[segment] and (deadline is None or _has_all_bits(view, rule)):
                    found.parts[segment] = [candidates(rule, view, open_codes)]
                    found.stripes[segment] = STRIPES
                    continue
                if has_begun and deadline is not None and time.monotonic() > deadline:
                    return stripe
                has_begun = True
                start = view.columns.stripes[stripe - 1] if stripe else 0
                selection = slice(start, view.columns.stripes[stripe])
                try:
                    part = candidates(rule, replace(view, selection=selection, deadline=deadline), open_codes)
                except OutOfTime:
                    return stripe
                found.parts[segment].append(part)
                found.stripes[segment] += 1
        return STRIPES

    # --- settling

    def _all_masks(self, rules: Sequence[Rule]) -> list[_Mask]:
        return [self._mask(rule, rules) for rule in rules]

    def _settled(self, segment: int, masks: Sequence[_Mask]) -> Outcome:
        view = self.views[segment]
        found = self._found(masks, segment, STRIPES)
        return settle(view.columns, view, self.rules, found)

    def _found(self, masks: Sequence[_Mask], segment: int, stripes: int) -> list[Candidates]:
        end = self._end(segment, stripes)
        found = []
        for mask in masks:
            if mask.stripes[segment] == STRIPES:
                whole = mask.upto(segment, STRIPES)
                cut = len(whole.places) if stripes == STRIPES else int(np.searchsorted(whole.places, end))
                found.append(Candidates(whole.places[:cut], whole.sure[:cut]))
            else:
                found.append(mask.upto(segment, stripes))
        return found

    def _end(self, segment: int, stripes: int) -> int:
        """How many points the first stripes of a segment hold."""
        return self.views[segment].columns.stripes[stripes - 1] if stripes else 0

    def effect(self, rules: Sequence[Rule], code: str, seconds: float | None = None) -> Effect:
        """What the rule list does instead of the live one, seen from the rule `code`; either list may lack that rule.

        With `seconds`, text terms that nobody has asked for yet are searched for that long; the same call again
        carries on where this one stopped.
        """
        with self._lock:
            return self._effect(rules, code, seconds)

    def _effect(self, rules: Sequence[Rule], code: str, seconds: float | None) -> Effect:
        started = time.monotonic()
        deadline = None if seconds is None else started + seconds
        known = min((self._known(rule, rules, deadline) for rule in rules), default=STRIPES)
        plan, masks = _Plan.between(self.rules, rules), self._all_masks(rules)
        parts = tuple(
            self._segment_effect(rules, code, plan, self._found(masks, segment, known), segment, known)
            for segment in range(len(self.views))
        )
        return self._summed(rules, code, parts, known, started)

    def _segment_effect(
        self, rules: Sequence[Rule], code: str, plan: _Plan, found: Sequence[Candidates], segment: int, stripes: int
    ) -> SegmentEffect:
        view, end = self.views[segment], self._end(segment, stripes)
        columns = view.columns
        if plan.walks:
            outcome = settle_by_walk(columns, view, rules, found)
        else:
            outcome = plan.table[self.outcomes[segment]]
            outcome[end:] = NONE
            outcome = settle_rule_by_rule(columns, view, rules, found, outcome, plan.again)
        at = place_of(rules, code)
        matches = _NOWHERE if at == NOWHERE else matched(columns, view, rules, at, found[at], outcome)
        return SegmentEffect(outcome, matches)

    # --- summing up

    def _summed(
        self, rules: Sequence[Rule], code: str, parts: Sequence[SegmentEffect], stripes: int, started: float
    ) -> Effect:
        at, before = place_of(rules, code), place_of(self.rules, code)
        rule = next(r for r in (*rules, *self.rules) if r.code == code)
        stage = rule.stage
        sums = dict.fromkeys(("fires", "matches", "shadowed", "newly", "gone"), 0)
        others: dict[str, int] = {}
        seen = total = 0
        blocks: list[tuple[int, int]] = []
        for segment, part in enumerate(parts):
            columns, end = self.views[segment].columns, self._end(segment, stripes)
            taken = part.outcome[part.matches]
            fired = part.matches[taken == at]
            old = self.outcomes[segment][:end]
            sums["matches"] += len(taken)
            sums["fires"] += len(fired)
            sums["shadowed"] += int(np.count_nonzero(taken < at))
            sums["newly"] += int(np.count_nonzero(old[fired] != before))
            if before != NOWHERE:
                was = np.flatnonzero(old == before)
                sums["gone"] += int(np.count_nonzero(part.outcome[was] != at))
            fired_before = self._firings[segment] if stripes == STRIPES else firings(old, self.rules)
            for name, delta in gains(fired_before, firings(part.outcome, rules)).items():
                others[name] = others.get(name, 0) + delta
            counts = self._points_of(stage, segment)
            total += sum(counts)
            seen += sum(counts[:stripes])
            if stripes < STRIPES:
                cuts = np.searchsorted(fired, [0, *columns.stripes[:stripes]])
                blocks += zip(np.diff(cuts).tolist(), counts[:stripes], strict=True)
        others.pop(code, None)
        exact = stripes == STRIPES
        scale = 1.0 if exact or not seen else total / seen
        low, high = (None, None) if exact else _interval(blocks, sums["fires"], seen, total)
        figures = {name: round(value * scale) for name, value in sums.items()}
        return Effect(
            **figures,
            capped=round((sums["matches"] - sums["fires"] - sums["shadowed"]) * scale),
            points=total,
            same=round((sums["fires"] - sums["newly"]) * scale),
            others=tuple(sorted((name, round(delta * scale)) for name, delta in others.items() if delta)),
            exact=exact,
            seen=seen,
            low=low,
            high=high,
            zero=self._kind_of_zero(rule, total, exact) if not sums["matches"] else None,
            ms=(time.monotonic() - started) * 1000,
            segments=tuple(parts),
        )

    def _points_of(self, stage: Stage, segment: int) -> list[int]:
        """How many points of the stage each stripe of a segment holds."""
        kept = self._stage_points.setdefault(f"{stage} {segment}", [])
        if not kept:
            view = self.views[segment]
            before = np.concatenate(([0], np.cumsum(view.at_stage(stage))))
            kept += np.diff(before[[0, *view.columns.stripes]]).tolist()
        return kept

    def _kind_of_zero(self, rule: Rule, points: int, exact: bool) -> Zero | None:
        if not exact:
            return None
        if not points:
            return "no-data"
        evaluable = any(some_point_is_known(view, rule.tree, rule.stage) for view in self.views)
        return "zero" if evaluable else "not-evaluable"


def _has_all_bits(points: Points, rule: Rule) -> bool:
    return all(points.atoms.is_complete(key) for key in atoms_of(rule.tree))


def some_point_is_known(points: Points, tree: Node, stage: Stage) -> bool:
    """Whether at some point of the stage every field that the predicate reads is known."""
    known = points.at_stage(stage).copy()
    for name in fields_read(tree):
        known &= is_known(points.columns, name)
    return bool(known.any())


def _interval(blocks: Sequence[tuple[int, int]], fires: int, seen: int, total: int) -> tuple[int, int]:
    """Bounds of the firings in the whole corpus, from those of the blocks seen; each block is (firings, points).

    A ratio estimate with chats drawn in blocks: blocks vary more than single points, and that is what is measured.
    """
    unseen = total - seen
    if not seen or len(blocks) < 2:
        return fires, fires + unseen
    rate = fires / seen
    spread = sum((fired - rate * points) ** 2 for fired, points in blocks) / (len(blocks) - 1)
    blocks_in_all = len(blocks) * total / seen
    deviation = math.sqrt(max(spread, 0.0) * blocks_in_all * (blocks_in_all / len(blocks)) * (unseen / total))
    middle = rate * total
    low, high = math.floor(middle - _Z * deviation), math.ceil(middle + _Z * deviation)
    return max(fires, low), min(fires + unseen, max(high, fires))


@dataclass(frozen=True, slots=True)
class _Plan:
    """How to come from the live outcome to that of another list: a table of places, and the rules to settle again."""

    table: Outcome
    again: tuple[int, ...]
    walks: bool

    @classmethod
    def between(cls, before: Sequence[Rule], after: Sequence[Rule]) -> _Plan:
        table = np.full(NONE + 1, NONE, dtype=np.uint16)
        if reads_later(after):
            return cls(table, (), True)
        from_scratch = reads_later(before) or _reads_across(before) or _reads_across(after)
        again: list[int] = []
        for stage in ("final", "round"):
            old = [at for at, rule in enumerate(before) if rule.stage == stage]
            new = [at for at, rule in enumerate(after) if rule.stage == stage]
            same = 0 if from_scratch else _common(before, old, after, new)
            for was, now in zip(old[:same], new[:same], strict=True):
                table[was] = now
            again += new[same:]
        return cls(table, tuple(sorted(again)), False)


def _common(before: Sequence[Rule], old: Sequence[int], after: Sequence[Rule], new: Sequence[int]) -> int:
    """How many rules at the beginning of the two lists of one stage decide alike."""
    count = 0
    for was, now in zip(old, new, strict=False):
        a, b = before[was], after[now]
        if (a.code, a.max_nudges) != (b.code, b.max_nudges) or a.meaning != b.meaning:
            break
        count += 1
    return count


def _reads_across(rules: Sequence[Rule]) -> bool:
    """Whether a rule reads the counter of a rule of the other stage."""
    stages = {rule.code: rule.stage for rule in rules}
    return any(stages.get(code, rule.stage) != rule.stage for rule in rules for code in rule.reads)
