"""Splitting a text at several separators at once (chat-wrappers.md section 11.4)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Separator:
    """A separator that was found in the text."""

    text: str

    def to_json(self) -> dict[str, str]:
        return {"separator": self.text}


@dataclass(frozen=True, slots=True)
class _Occurrence:
    start: int
    end: int
    position: int  # of the separator in the list


def split_text(text: str, separators: Sequence[str]) -> list[str | Separator]:
    """Texts and separators in turn, without empty texts; `""` gives one empty text.

    A separator that stands earlier in the list wins over an overlapping one that stands later. Overlapping occurrences
    of one separator are all kept, so `aaa` split at `aa` gives that separator twice.
    """
    parts: list[str | Separator] = []
    done = 0
    for found in _kept(text, separators):
        if found.start > done:
            parts.append(text[done : found.start])
        parts.append(Separator(separators[found.position]))
        done = found.end
    if done < len(text) or not parts:
        parts.append(text[done:])
    return parts


def _kept(text: str, separators: Sequence[str]) -> list[_Occurrence]:
    found = _occurrences(text, separators)
    if len({occurrence.position for occurrence in found}) < 2:
        return found
    rank: dict[int, int] = {}
    for occurrence in found:
        rank[occurrence.start] = min(occurrence.position, rank.get(occurrence.start, occurrence.position))
    counting: dict[int, _Occurrence] = {}
    for occurrence in found:
        best = counting.get(occurrence.end)
        if best is None or occurrence.position < best.position:
            counting[occurrence.end] = occurrence
    ends = sorted(counting)
    starts = sorted(rank)
    longest = max(map(len, separators))

    def is_dropped(occurrence: _Occurrence) -> bool:
        end = occurrence.end
        first = bisect_left(starts, end - longest)
        for start in starts[first : bisect_left(starts, end)]:
            if rank[start] >= occurrence.position:
                continue
            in_progress = text[start:end]
            if any(separator.startswith(in_progress) for separator in separators):
                return True
        inside = ends[bisect_right(ends, occurrence.start) : bisect_right(ends, end)]
        return any(rank[counting[other].start] < occurrence.position for other in inside)

    return [counting[end] for end in ends if not is_dropped(counting[end])]


def _occurrences(text: str, separators: Sequence[str]) -> list[_Occurrence]:
    """All of them, overlapping ones included, by their ends."""
    found = []
    seen = set()
    for position, separator in enumerate(separators):
        if not separator or separator in seen:
            continue
        seen.add(separator)
        start = text.find(separator)
        while start >= 0:
            found.append(_Occurrence(start, start + len(separator), position))
            start = text.find(separator, start + 1)
    found.sort(key=lambda occurrence: occurrence.end)
    return found
