"""Where two prompts differ, in time that grows with their length only.

Patience differencing: units that occur once in both texts are anchors, in the longest order that both share; what
stands between two anchors is compared again, and where nothing is unique only the ends that agree are taken off.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Range = tuple[int, int]
Block = tuple[int, int, int, int]
"""`units[a0:a1]` of the first text stand against `units[b0:b1]` of the second."""

# Control tokens, line breaks, and what is between them.
_UNITS = re.compile(r"<[^<>\s]{1,60}>|\[/?[A-Z][A-Z_]{2,30}\]|\n|[^\n<\[]+|[<\[]")
_CONTEXT_LINES = 3


def differing_ranges(first: str, second: str) -> tuple[list[Range], list[Range]]:
    """Character ranges of each text that the other one hasn't got at that place; empty ranges are left out."""
    a, b = _UNITS.findall(first), _UNITS.findall(second)
    starts_a, starts_b = _starts(a), _starts(b)
    left: list[Range] = []
    right: list[Range] = []
    for a0, a1, b0, b1 in _blocks(a, b):
        ours, theirs = (starts_a[a0], starts_a[a1]), (starts_b[b0], starts_b[b1])
        ours, theirs = _trimmed(first, second, ours, theirs)
        if ours[0] < ours[1]:
            left.append(ours)
        if theirs[0] < theirs[1]:
            right.append(theirs)
    return left, right


def merged(ranges: Sequence[Range]) -> list[Range]:
    """The ranges in order, those that touch or overlap as one."""
    out: list[Range] = []
    for start, end in sorted(ranges):
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((start, end))
    return out


@dataclass(frozen=True)
class DiffRow:
    """A line of a comparison. `old` and `new` count from 1; a `skip` stands for `count` equal lines."""

    kind: Literal["same", "gone", "added", "skip"]
    text: str = ""
    old: int | None = None
    new: int | None = None
    count: int = 0


def diff_rows(old: str, new: str, limit: int = 2_000) -> list[DiffRow]:
    """Both texts as one column of lines, with a few equal lines around each change; at most `limit` rows."""
    a, b = old.split("\n"), new.split("\n")
    rows: list[DiffRow] = []
    at_a = at_b = 0
    for a0, a1, b0, b1 in [*_blocks(a, b), (len(a), len(a), len(b), len(b))]:
        rows += _equal(a[at_a:a0], at_a, at_b, is_first=at_a == at_b == 0, is_last=a0 == len(a) and a1 == a0)
        rows += [DiffRow("gone", a[i], old=i + 1) for i in range(a0, a1)]
        rows += [DiffRow("added", b[i], new=i + 1) for i in range(b0, b1)]
        at_a, at_b = a1, b1
    changed = any(row.kind in ("gone", "added") for row in rows)
    return rows[:limit] if changed else []


def _equal(lines: list[str], at_a: int, at_b: int, is_first: bool, is_last: bool) -> list[DiffRow]:
    rows = [DiffRow("same", text, at_a + i + 1, at_b + i + 1) for i, text in enumerate(lines)]
    before = 0 if is_first else _CONTEXT_LINES
    after = 0 if is_last else _CONTEXT_LINES
    left_out = len(rows) - before - after
    if left_out < 2:
        return rows
    return [*rows[:before], DiffRow("skip", count=left_out), *rows[len(rows) - after :]]


def _starts(units: list[str]) -> list[int]:
    starts = [0]
    for unit in units:
        starts.append(starts[-1] + len(unit))
    return starts


def _trimmed(first: str, second: str, ours: Range, theirs: Range) -> tuple[Range, Range]:
    (a0, a1), (b0, b1) = ours, theirs
    while a0 < a1 and b0 < b1 and first[a0] == second[b0]:
        a0, b0 = a0 + 1, b0 + 1
    while a1 > a0 and b1 > b0 and first[a1 - 1] == second[b1 - 1]:
        a1, b1 = a1 - 1, b1 - 1
    return (a0, a1), (b0, b1)


def _blocks(a: Sequence[str], b: Sequence[str]) -> Iterator[Block]:
    """What differs, in order. Every unit is looked at a bounded number of times."""
    waiting: list[Block] = [(0, len(a), 0, len(b))]
    while waiting:
        a0, a1, b0, b1 = waiting.pop()
        while a0 < a1 and b0 < b1 and a[a0] == b[b0]:
            a0, b0 = a0 + 1, b0 + 1
        while a1 > a0 and b1 > b0 and a[a1 - 1] == b[b1 - 1]:
            a1, b1 = a1 - 1, b1 - 1
        if a0 == a1 and b0 == b1:
            continue
        anchors = _anchors(a[a0:a1], b[b0:b1])
        if not anchors:
            yield a0, a1, b0, b1
            continue
        # Last part first, since the stack turns the order around.
        ends = [*[(a0 + i, b0 + j) for i, j in anchors], (a1, b1)]
        starts = [(a0, b0), *[(a0 + i + 1, b0 + j + 1) for i, j in anchors]]
        parts = [(s[0], e[0], s[1], e[1]) for s, e in zip(starts, ends, strict=True)]
        waiting.extend(reversed(parts))


def _anchors(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    """Places of units that are unique in both, in the longest order that both share."""
    once_a = {unit for unit, count in Counter(a).items() if count == 1}
    once_b = {unit for unit, count in Counter(b).items() if count == 1}
    both = once_a & once_b
    if not both:
        return []
    place_in_b = {unit: j for j, unit in enumerate(b) if unit in both}
    pairs = [(i, place_in_b[unit]) for i, unit in enumerate(a) if unit in both]
    return _longest_rising(pairs)


def _longest_rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    tops: list[int] = []
    top_pairs: list[int] = []
    before: list[int] = []
    for at, (_, j) in enumerate(pairs):
        pile = bisect_left(tops, j)
        before.append(top_pairs[pile - 1] if pile else -1)
        if pile == len(tops):
            tops.append(j)
            top_pairs.append(at)
        else:
            tops[pile] = j
            top_pairs[pile] = at
    out = []
    at = top_pairs[-1]
    while at >= 0:
        out.append(pairs[at])
        at = before[at]
    return out[::-1]
