"""A tree over columns: at which points of a segment a predicate holds (rule-engine.md sections 4 and 7.1).

Where counters are not known yet, a predicate is evaluated to two masks: where it surely holds, and where it may.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from rules.domain.atoms import Atoms, Flags, Selection, atoms_of, is_atom, over_finish_reasons
from rules.domain.columns import Columns
from rules.domain.language.environment import FINISH_REASONS, MAX_INTEGER
from rules.domain.language.tree import Node, Value, counters_read

Ints = npt.NDArray[Any]

OPERATIONS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "+": operator.add,
    "-": operator.sub,
}
_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_REASON_CODES: Final[Mapping[Value, int]] = {
    None: 0,
    **{reason: code for code, reason in enumerate(FINISH_REASONS, start=1)},
}
_FEW: Final = 5
"""One point in so many left by the cheap conjuncts: then text terms are matched on those points only."""


@dataclass(frozen=True, slots=True)
class Points:
    """Some points of a segment, as masks are worked out for them.

    `counters` holds the count of a code at each of these points; a code that is not in it is not fired by any rule of
    the set, so its count is the recorded one. `scope` tells of each point of the segment whether it belongs to the
    corpus; points outside are never candidates. A scope holds whole chats, since counters run through turns. When the
    monotonic clock passes `deadline`, the search for text terms without bits ends with `OutOfTime`.
    """

    columns: Columns
    atoms: Atoms
    selection: Selection = field(default_factory=lambda: slice(None))
    counters: Mapping[str, Ints] | None = None
    scope: Flags | None = None
    deadline: float | None = None

    def __len__(self) -> int:
        if isinstance(self.selection, slice):
            return len(range(*self.selection.indices(self.columns.points)))
        return len(self.selection)

    def field(self, name: str) -> Any:
        return self.columns.field(name)[self.selection]

    def at_stage(self, stage: str) -> Flags:
        """Which of the points are of the stage and in the scope."""
        flags = self.columns.in_stage(stage)[self.selection]
        return flags if self.scope is None else flags & self.scope[self.selection]

    def counter(self, code: str) -> Ints:
        if self.counters is not None and code in self.counters:
            return self.counters[code]
        return self.columns.recorded(code)[self.selection]

    def among(self, chosen: npt.NDArray[np.int64]) -> Points:
        """Those of these points that stand at the chosen places."""
        if isinstance(self.selection, slice):
            selection = chosen + self.selection.indices(self.columns.points)[0]
        else:
            selection = self.selection[chosen]
        counters = None if self.counters is None else {code: c[chosen] for code, c in self.counters.items()}
        return Points(self.columns, self.atoms, selection, counters, self.scope, self.deadline)


# --- two values


def mask(tree: Node, points: Points) -> Flags:
    """At which of the points the predicate holds, given their counters."""
    match tree.kind:
        case "field":
            return np.asarray(points.field(str(tree.value)), dtype=np.bool_)
        case "bool":
            return np.full(len(points), bool(tree.value))
        case "not":
            return ~mask(tree.children[0], points)
        case "and" | "or":
            return _junction(tree, points)
        case "choice":
            condition, yes, no = (mask(child, points) for child in tree.children)
            return (condition & yes) | (~condition & no)
    if is_atom(tree):
        return points.atoms.flags(tree, points.selection, points.deadline)
    if tree.kind == "call":
        return np.asarray(over_finish_reasons(tree)[points.field("finish_reason")], dtype=np.bool_)
    if tree.kind == "in":
        return _member(tree, points)
    return _comparison(tree, points)


def _junction(tree: Node, points: Points) -> Flags:
    """Cheap operands first; text terms that are not known yet only where they still matter."""
    is_and = tree.kind == "and"
    cheap = [child for child in tree.children if _is_cheap(child, points)]
    dear = [child for child in tree.children if not _is_cheap(child, points)]
    found: Flags | None = None
    for child in cheap:
        part = mask(child, points)
        if found is None:
            found = part.copy() if dear or len(cheap) > 1 else part
        elif is_and:
            found &= part
        else:
            found |= part
    if not dear:
        assert found is not None
        return found
    if found is None:
        found = np.full(len(points), is_and)
    for child in dear:
        open_places = np.flatnonzero(found if is_and else ~found)
        if len(open_places) * _FEW < len(found):
            found[open_places] = mask(child, points.among(open_places))
        elif is_and:
            found &= mask(child, points)
        else:
            found |= mask(child, points)
    return found


def _is_cheap(tree: Node, points: Points) -> bool:
    return all(points.atoms.is_complete(key) for key in atoms_of(tree))


def _comparison(tree: Node, points: Points) -> Flags:
    left, right = tree.children
    compare = str(tree.value)
    if left.type == "bool":
        return np.asarray(OPERATIONS[compare](mask(left, points), mask(right, points)), dtype=np.bool_)
    if "string?" in (left.type, right.type):
        constant = right if left.type == "string?" else left
        found = points.field("finish_reason") == _REASON_CODES.get(constant.value, -1)
        return np.asarray(found if compare == "==" else ~found, dtype=np.bool_)
    found = OPERATIONS[compare](number(left, points), number(right, points))
    return np.broadcast_to(np.asarray(found, dtype=np.bool_), (len(points),))


def _member(tree: Node, points: Points) -> Flags:
    item, group = tree.children
    if group.kind == "field":
        return np.asarray(points.counter(str(item.value)) > 0, dtype=np.bool_)
    values = [child.value for child in group.children]
    if item.type == "string?":
        chosen = np.zeros(len(_REASON_CODES), dtype=np.bool_)
        chosen[[_REASON_CODES[value] for value in values if value in _REASON_CODES]] = True
        return np.asarray(chosen[points.field("finish_reason")], dtype=np.bool_)
    numbers = number(item, points)
    found = np.zeros(len(points), dtype=np.bool_)
    for value in values:
        found |= numbers == value
    return found


def number(tree: Node, points: Points) -> Any:
    """The value of an int at each of the points, as an array or as one Python int."""
    match tree.kind:
        case "int":
            return tree.value
        case "field":
            return points.field(str(tree.value))
        case "negative":
            return -_wide(number(tree.children[0], points))
        case "sum":
            left, right = (_wide(number(child, points)) for child in tree.children)
            return left + right if tree.value == "+" else left - right
        case "choice":
            condition = mask(tree.children[0], points)
            yes, no = (_wide(number(child, points)) for child in tree.children[1:])
            return np.where(condition, yes, no)
    if tree.value == "nudged":
        return points.counter(str(tree.children[0].value))
    return points.atoms.sizes(tree.children[0], points.selection)


def _wide(value: Any) -> Any:
    """Columns are narrow; sums need room. The checker has made sure that 64 bits are enough."""
    return value.astype(np.int64) if isinstance(value, np.ndarray) else value


# --- three values


class Bounds(NamedTuple):
    """Where a predicate surely holds, and where it may; one and the same array when no counter is open."""

    sure: Flags
    may: Flags


def bounds(tree: Node, points: Points, open_codes: frozenset[str]) -> Bounds:
    """The predicate when firings of `open_codes` are not known: their counts are at least the recorded ones."""
    if not counters_read(tree) & open_codes:
        found = mask(tree, points)
        return Bounds(found, found)
    match tree.kind:
        case "not":
            inner = bounds(tree.children[0], points, open_codes)
            return Bounds(~inner.may, ~inner.sure)
        case "and" | "or":
            combine = np.logical_and if tree.kind == "and" else np.logical_or
            parts = [bounds(child, points, open_codes) for child in _cheapest_first(tree.children, points)]
            return Bounds(combine.reduce([p.sure for p in parts]), combine.reduce([p.may for p in parts]))
        case "choice":
            condition, yes, no = (bounds(child, points, open_codes) for child in tree.children)
            sure = (condition.sure & yes.sure) | (~condition.may & no.sure) | (yes.sure & no.sure)
            may = (condition.may & yes.may) | (~condition.sure & no.may)
            return Bounds(sure, may)
        case "in":
            return _member_bounds(tree, points, open_codes)
        case _:
            return _comparison_bounds(tree, points, open_codes)


def _cheapest_first(children: tuple[Node, ...], points: Points) -> list[Node]:
    return sorted(children, key=lambda child: not _is_cheap(child, points))


def _comparison_bounds(tree: Node, points: Points, open_codes: frozenset[str]) -> Bounds:
    left, right = tree.children
    compare = str(tree.value)
    if left.type == "bool":
        a, b = bounds(left, points, open_codes), bounds(right, points, open_codes)
        sure = (a.sure & b.sure) | (~a.may & ~b.may)
        may = ~((a.sure & ~b.may) | (~a.may & b.sure))
        return Bounds(sure, may) if compare == "==" else Bounds(~may, ~sure)
    (low, high), (other_low, other_high) = _range(left, points, open_codes), _range(right, points, open_codes)
    if compare in (">", ">="):
        low, high, other_low, other_high = other_low, other_high, low, high
        compare = _MIRRORED[compare]
    if compare == "<":
        found = high < other_low, low < other_high
    elif compare == "<=":
        found = high <= other_low, low <= other_high
    else:
        meet = (low <= other_high) & (other_low <= high)
        same = (low == high) & (other_low == other_high) & (low == other_low)
        found = (same, meet) if compare == "==" else (_negated(meet), _negated(same))
    sure, may = (np.broadcast_to(np.asarray(part, dtype=np.bool_), (len(points),)) for part in found)
    return Bounds(sure, may)


def _negated(flags: Any) -> Any:
    return np.logical_not(flags)


def _member_bounds(tree: Node, points: Points, open_codes: frozenset[str]) -> Bounds:
    item, group = tree.children
    if group.kind == "field":
        recorded = np.asarray(points.counter(str(item.value)) > 0, dtype=np.bool_)
        return Bounds(recorded, np.ones(len(points), dtype=np.bool_))
    low, high = _range(item, points, open_codes)
    sure, may = np.zeros(len(points), dtype=np.bool_), np.zeros(len(points), dtype=np.bool_)
    for child in group.children:
        may |= (low <= child.value) & (child.value <= high)
        sure |= (low == child.value) & (high == child.value)
    return Bounds(sure, may)


def _range(tree: Node, points: Points, open_codes: frozenset[str]) -> tuple[Any, Any]:
    """The lowest and the highest value that an int may have."""
    if not counters_read(tree) & open_codes:
        value = _wide(number(tree, points))
        return value, value
    match tree.kind:
        case "negative":
            low, high = _range(tree.children[0], points, open_codes)
            return -high, -low
        case "sum":
            (low, high), (more_low, more_high) = (_range(child, points, open_codes) for child in tree.children)
            return (low + more_low, high + more_high) if tree.value == "+" else (low - more_high, high - more_low)
        case "choice":
            condition = bounds(tree.children[0], points, open_codes)
            (low, high), (no_low, no_high) = (_range(child, points, open_codes) for child in tree.children[1:])
            lowest = np.where(condition.sure, low, np.where(condition.may, np.minimum(low, no_low), no_low))
            highest = np.where(condition.sure, high, np.where(condition.may, np.maximum(high, no_high), no_high))
            return lowest, highest
    # Counts of a turn end far below what an int may be.
    return _wide(points.counter(str(tree.children[0].value))), MAX_INTEGER
