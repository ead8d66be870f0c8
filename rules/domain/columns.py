"""Points as columns: the segment, its stored form, and what is unpacked from it (rule-engine.md section 5).

A segment holds up to 65,536 consecutive points of whole chats and is never changed. Its scalars are one blob of 12-16
bytes a point, plus one for each code that is recorded; its texts are an Arrow file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from rules.domain.language.environment import FINISH_REASONS
from rules.domain.points import NO_DEFAULTS, ChatFacts, Defaults, Walk
from rules.domain.texts import TextsBuilder
from rules.domain.turns import WALKER_VERSION

Column = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]

SEGMENT_POINTS: Final = 65_536
STRIPES: Final = 16
_LOW_BUDGET: Final = 2
_MAX_BUDGET: Final = 2**31 - 1
_NO_BUDGET: Final = -(2**31)

_POINT_FLAGS: Final = ("is_round", "tools_available", "mutated", "verified_after_mutation", "verify_failed")
_POINT_INTS: Final = (
    "tool_calls_total", "tool_calls_since_user", "no_progress_rounds", "read_only_rounds", "responses",
    "finish_reason", "next_nudge", "message",
)  # fmt: skip
_CHAT_FLAGS: Final = ("tools_known", "verify_available", "delivery_known", "audit_known", "delivery", "audit")
_REASON_CODES: Final[Mapping[str | None, int]] = {None: 0, **{r: n for n, r in enumerate(FINISH_REASONS, start=1)}}
_UNKNOWN_WITHOUT: Final = {
    "tools_available": "tools_known",
    "budget_low": "budget_known",
    "mutated": "verify_available",
    "verified_after_mutation": "verify_available",
    "verify_failed": "verify_available",
}
MAYBE_UNKNOWN: Final = frozenset({"finish_reason", *_UNKNOWN_WITHOUT})
"""The fields whose value a history may not tell."""
_MAGIC: Final = b"ELC1"


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment as it is stored. `digest` names its content: equal digests, equal columns and texts."""

    points: int
    chats: int
    scalars: bytes
    texts: bytes

    @property
    def texts_hash(self) -> str:
        return hashlib.sha256(self.texts).hexdigest()

    @property
    def digest(self) -> str:
        return segment_digest(self.scalars, self.texts_hash)


def segment_digest(scalars: bytes, texts_hash: str) -> str:
    """SHA-256 of the scalars, the hash of the texts and the version of the walker."""
    whole = hashlib.sha256(scalars)
    whole.update(f"{texts_hash}:{WALKER_VERSION}".encode())
    return whole.hexdigest()


# --- making


