"""What came after firings, over columns (continuation.md section 14): exact at any size, since no chat is read again.

Beside the columns of a segment stand its sequels: what no rule may read, and what the report on a replay needs. Whose
model the chat was, how many turns it had, which turn follows which, and what repeated what.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from rules.domain.columns import MAYBE_UNKNOWN, Columns, Flags, is_known, packed, unpacked
from rules.domain.language import check
from rules.domain.language.environment import FINISH_REASONS
from rules.domain.language.tree import Node, fields_read
from rules.domain.masks import Points, mask
from rules.domain.phrases.folding import fold
from rules.domain.points import Walk
from rules.domain.pruning import Selection
from rules.domain.settling import Outcome, Places, Rule

Ints = npt.NDArray[np.int64]

_TOOL_CALLS: Final = FINISH_REASONS.index("tool_calls") + 1


def _tree_of(source: str) -> Node:
    tree = check(source).tree
    assert tree is not None, "a constant expression"
    return tree


GO_AHEAD: Final = _tree_of("is_go_ahead(ctx.user_text)")
"""A text term whose bits the report needs beside those of the rules."""


class SequelsBuilder:
    """Collects the sequels of one chat after the other, in the order in which its points are collected."""

    def __init__(self) -> None:
        self.groups: dict[tuple[str, str], int] = {}
        self.group_of: list[int] = []
        self.turns: list[int] = []
        self.same_results: list[bool] = []
        self.follows: list[bool] = []
        self.said_again: list[bool] = []

    def add(self, walk: Walk, model: str, language: str) -> None:
        """Add a chat; `model` and `language` are what the report groups by."""
        self.group_of.append(self.groups.setdefault((model, language), len(self.groups)))
        self.turns.append(len(walk.turns))
        self.same_results += [bool(point.same_results) for point in walk.points]
        told = [turn for turn in walk.turns if turn.first_point < turn.end_point]
        texts = [fold(walk.points[turn.first_point].user_text) for turn in told]
        for at, turn in enumerate(told):
            follows = at + 1 < len(told) and told[at + 1].number == turn.number + 1
            self.follows.append(follows)
            self.said_again.append(follows and texts[at + 1] == texts[at])

    def build(self) -> bytes:
        """The sequels in their stored form."""
        arrays: dict[str, Any] = {
            "group": np.array(self.group_of, dtype=np.int32),
            "turns": np.array(self.turns, dtype=np.int32),
        }
        for name in ("same_results", "follows", "said_again"):
            arrays[name] = np.packbits(np.array(getattr(self, name), dtype=np.bool_))
        return packed({"groups": [list(group) for group in self.groups]}, arrays)


@dataclass(frozen=True, slots=True)
class Sequels:
    """The sequels of a segment, unpacked.

    `groups` are pairs of model and language; `group` holds the place of each chat's, `turns` its number of turns.
    `same_results` has an entry a point: a round that repeats the one before, with the same results. `follows` and
    `said_again` have an entry a turn with points: the chat's next turn has points, and asks for the same once more.
    """

    groups: tuple[tuple[str, str], ...]
    group: npt.NDArray[np.int32]
    turns: npt.NDArray[np.int32]
    same_results: Flags
    follows: Flags
    said_again: Flags

    @classmethod
    def read(cls, blob: bytes, columns: Columns) -> Sequels:
        """Those that belong to these columns. Raises DamagedSegment."""
        header, arrays = unpacked(blob)

        def flags(name: str, count: int) -> Flags:
            return np.unpackbits(arrays[name], count=count).view(np.bool_)

        return cls(
            tuple((model, language) for model, language in header["groups"]),
            arrays["group"],
            arrays["turns"],
            flags("same_results", columns.points),
            flags("follows", columns.turns),
            flags("said_again", columns.turns),
        )

    def pruned(self, columns: Columns, stays: Selection) -> bytes:
        """In their stored form without the chats that go, as the others alone would have given them."""
        builder = SequelsBuilder()
        turns_stay = stays.points[columns.turn_starts[:-1]]
        for group in self.group[stays.chats].tolist():
            builder.group_of.append(builder.groups.setdefault(self.groups[group], len(builder.groups)))
        builder.turns = self.turns[stays.chats].tolist()
        builder.same_results = self.same_results[stays.points].tolist()
        builder.follows = self.follows[turns_stay].tolist()
        builder.said_again = self.said_again[turns_stay].tolist()
        return builder.build()


# --- counting


def came_after(
    points: Points,
    rules: Sequence[Rule],
    outcome: Outcome,
    matches: Sequence[Places],
    sequels: Sequels,
    chats: Sequence[int],
) -> dict[str, Any]:
    """What came after the firings of a settled segment, as plain values for `rules.domain.aftermath`.

    `groups` lists model, language, chats and turns; `rules` has by code and by the place of the group the counts that
    aren't nought. `matches` are the points at which each rule's predicate holds, `chats` the numbers of the chats that
    belong to the replay.
    """
    counting = _Counting(points, outcome, sequels)
    return {
        "groups": counting.groups(chats),
        "rules": {rule.code: counting.of(rule, at, matches[at]) for at, rule in enumerate(rules)},
    }


class _Counting:
    def __init__(self, points: Points, outcome: Outcome, sequels: Sequels) -> None:
        columns = points.columns
        self.columns, self.points, self.outcome, self.sequels = columns, points, outcome, sequels
        self.turn = columns.field("turn")
        self.chat = columns.field("chat")
        self.group = sequels.group[self.chat]
        self.is_round = columns.field("is_round")
        self.repeats = self.is_round & (columns.field("no_progress_rounds") > 0)
        self.go_ahead = mask(GO_AHEAD, points)
        # Whether the next point, and the one after it, are of the same turn.
        self.has_next = np.zeros(columns.points, dtype=np.bool_)
        self.has_second = np.zeros(columns.points, dtype=np.bool_)
        self.has_next[:-1] = self.turn[1:] == self.turn[:-1]
        self.has_second[:-2] = self.turn[2:] == self.turn[:-2]
        self._blind: dict[tuple[str, str], Flags] = {}

    def groups(self, chats: Sequence[int]) -> list[list[Any]]:
        inside = np.asarray(chats, dtype=np.int64)
        group, turns = self.sequels.group[inside], self.sequels.turns[inside]
        count = len(self.sequels.groups)
        sizes = np.bincount(group, minlength=count).tolist()
        sums = np.bincount(group, weights=turns, minlength=count).astype(np.int64).tolist()
        return [[*of, size, total] for of, size, total in zip(self.sequels.groups, sizes, sums, strict=True)]

    def of(self, rule: Rule, at: int, matched: Places) -> dict[str, dict[str, Any]]:
        taken = self.outcome[matched]
        fired = matched[taken == at]
        counts: dict[str, Any] = {"fires": fired}
        repeated = fired[self.repeats[fired]]
        same = self.sequels.same_results[repeated]
        counts["repeats_same"], counts["repeats_changing"] = repeated[same], repeated[~same]
        new = fired[self.columns.field("next_nudge")[fired] == 0]
        counts |= self._rows(new, matched) if rule.stage == "round" else self._next_turns(new)
        capped = matched[taken > at]
        counts["ceiling_turns"] = self.columns.turn_starts[np.unique(self.turn[capped])]
        found: dict[str, dict[str, Any]] = {}
        for name, places in counts.items():
            for group, n in self._by_group(self.group[places]):
                found.setdefault(group, {})[name] = n
        self._add_blindness(rule, found)
        return found

    def _by_group(self, groups: Any) -> list[tuple[str, int]]:
        counted = np.bincount(groups)
        return [(str(group), int(counted[group])) for group in np.flatnonzero(counted).tolist()]

    def _next_turns(self, new: Places) -> dict[str, Places]:
        """What the first response of the next turn did after new firings at final answers."""
        turns = self.turn[new]
        follows = self.sequels.follows[turns]
        told, turns = new[follows], turns[follows]
        first = self.columns.turn_starts[turns + 1]
        acted = self.is_round[first]
        finished = ~acted & (self.columns.field("finish_reason")[first] == _TOOL_CALLS)
        asked = self.sequels.said_again[turns] | self.go_ahead[first]
        return {
            "new_final": new,
            "next_none": new[~follows],
            "next_acted": told[acted],
            "next_finished": told[finished],
            "next_talked": told[~acted & ~finished],
            "asked_again": told[asked],
        }

    def _rows(self, new: Places, matched: Places) -> dict[str, Places]:
        """Whether the row ended by itself within two points after new firings at tool rounds."""
        goes_on = np.zeros(self.columns.points + 2, dtype=np.bool_)
        goes_on[matched] = True
        has_next, has_second = self.has_next[new], self.has_second[new]
        ended = (has_next & ~goes_on[new + 1]) | (has_second & ~goes_on[new + 2])
        return {
            "new_round": new,
            "ended_by_itself": new[ended],
            "went_on": new[~ended & has_second],
            "ended_unknown": new[~ended & ~has_second],
        }

    def _add_blindness(self, rule: Rule, found: dict[str, dict[str, Any]]) -> None:
        any_field = np.zeros(self.columns.chats, dtype=np.bool_)
        for name in sorted(fields_read(rule.tree) & MAYBE_UNKNOWN):
            blind = self._blind_chats(rule.stage, name)
            any_field |= blind
            for group, n in self._by_group(self.sequels.group[blind]):
                found.setdefault(group, {}).setdefault("blind_chats", {})[name] = n
        for group, n in self._by_group(self.sequels.group[any_field]):
            found.setdefault(group, {})["blind"] = n

    def _blind_chats(self, stage: str, name: str) -> Flags:
        """Chats that have points of the stage, at none of which the field is known."""
        key = stage, name
        if key not in self._blind:
            known = is_known(self.columns, name)
            if name == "finish_reason":
                is_blind = ~self._with_points(self.points.at_stage(stage) & known)
            else:  # known at all points of a chat or at none
                is_blind = np.ones(self.columns.chats, dtype=np.bool_)
                is_blind[self.chat[known]] = False
            self._blind[key] = self._at_stage(stage) & is_blind
        return self._blind[key]

    def _at_stage(self, stage: str) -> Flags:
        key = stage, ""
        if key not in self._blind:
            self._blind[key] = self._with_points(self.points.at_stage(stage))
        return self._blind[key]

    def _with_points(self, chosen: Flags) -> Flags:
        """Which chats have one of the points."""
        return np.bincount(self.chat[chosen], minlength=self.columns.chats) > 0
