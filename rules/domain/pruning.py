"""A segment without some of its chats, made from its columns and texts and not from the chats (product.md goal C7).

What comes out is what the other chats alone would have given, byte for byte, unless a chat that goes held the same
codes in another order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rules.domain.columns import Columns, Flags, Segment, SegmentBuilder
from rules.domain.points import ChatFacts
from rules.domain.texts import Texts

_POINT_FLAGS = ("is_round", "tools_available", "mutated", "verified_after_mutation", "verify_failed")
_POINT_INTS = (
    "tool_calls_total", "tool_calls_since_user", "no_progress_rounds", "read_only_rounds", "responses",
    "finish_reason", "message",
)  # fmt: skip
_NO_BUDGET = -(2**31)


@dataclass(frozen=True)
class Selection:
    """The chats of a segment that stay. `chats` and `points` tell of each whether it does.

    `numbers` holds the new number of each chat, -1 for those that go.
    """

    chats: Flags
    points: Flags

    @property
    def numbers(self) -> npt.NDArray[np.int64]:
        return np.where(self.chats, np.cumsum(self.chats) - 1, -1)

    def bits(self, packed: bytes) -> bytes:
        """One bit a point, as they are stored, of the points that stay."""
        flags = np.unpackbits(np.frombuffer(packed, dtype=np.uint8), count=len(self.points))
        return np.packbits(flags[self.points]).tobytes()

    def chat_bits(self, packed: bytes) -> bytes:
        """One bit a chat, of the chats that stay."""
        flags = np.unpackbits(np.frombuffer(packed, dtype=np.uint8), count=len(self.chats))
        return np.packbits(flags[self.chats]).tobytes()


def selection(columns: Columns, kept: Flags) -> Selection:
    """`kept` tells of each chat whether it stays."""
    return Selection(kept, np.repeat(kept, np.diff(columns.chat_starts)))


def pruned(columns: Columns, texts: Texts, stays: Selection) -> Segment:
    """The segment of the chats that stay."""
    builder = SegmentBuilder()
    at = np.flatnonzero(stays.points)
    for name in (*_POINT_FLAGS, *_POINT_INTS):
        builder.columns[name] = columns.field(name)[at].tolist()
    turns = columns.field("turn")[at]
    starts = np.concatenate(([True], turns[1:] != turns[:-1])) if len(turns) else np.zeros(0, dtype=np.bool_)
    builder.columns["turn"] = (np.cumsum(starts) - 1).tolist()
    builder.points, builder.turns = len(at), int(np.count_nonzero(starts))
    builder.chat_sizes = np.diff(columns.chat_starts)[stays.chats].tolist()
    builder.facts = _facts(columns, stays)
    _add_codes(builder, columns, stays, at)
    builder.texts.add_points(_taken(texts.final, texts.final_of[at]))
    builder.texts.add_turns(_taken(texts.user, texts.user_of[turns[starts]]))
    return builder.build()


def _taken(texts: Any, places: npt.NDArray[np.int32]) -> list[str]:
    """The texts at these places; equal ones are one object."""
    distinct, of = np.unique(places, return_inverse=True)
    values = texts.take(pa.array(distinct)).to_pylist()
    return [values[n] for n in of.tolist()]


def _facts(columns: Columns, stays: Selection) -> list[ChatFacts]:
    def flags(name: str) -> list[bool]:
        values: list[bool] = np.unpackbits(columns.field(f"chat.{name}"), count=columns.chats).view(np.bool_).tolist()
        return values

    budget = columns.field("budget").tolist()
    tools, verify = flags("tools_known"), flags("verify_available")
    delivery, delivery_known, audit, audit_known = (
        flags(name) for name in ("delivery", "delivery_known", "audit", "audit_known")
    )
    return [
        ChatFacts(
            tools_known=tools[n],
            tools_available=False,  # each point says it
            verify_available=verify[n],
            step_budget=None if budget[n] == _NO_BUDGET else budget[n],
            require_delivery=delivery[n] if delivery_known[n] else None,
            audit_mode=audit[n] if audit_known[n] else None,
        )
        for n in np.flatnonzero(stays.chats).tolist()
    ]


def _add_codes(builder: SegmentBuilder, columns: Columns, stays: Selection, at: npt.NDArray[np.int64]) -> None:
    """The codes that still occur, numbered in the order in which chats bring them: first what follows points."""
    following = columns.field("next_nudge")
    recorded = {code: columns.recorded(code) for code in columns.codes}
    told = following > 0
    for column in recorded.values():
        told = told | (column > 0)
    chats = columns.field("chat")
    for chat in np.unique(chats[told & stays.points]).tolist():
        start, end = int(columns.chat_starts[chat]), int(columns.chat_starts[chat + 1])
        here = following[start:end]
        names = [columns.codes[n - 1] for n in here[here > 0].tolist()]
        names += [code for code, column in recorded.items() if column[start:end].any()]
        for name in names:
            builder.codes.setdefault(name, len(builder.codes) + 1)
    renumbered = np.array([0, *(builder.codes.get(code, 0) for code in columns.codes)], dtype=np.int64)
    builder.columns["next_nudge"] = renumbered[following[at]].tolist()
    for code in builder.codes:
        counts = recorded[code][at]
        places = np.flatnonzero(counts)
        builder.recorded[code] = list(zip(places.tolist(), counts[places].tolist(), strict=True))