class SegmentBuilder:
    """Collects the points of one chat after the other."""

    def __init__(self) -> None:
        self.points = 0
        self.turns = 0
        self.columns: dict[str, list[Any]] = {name: [] for name in (*_POINT_FLAGS, *_POINT_INTS, "turn")}
        self.facts: list[ChatFacts] = []
        self.chat_sizes: list[int] = []
        self.codes: dict[str, int] = {}
        self.recorded: dict[str, list[tuple[int, int]]] = {}
        self.texts = TextsBuilder()

    def add(self, walk: Walk) -> None:
        """Add all points of a chat; a chat without points counts as a chat."""
        self.facts.append(walk.facts)
        self.chat_sizes.append(len(walk.points))
        if not walk.points:
            return
        fields = dict(zip(walk.points[0]._fields, zip(*walk.points, strict=True), strict=True))
        columns = self.columns
        columns["is_round"] += [stage == "round" for stage in fields["stage"]]
        columns["finish_reason"] += [_REASON_CODES[reason] for reason in fields["finish_reason"]]
        columns["next_nudge"] += [0 if code is None else self._code(code) for code in fields["next_nudge"]]
        for name in (*_POINT_FLAGS[1:], *_POINT_INTS[:5], "message"):
            columns[name] += fields[name]
        turns = fields["turn"]
        starts = [at for at, turn in enumerate(turns) if at == 0 or turn != turns[at - 1]]
        number = self.turns - 1
        for at, turn in enumerate(turns):
            number += at == 0 or turn != turns[at - 1]
            columns["turn"].append(number)
        self.turns += len(starts)
        self.texts.add_points(fields["final_text"])
        self.texts.add_turns([fields["user_text"][at] for at in starts])
        for at, counts in enumerate(fields["recorded"]):
            for code, count in counts.items():
                self._code(code)
                self.recorded.setdefault(code, []).append((self.points + at, count))
        self.points += len(walk.points)

    def _code(self, code: str) -> int:
        return self.codes.setdefault(code, len(self.codes) + 1)

    def build(self) -> Segment:
        """The segment in its stored form. Equal chats give equal bytes."""
        arrays: dict[str, Column] = {}
        for name in _POINT_FLAGS:
            arrays[name] = np.packbits(np.array(self.columns[name], dtype=np.bool_))
        for name in _POINT_INTS:
            arrays[name] = _narrow(np.array(self.columns[name], dtype=np.int64))
        arrays["turn"] = np.array(self.columns["turn"], dtype=np.int32)
        arrays["chat"] = _narrow(np.repeat(np.arange(len(self.facts)), self.chat_sizes))
        for number, code in enumerate(self.codes, start=1):
            column = np.zeros(self.points, dtype=np.int64)
            for at, count in self.recorded.get(code, ()):
                column[at] = count
            arrays[f"recorded.{number}"] = _narrow(column)
        arrays["budget"] = np.array([_budget(f.step_budget) for f in self.facts], dtype=np.int32)
        flags = {
            "tools_known": [f.tools_known for f in self.facts],
            "verify_available": [f.verify_available for f in self.facts],
            "delivery_known": [f.require_delivery is not None for f in self.facts],
            "audit_known": [f.audit_mode is not None for f in self.facts],
            "delivery": [bool(f.require_delivery) for f in self.facts],
            "audit": [bool(f.audit_mode) for f in self.facts],
        }
        arrays |= {f"chat.{name}": np.packbits(np.array(flags[name], dtype=np.bool_)) for name in _CHAT_FLAGS}
        header = {"points": self.points, "chats": len(self.facts), "turns": self.turns, "codes": list(self.codes)}
        return Segment(self.points, len(self.facts), packed(header, arrays), self.texts.build())


def _budget(budget: int | None) -> int:
    return _NO_BUDGET if budget is None else min(max(budget, _NO_BUDGET + 1), _MAX_BUDGET)


def _narrow(values: Column) -> Column:
    """The same non-negative numbers in the narrowest unsigned type that holds the widest."""
    return values.astype(np.min_scalar_type(int(values.max()) if len(values) else 0))


def packed(header: Mapping[str, Any], arrays: Mapping[str, Column]) -> bytes:
    """Named arrays with a header as one blob, which `unpacked` reads without copying."""
    layout = {name: [array.dtype.str, len(array)] for name, array in arrays.items()}
    text = json.dumps({**header, "arrays": layout}, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 8) % 8)
    parts = [_MAGIC, len(text).to_bytes(4, "little"), text]
    for array in arrays.values():
        data = array.tobytes()
        parts += [data, bytes(-len(data) % 8)]
    return b"".join(parts)


def build_segments(walks: Iterable[Walk], limit: int = SEGMENT_POINTS) -> Iterator[Segment]:
    """Segments of at most `limit` points, cut between chats; a chat with more points has a segment of its own."""
    builder = SegmentBuilder()
    for walk in walks:
        if builder.points and builder.points + len(walk.points) > limit:
            yield builder.build()
            builder = SegmentBuilder()
        builder.add(walk)
    if builder.facts:
        yield builder.build()


# --- reading


class DamagedSegment(ValueError):
    """A blob that is no segment, or not whole."""


