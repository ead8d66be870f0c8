"""What came after firings that the history doesn't hold, and where a rule can't see (continuation.md section 14).

A firing is a statement about its point. What the model went on to do without the nudge tells whether it was needed:
a round rule whose row ends by itself, or a final rule after which nobody has to ask again, is early or idle.
`rules.domain.sequels` counts it over columns; here are the counts as values, which need no numeric library.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass
class Aftermath:
    """Counts for one rule, over some chats.

    Of `new` final firings: what the first response of the next turn did (`next_acted`, `next_finished`,
    `next_talked`; `next_none` when the chat ends there), and whether the person had to ask again, which is when the
    next turn says to go ahead or says the same once more. Of `new` round firings: whether the row ended by itself
    within two rounds, went on, or isn't known because the turn ends. `ceiling_turns` are turns in which the rule
    matched above its cap. `blind_chats` counts, by field, chats in which the rule reads a field that is unknown at
    all points of its stage.
    """

    chats: int = 0
    turns: int = 0
    fires: int = 0
    new_final: int = 0
    next_acted: int = 0
    next_finished: int = 0
    next_talked: int = 0
    next_none: int = 0
    asked_again: int = 0
    new_round: int = 0
    ended_by_itself: int = 0
    went_on: int = 0
    ended_unknown: int = 0
    ceiling_turns: int = 0
    repeats_same: int = 0
    repeats_changing: int = 0
    blind: int = 0
    blind_chats: Counter[str] = field(default_factory=Counter)

    def add(self, other: Self) -> None:
        for name, value in vars(other).items():
            if isinstance(value, Counter):
                getattr(self, name).update(value)
            else:
                setattr(self, name, getattr(self, name) + value)

    @property
    def per_hundred_turns(self) -> float | None:
        return 100 * self.fires / self.turns if self.turns else None

    @property
    def blind_fields(self) -> list[tuple[str, int]]:
        """The unknown fields with their chats, the most frequent first."""
        return sorted(self.blind_chats.items(), key=lambda item: (-item[1], item[0]))


Group = tuple[str, str]
"""The model and the language of chats."""


def by_group(parts: Iterable[Mapping[str, Any]], codes: Iterable[str]) -> dict[Group, dict[str, Aftermath]]:
    """What `rules.domain.sequels.came_after` counted in some chunks, added up; every group has every one of the codes.

    Parts without groups, of chunks whose chats can't be walked any more, add nothing.
    """
    found: dict[Group, dict[str, Aftermath]] = {}
    wanted = list(codes)
    for part in parts:
        groups = [(str(model), str(language)) for model, language, _chats, _turns in part.get("groups", ())]
        for group, (_model, _language, chats, turns) in zip(groups, part.get("groups", ()), strict=True):
            of_group = found.setdefault(group, {code: Aftermath() for code in wanted})
            for code in wanted:
                of_group[code].add(Aftermath(chats=chats, turns=turns))
        for code, of_groups in part.get("rules", {}).items():
            for place, counts in of_groups.items():
                found[groups[int(place)]][code].add(_counts(counts))
    return found


def _counts(values: Mapping[str, Any]) -> Aftermath:
    fields = Counter(values.get("blind_chats", {}))
    return Aftermath(**{name: n for name, n in values.items() if name != "blind_chats"}, blind_chats=fields)


def merged(parts: Iterable[Mapping[str, Aftermath]]) -> dict[str, Aftermath]:
    """The counts of several groups together."""
    total: dict[str, Aftermath] = {}
    for part in parts:
        for code, counts in part.items():
            total.setdefault(code, Aftermath()).add(counts)
    return total
