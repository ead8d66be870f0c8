"""How good a rule is by what people said of its firings, and how far they agree (product.md section 5.9, goal L3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt
from typing import Final

Z_95: Final = 1.959963984540054
ENOUGH: Final = 20
"""Under so many labels a percentage would say more than is known."""


@dataclass(frozen=True, slots=True)
class Share:
    """`hits` of `n`, with Wilson's interval at 95 %. All three are None when there is nothing to count."""

    hits: int
    n: int

    @property
    def value(self) -> float | None:
        return self.hits / self.n if self.n else None

    @property
    def interval(self) -> tuple[float, float] | None:
        return wilson(self.hits, self.n) if self.n else None

    @property
    def low(self) -> float | None:
        return self.interval[0] if self.interval else None

    @property
    def high(self) -> float | None:
        return self.interval[1] if self.interval else None

    @property
    def is_enough(self) -> bool:
        return self.n >= ENOUGH


def wilson(hits: int, n: int, z: float = Z_95) -> tuple[float, float]:
    """Wilson's score interval of a share (E. B. Wilson, 1927), without continuity correction. `n` is at least 1."""
    share = hits / n
    middle = share + z * z / (2 * n)
    half = z * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    whole = 1 + z * z / n
    # At the ends the two halves cancel, which floating point misses by a hair.
    low = 0.0 if hits == 0 else (middle - half) / whole
    high = 1.0 if hits == n else (middle + half) / whole
    return low, high


def agreed(values: Sequence[str]) -> str | None:
    """What most reviewers said of one item, None when no value leads. Unsure ones have no vote."""
    counts = Counter(value for value in values if value != "unsure").most_common(2)
    if not counts or (len(counts) == 2 and counts[0][1] == counts[1][1]):
        return None
    return counts[0][0]


def precision(items: Sequence[Sequence[str]]) -> Share:
    """Of the firings that are agreed to be right or wrong, the right ones. Each item holds its reviewers' values."""
    settled = [agreed(values) for values in items]
    right, wrong = settled.count("right"), settled.count("wrong")
    return Share(right, right + wrong)


def recall(items: Sequence[Sequence[str]]) -> Share:
    """Of the points where the rule should fire as far as people said so, those where it did."""
    settled = [agreed(values) for values in items]
    right, missed = settled.count("right"), settled.count("missed")
    return Share(right, right + missed)


def cohen(pairs: Sequence[tuple[Hashable, Hashable]]) -> float | None:
    """Cohen's kappa (1960) of two reviewers over the items that both judged; None without items.

    1 when both always say the same, also when they only ever say one thing.
    """
    if not pairs:
        return None
    n = len(pairs)
    same = sum(a == b for a, b in pairs) / n
    first, second = Counter(a for a, _b in pairs), Counter(b for _a, b in pairs)
    by_chance = sum(first[value] * second[value] for value in first) / (n * n)
    return 1.0 if by_chance == 1 else (same - by_chance) / (1 - by_chance)


def fleiss(items: Sequence[Sequence[Hashable]]) -> float | None:
    """Fleiss' kappa (1971) over the items with at least two judgements; None when there is none.

    Items may have different numbers of judgements: an item's agreement is that of its own pairs.
    """
    judged = [Counter(values) for values in items if len(values) >= 2]
    if not judged:
        return None
    within = [
        sum(count * (count - 1) for count in counts.values()) / (counts.total() * (counts.total() - 1))
        for counts in judged
    ]
    same = sum(within) / len(within)
    total = sum((counts for counts in judged), Counter[Hashable]())
    by_chance = sum((count / total.total()) ** 2 for count in total.values())
    return 1.0 if by_chance == 1 else (same - by_chance) / (1 - by_chance)


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """Two reviewers: how many items both judged, on how many they said the same, and Cohen's kappa."""

    first: str
    second: str
    items: int
    same: int
    kappa: float | None


def pairwise(items: Sequence[Mapping[str, str]]) -> list[PairAgreement]:
    """The agreement of every two reviewers who judged an item in common. Items map reviewers to values."""
    people = sorted({person for item in items for person in item})
    found = []
    for first, second in combinations(people, 2):
        pairs = [(item[first], item[second]) for item in items if first in item and second in item]
        if pairs:
            found.append(PairAgreement(first, second, len(pairs), sum(a == b for a, b in pairs), cohen(pairs)))
    return found
