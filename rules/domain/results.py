"""What a replay found in one chunk, as values that are stored deflated and compared by hash."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

Status = Literal["reproduced", "different", "new", "recorded_only"]
STATUSES: tuple[Status, ...] = ("reproduced", "different", "new", "recorded_only")


class Finding(NamedTuple):
    """A point where a rule fired or a nudge is recorded. Named for good by version, message and stage.

    `code` is the rule that fired, None at a recorded nudge without a firing; `recorded` the code of the nudge that
    the history holds right after the point, None if there is none.
    """

    version: int
    message: int
    stage: Literal["final", "round"]
    turn: int
    code: str | None
    recorded: str | None
    status: Status


@dataclass
class RuleCounts:
    """Of one rule: points of its stage, and what became of it there."""

    points: int = 0
    matches: int = 0
    fires: int = 0
    shadowed: int = 0
    capped: int = 0
    reproduced: int = 0
    different: int = 0
    new: int = 0
    errors: int = 0

    def add(self, other: Mapping[str, int]) -> None:
        for name, value in other.items():
            setattr(self, name, getattr(self, name) + value)


def pack(findings: Sequence[Finding]) -> bytes:
    """The findings, deflated. Equal findings give equal bytes."""
    text = json.dumps([list(f) for f in findings], ensure_ascii=False, separators=(",", ":"))
    return zlib.compress(text.encode(), 6)


def unpack(blob: bytes) -> Iterator[Finding]:
    for row in json.loads(zlib.decompress(blob)):
        yield Finding(*row)


def result_hash(blob: bytes) -> str:
    """SHA-256 of what is packed, whatever the compression made of it."""
    return hashlib.sha256(zlib.decompress(blob)).hexdigest()


def total_digest(hashes: Sequence[str]) -> str:
    """The digest of a whole replay, from those of its chunks in order."""
    return hashlib.sha256("\n".join(hashes).encode()).hexdigest()


def merge_counts(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Counts of several chunks as one: `rules` by code, `recorded_only` by code, `points` by stage."""
    rules: dict[str, RuleCounts] = {}
    recorded: dict[str, int] = {}
    points = {"final": 0, "round": 0}
    for part in parts:
        for code, counts in part.get("rules", {}).items():
            rules.setdefault(code, RuleCounts()).add(counts)
        for code, n in part.get("recorded_only", {}).items():
            recorded[code] = recorded.get(code, 0) + n
        for stage, n in part.get("points", {}).items():
            points[stage] += n
    return {
        "rules": {code: vars(counts).copy() for code, counts in rules.items()},
        "recorded_only": dict(sorted(recorded.items())),
        "points": points,
    }
