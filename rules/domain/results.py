"""What a replay found, as values: the counts of its chunks as one, and a digest that segments don't change.

Nothing here needs the numeric libraries.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

Status = Literal["reproduced", "different", "new", "recorded_only"]
STATUSES: Final[tuple[Status, ...]] = ("reproduced", "different", "new", "recorded_only")
# What is counted for each rule; the last two only where there is a rule set to compare with.
COUNTS: Final = (
    "points", "matches", "fires", "shadowed", "capped", "reproduced", "different", "new", "newly", "gone",
)  # fmt: skip
_HASH_BYTES: Final = 32


class Finding(NamedTuple):
    """A point where a rule fired or a nudge is recorded. Named for good by version, message and stage.

    `code` is the rule that fired, None at a recorded nudge without a firing; `recorded` the code of the nudge that
    the history holds right after the point, None if there is none. `compared` is the rule that the other rule set
    fires there. A recorded nudge without a point before it has no stage, and names its own message.
    """

    version: int
    message: int
    stage: Literal["final", "round", ""]
    turn: int
    code: str | None
    recorded: str | None
    status: Status | None
    compared: str | None = None


def merge_counts(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Counts of several chunks as one: `rules` by code, `recorded_only` by code, `points` by stage, `gone` by code."""
    rules: dict[str, dict[str, int]] = {}
    recorded: dict[str, int] = {}
    gone: dict[str, int] = {}
    points = {"final": 0, "round": 0}
    for part in parts:
        for code, counts in part.get("rules", {}).items():
            of_rule = rules.setdefault(code, {})
            for name, n in counts.items():
                of_rule[name] = of_rule.get(name, 0) + n
        for sums, name in ((recorded, "recorded_only"), (gone, "gone")):
            for code, n in part.get(name, {}).items():
                sums[code] = sums.get(code, 0) + n
        for stage, n in part.get("points", {}).items():
            points[stage] += n
    return {"rules": rules, "recorded_only": dict(sorted(recorded.items())), "points": points, "gone": gone}


# --- digests
#
# A result is named by what was decided in each chat, whatever segments the chats lay in and in whatever order: each
# chat's digest counts as a number, and the numbers are added up.


def chats_digest(chats: Iterable[tuple[bytes, bytes]]) -> str:
    """The sum of the digests of some chats, each given by its content hash and what was decided at its points."""
    total = 0
    for content, decided in chats:
        total += int.from_bytes(hashlib.sha256(content + decided).digest(), "big")
    return _as_text(total)


def sum_of_digests(digests: Sequence[str]) -> str:
    """The digest of a whole replay from those of its chunks, in any order."""
    return _as_text(sum(int(digest, 16) for digest in digests))


def _as_text(total: int) -> str:
    return (total % (1 << 8 * _HASH_BYTES)).to_bytes(_HASH_BYTES, "big").hex()