class Columns:
    """The columns of a segment, unpacked, with the gaps of chats filled by defaults.

    Columns have one entry a point. `codes` are the rule codes that occur in the history; `next_nudge` holds 0 or the
    place of a code, counted from 1. `turn` numbers the turns of the segment from 0, `chat` its chats.
    """

    def __init__(self, scalars: bytes, defaults: Defaults = NO_DEFAULTS) -> None:
        header, self._arrays = unpacked(scalars)
        self.points: int = header["points"]
        self.chats: int = header["chats"]
        self.turns: int = header["turns"]
        self.codes: tuple[str, ...] = tuple(header["codes"])
        self.defaults = defaults
        self._fields: dict[str, Column] = {}

    def field(self, name: str) -> Column:
        """A field of `ctx` or another column, by its name; booleans as bool, `finish_reason` as codes."""
        if name not in self._fields:
            self._fields[name] = self._made(name)
        return self._fields[name]

    def _made(self, name: str) -> Column:
        if name in _POINT_FLAGS:
            return self._bits(name, self.points)
        match name:
            case "budget_low":
                budget = self._arrays["budget"]
                default = self.defaults.step_budget
                # An unknown budget is one that is never reached.
                budget = np.where(budget == _NO_BUDGET, _MAX_BUDGET if default is None else _budget(default), budget)
                return self._of_chats(budget) - self.field("responses").astype(np.int64) <= _LOW_BUDGET
            case "require_delivery":
                return self._of_chats(self._chat_setting("delivery", self.defaults.require_delivery))
            case "audit_mode":
                return self._of_chats(self._chat_setting("audit", self.defaults.audit_mode))
            case "budget_known":
                known = self._arrays["budget"] != _NO_BUDGET
                return self._of_chats(known | (self.defaults.step_budget is not None))
            case "tools_known" | "verify_available":
                return self._of_chats(self._bits(f"chat.{name}", self.chats))
            case _:
                return self._arrays[name]

    def _chat_setting(self, name: str, default: bool | None) -> Flags:
        value, known = self._bits(f"chat.{name}", self.chats), self._bits(f"chat.{name}_known", self.chats)
        return np.where(known, value, bool(default))

    def _bits(self, name: str, count: int) -> Flags:
        return np.unpackbits(self._arrays[name], count=count).view(np.bool_)

    def _of_chats(self, values: Column) -> Column:
        return np.repeat(values, np.diff(self.chat_starts))

    def recorded(self, code: str) -> Column:
        """How often the code's nudge is recorded in the turn so far; zeros for a code that never is."""
        if code not in self.codes:
            return self.zeros
        return self._arrays[f"recorded.{self.codes.index(code) + 1}"]

    def code_number(self, code: str) -> int:
        """The number that `next_nudge` holds for the code, or -1 for a code that does not occur."""
        return self.codes.index(code) + 1 if code in self.codes else -1

    @cached_property
    def zeros(self) -> Column:
        return np.zeros(self.points, dtype=np.uint8)

    @cached_property
    def chat_starts(self) -> Column:
        """The first point of each chat, and the number of points."""
        return np.searchsorted(self._arrays["chat"], np.arange(self.chats + 1)).astype(np.int64)

    @cached_property
    def turn_starts(self) -> Column:
        """The first point of each turn, and the number of points."""
        return np.searchsorted(self._arrays["turn"], np.arange(self.turns + 1)).astype(np.int64)

    @cached_property
    def stripes(self) -> tuple[int, ...]:
        """Where each of the sixteen stripes ends: about a sixteenth of the points further, between two chats."""
        starts = self.chat_starts
        wanted = np.arange(1, STRIPES) * self.points // STRIPES
        cuts = starts[np.searchsorted(starts, wanted)]
        return (*(int(cut) for cut in cuts), self.points)

    def in_stage(self, stage: str) -> Flags:
        """Which points are of the stage."""
        is_round = self.field("is_round")
        if stage == "round":
            return is_round
        if "is_final" not in self._fields:
            self._fields["is_final"] = ~is_round
        return self._fields["is_final"]


def is_known(columns: Columns, field: str) -> Flags:
    """At which points the history tells the value of a field; elsewhere it is only assumed (section 6)."""
    if field == "finish_reason":
        return np.asarray(columns.field("finish_reason") > 0, dtype=np.bool_)
    if field in _UNKNOWN_WITHOUT:
        return columns.field(_UNKNOWN_WITHOUT[field])
    return np.ones(columns.points, dtype=np.bool_)


def unpacked(blob: bytes) -> tuple[dict[str, Any], dict[str, Column]]:
    """What was packed. Raises DamagedSegment."""
    try:
        if blob[:4] != _MAGIC:
            raise DamagedSegment("not a segment")
        at = 8 + int.from_bytes(blob[4:8], "little")
        header = json.loads(blob[8:at])
        arrays: dict[str, Column] = {}
        for name, (type_, count) in header["arrays"].items():
            arrays[name] = np.frombuffer(blob, dtype=np.dtype(type_), count=count, offset=at)
            at += -(-arrays[name].nbytes // 8) * 8
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedSegment(str(error)) from None
    return header, arrays
