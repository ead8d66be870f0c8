"""Findings of a replay from its packed outcomes: no row a firing (rule-engine.md section 7.2)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rules import kept_columns
from rules.domain.comparing import NOWHERE, translation
from rules.domain.masks import Points
from rules.domain.replaying import unpack_outcome
from rules.domain.results import Finding, Status
from rules.domain.settling import NONE, Outcome, Places, Rule
from rules.domain.walk import status_of
from rules.models import Replay, ReplayChunk, Segment, SegmentChat
from rules.queries.point_sets import recorded_at, turn_of
from rules.queries.replays import compared, manifest
from rules.queries.segments import Part

_STRAY = "s"


@dataclass
class _Chunk:
    """A chunk that is done, with its points."""

    row: ReplayChunk
    points: Points
    rules: list[Rule]
    others: list[Rule] | None

    @cached_property
    def outcome(self) -> Outcome:
        return unpack_outcome(bytes(self.row.result or b""))

    @cached_property
    def compared(self) -> Outcome | None:
        """The outcome of the other rule set, as places in its own list."""
        return None if self.row.compared is None else unpack_outcome(bytes(self.row.compared))

    @cached_property
    def translated(self) -> Outcome | None:
        """The same as places in this replay's list; NOWHERE for rules that it lacks."""
        if self.compared is None:
            return None
        return translation(self.others or [], self.rules)[self.compared]

    @cached_property
    def chats(self) -> dict[int, SegmentChat]:
        rows = SegmentChat.objects.filter(segment=self.row.segment_id)
        return {row.number: row for row in rows}


def _chunks(replay: Replay, first: int = 0) -> Iterator[_Chunk]:
    """Chunks that are done, in their order."""
    frozen = manifest(replay)
    rules = kept_columns.engine_rules(frozen.rules)
    against = compared(replay)
    others = kept_columns.engine_rules(against.rules) if against is not None else None
    rows = ReplayChunk.objects.filter(replay=replay, status="done", number__gte=first, segment__isnull=False)
    rows = rows.select_related("segment", "tenant").defer("segment__scalars", "segment__people")
    for row in rows.order_by("number").iterator(chunk_size=4):
        segment = row.segment
        assert segment is not None
        part = Part(segment.pk, segment.digest, None if row.scope is None else bytes(row.scope), 0, 0)
        [points] = kept_columns.views_of(row.tenant, [part], frozen.defaults)
        yield _Chunk(row, points, rules, others)


def findings(replay: Replay, *, code: str, status: str, after: str) -> Iterator[tuple[str, Finding]]:
    chunk_number, _dash, offset = after.partition("-")
    first = int(chunk_number) if chunk_number.isdigit() else 0
    for chunk in _chunks(replay, first):
        number = chunk.row.number
        resumed = number == first and bool(offset)
        if _may_hold(chunk.row, code, status):
            seen = int(offset) if resumed and offset.isdigit() else -1
            if not (resumed and offset.startswith(_STRAY)):
                places = _places(chunk, code, status)
                for place in places[np.searchsorted(places, seen, side="right") :].tolist():
                    yield f"{number}-{place}", _finding(chunk, place)
            if status in ("", "recorded_only"):
                seen_strays = int(offset[1:]) if resumed and offset[1:].isdigit() and offset[:1] == _STRAY else -1
                yield from _strays(chunk, code, seen_strays)


def _may_hold(row: ReplayChunk, code: str, status: str) -> bool:
    """Whether the counts of the chunk leave room for such a finding."""
    if status in ("", "gone"):
        return True
    counts = json.loads(row.counts)
    if status == "recorded_only":
        alone = counts["recorded_only"]
        return bool(alone.get(code)) if code else bool(alone)
    of_rules = [counts["rules"].get(code, {})] if code else counts["rules"].values()
    return any(of_rule.get(status) for of_rule in of_rules)


def _places(chunk: _Chunk, code: str, status: str) -> Places:
    """The points of the chunk that the filters leave, ascending."""
    columns, outcome = chunk.points.columns, chunk.outcome
    following = columns.field("next_nudge")
    numbers = np.array([columns.code_number(rule.code) for rule in chunk.rules] + [-1], dtype=np.int64)
    fired = outcome != NONE
    own = numbers[np.where(fired, outcome, len(chunk.rules))]
    match status:
        case "reproduced":
            found = fired & (following == own)
        case "different":
            found = fired & (following > 0) & (following != own)
        case "new":
            found = fired & (following == 0)
        case "recorded_only":
            found = ~fired & (following > 0)
        case "newly" | "gone":
            found = _changed(chunk, status)
        case _:
            found = fired | (following > 0)
    if code and status != "gone":
        at = next((n for n, rule in enumerate(chunk.rules) if rule.code == code), NOWHERE)
        found = found & ((outcome == at) | (~fired & (following == columns.code_number(code))))
    elif code:
        found = found & (_compared_codes(chunk) == code)
    if chunk.points.scope is not None:
        found = found & chunk.points.scope
    return np.flatnonzero(found)


