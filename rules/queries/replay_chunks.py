"""The chunks of a replay that are done, with their columns and outcomes once somebody needs them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rules import kept_columns
from rules.domain.comparing import translation
from rules.domain.masks import Points
from rules.domain.points import Defaults
from rules.domain.replaying import unpack_outcome
from rules.domain.settling import Outcome, Rule
from rules.models import Replay, ReplayChunk, Segment, SegmentChat
from rules.queries.replays import compared, manifest
from rules.queries.segments import Part

_FEW_CHATS = 200


@dataclass
class DoneChunk:
    """A chunk that is done, with its points once somebody needs them."""

    row: ReplayChunk
    defaults: Defaults
    rules: list[Rule]
    others: list[Rule] | None

    @cached_property
    def segment(self) -> Segment:
        assert self.row.segment is not None, "a chunk that is done has its segment"
        return self.row.segment

    @cached_property
    def points(self) -> Points:
        kept = None if self.row.scope is None else bytes(self.row.scope)
        part = Part(self.segment.pk, self.segment.digest, kept, 0, 0)
        [points] = kept_columns.views_of(self.row.tenant, [part], self.defaults)
        return points

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

    def chats_of(self, numbers: Collection[int]) -> Mapping[int, SegmentChat]:
        """The chats of these numbers: a page needs a few of thousands."""
        if "chats" in self.__dict__ or len(numbers) > _FEW_CHATS:
            return self.chats
        rows = SegmentChat.objects.filter(segment=self.row.segment_id, number__in=sorted(numbers))
        return {row.number: row for row in rows}


def done_chunks(replay: Replay, first: int = 0) -> Iterator[DoneChunk]:
    """Chunks that are done, in their order."""
    frozen = manifest(replay)
    rules = kept_columns.engine_rules(frozen.rules)
    against = compared(replay)
    others = kept_columns.engine_rules(against.rules) if against is not None else None
    rows = ReplayChunk.objects.filter(replay=replay, status="done", number__gte=first, segment__isnull=False)
    unread = ("scalars", "people", "tools", "sequels")
    rows = rows.select_related("segment", "tenant").defer("aftermath", *(f"segment__{name}" for name in unread))
    for row in rows.order_by("number").iterator(chunk_size=4):
        yield DoneChunk(row, frozen.defaults, rules, others)


def done_chunk(row: ReplayChunk) -> DoneChunk:
    """The same of one row."""
    frozen, against = manifest(row.replay), compared(row.replay)
    others = kept_columns.engine_rules(against.rules) if against is not None else None
    return DoneChunk(row, frozen.defaults, kept_columns.engine_rules(frozen.rules), others)


def strays_of(segment: Segment, kept: bytes | None) -> list[tuple[int, int, int, str]]:
    """Recorded nudges without a point right before them, of the chats that belong: chat, message, turn, code."""
    return [
        (chat, message, turn, code)
        for chat, message, turn, code in json.loads(segment.strays)
        if kept is None or kept[chat >> 3] & 128 >> (chat & 7)
    ]


def chats_in(points: Points, kept: Any) -> Sequence[int]:
    """The numbers of the segment's chats that belong."""
    count = points.columns.chats
    if kept is None:
        return range(count)
    bits = np.unpackbits(np.frombuffer(bytes(kept), dtype=np.uint8), count=count)
    numbers: list[int] = np.flatnonzero(bits).tolist()
    return numbers