def _changed(chunk: _Chunk, status: str) -> Any:
    other = chunk.translated
    if other is None:
        return np.zeros(chunk.points.columns.points, dtype=np.bool_)
    if status == "newly":
        return (chunk.outcome != NONE) & (chunk.outcome != other)
    return (other != NONE) & (chunk.outcome != other)


def _compared_codes(chunk: _Chunk) -> Any:
    """The code that the other rule set fires at each point."""
    codes = np.array([rule.code for rule in chunk.others or ()] + [""], dtype=object)
    other = chunk.compared
    if other is None:
        return np.full(chunk.points.columns.points, "", dtype=object)
    return codes[np.where(other == NONE, len(codes) - 1, other)]


def _finding(chunk: _Chunk, place: int) -> Finding:
    columns = chunk.points.columns
    chat = chunk.chats[int(columns.field("chat")[place])]
    fired = int(chunk.outcome[place])
    code = None if fired == NONE else chunk.rules[fired].code
    recorded = recorded_at(chunk.points, place)
    other = None if chunk.compared is None else int(chunk.compared[place])
    return Finding(
        version=chat.version_id,
        message=int(columns.field("message")[place]),
        stage="round" if columns.field("is_round")[place] else "final",
        turn=turn_of(chunk.points, chat, place),
        code=code,
        recorded=recorded,
        status=status_of(code, recorded),
        compared=None if other is None or other == NONE else (chunk.others or [])[other].code,
    )


def _strays(chunk: _Chunk, code: str, seen: int) -> Iterator[tuple[str, Finding]]:
    segment = chunk.row.segment
    assert segment is not None
    kept = None if chunk.row.scope is None else bytes(chunk.row.scope)
    for at, (chat, message, turn, recorded) in enumerate(strays_of(segment, kept)):
        if at <= seen or (code and recorded != code):
            continue
        status: Status = "recorded_only"
        version = chunk.chats[chat].version_id
        yield f"{chunk.row.number}-{_STRAY}{at}", Finding(version, message, "", turn, None, recorded, status)


def strays_of(segment: Segment, kept: bytes | None) -> list[tuple[int, int, int, str]]:
    """Recorded nudges without a point right before them, of the chats that belong: chat, message, turn, code."""
    return [
        (chat, message, turn, code)
        for chat, message, turn, code in json.loads(segment.strays)
        if kept is None or kept[chat >> 3] & 128 >> (chat & 7)
    ]


# --- two replays


def changes(left: Replay, right: Replay) -> tuple[dict[str, tuple[int, int]], int]:
    """Firings that only the right one has, and only the left one, by code; and the number of chats lined up.

    Chats are lined up by what they hold, whatever segments they lay in.
    """
    rules_left, rules_right = (kept_columns.engine_rules(manifest(replay).rules) for replay in (left, right))
    known: dict[bytes, Any] = {}
    for contents, decided in _decided(left):
        known[contents] = decided
    table = translation(rules_left, rules_right)
    newly = np.zeros(len(rules_right) + 1, dtype=np.int64)
    gone = np.zeros(len(rules_left) + 1, dtype=np.int64)
    shared = 0
    olds: list[Any] = []
    news: list[Any] = []
    for contents, decided in _decided(right):
        before = known.get(contents)
        if before is None or len(before) != len(decided):
            continue
        shared += 1
        olds.append(before)
        news.append(decided)
    if shared:
        old, new = np.concatenate(olds), np.concatenate(news)
        differs = np.flatnonzero(table[old] != new)
        newly += np.bincount(np.minimum(new[differs], len(rules_right)), minlength=len(newly))
        gone += np.bincount(np.minimum(old[differs], len(rules_left)), minlength=len(gone))
    found: dict[str, tuple[int, int]] = {}
    for rule, count in zip(rules_right, newly.tolist(), strict=False):
        found[rule.code] = (count, 0)
    for rule, count in zip(rules_left, gone.tolist(), strict=False):
        found[rule.code] = (found.get(rule.code, (0, 0))[0], count)
    return found, shared


def _decided(replay: Replay) -> Iterator[tuple[bytes, Any]]:
    """What was decided at the points of each chat, by what the chat holds."""
    for chunk in _chunks(replay):
        columns = chunk.points.columns
        starts = columns.chat_starts
        assert chunk.row.segment is not None
        contents = bytes(chunk.row.segment.contents)
        for chat in chats_in(chunk.points, chunk.row.scope):
            start, end = int(starts[chat]), int(starts[chat + 1])
            yield contents[32 * chat : 32 * chat + 32], chunk.outcome[start:end]


def chats_in(points: Points, kept: Any) -> Sequence[int]:
    """The numbers of the segment's chats that belong."""
    count = points.columns.chats
    if kept is None:
        return range(count)
    bits = np.unpackbits(np.frombuffer(bytes(kept), dtype=np.uint8), count=count)
    numbers: list[int] = np.flatnonzero(bits).tolist()
    return numbers
