"""Which findings of a replay the filters of its page leave, and how many each value of a filter would leave.

Worked out over the packed outcomes of whole chunks (rule-engine.md section 7.2): a language belongs to a chat, and
verdicts are few rows, so no row is read per firing.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from django.db.models import Max

from chats.models import ChatVersion
from rules.domain.atoms import Flags
from rules.domain.comparing import place_of
from rules.domain.results import STATUSES
from rules.domain.settling import NONE, Places
from rules.models import Replay, ReplayChunk, SegmentChat, Verdict
from rules.queries.replay_chunks import DoneChunk, done_chunks, strays_of
from rules.queries.replays import DELTAS, VERDICTS, Facet, FindingFilter, manifest

_UNKNOWN: Final = "none"
_RECORDED_ONLY: Final = "recorded_only"
_BATCH: Final = 500


@dataclass(frozen=True)
class _Judgement:
    """A verdict on a point of a segment."""

    chat: int
    message: int
    stage: str
    code: str
    value: str


@dataclass(frozen=True)
class Judgements:
    """What people said of the points of a replay, by segment."""

    by_segment: Mapping[int, Sequence[_Judgement]] = field(default_factory=dict)


def judgements(replay: Replay) -> Judgements:
    """All verdicts on points of the replay's chats."""
    said: dict[int, list[tuple[int, str, str, str]]] = defaultdict(list)
    rows = Verdict.objects.filter(chat_version__isnull=False).order_by("pk")
    for version, message, stage, code, value in rows.values_list("chat_version", "message", "stage", "code", "value"):
        said[version].append((message, stage, code, value))
    if not said:
        return Judgements()
    segments = ReplayChunk.objects.filter(replay=replay, segment__isnull=False).values("segment")
    found: dict[int, list[_Judgement]] = defaultdict(list)
    versions = sorted(said)
    for at in range(0, len(versions), _BATCH):
        placed = SegmentChat.objects.filter(version__in=versions[at : at + _BATCH], segment__in=segments)
        for segment, number, version in placed.values_list("segment", "number", "version"):
            found[segment] += (_Judgement(number, *one) for one in said[version])
    return Judgements(found)


class FacetedChunk:
    """A chunk with the points that each filter leaves of it, each worked out once."""

    def __init__(self, chunk: DoneChunk, spoken: Languages, said: Judgements) -> None:
        self.chunk = chunk
        self._spoken = spoken.by_segment.get(chunk.segment.pk, ((), None))
        self.said = said.by_segment.get(chunk.segment.pk, ())
        self._judged: dict[bool, dict[str, Flags]] = {}

    @cached_property
    def following(self) -> Any:
        return self.chunk.points.columns.field("next_nudge")

    @cached_property
    def fired(self) -> Flags:
        return np.asarray(self.chunk.outcome != NONE, dtype=np.bool_)

    @cached_property
    def told(self) -> Flags:
        return np.asarray(self.fired | (self.following > 0), dtype=np.bool_)

    @cached_property
    def statuses(self) -> dict[str, Flags]:
        columns, outcome = self.chunk.points.columns, self.chunk.outcome
        numbers = np.array([columns.code_number(rule.code) for rule in self.chunk.rules], dtype=np.int64)
        firings = np.flatnonzero(self.fired)
        own = np.zeros(len(outcome), dtype=np.bool_)
        own[firings] = self.following[firings] == numbers[outcome[firings]]
        recorded = self.following > 0
        return {
            "reproduced": own,
            "different": self.fired & recorded & ~own,
            "new": self.fired & ~recorded,
            _RECORDED_ONLY: ~self.fired & recorded,
        }

    @cached_property
    def deltas(self) -> dict[str, Flags]:
        """Against the rule set to compare with; nothing changes where there is none."""
        other, outcome = self.chunk.translated, self.chunk.outcome
        if other is None:
            return dict.fromkeys(DELTAS, np.zeros(len(outcome), dtype=np.bool_))
        differs = outcome != other
        return {
            "newly": self.fired & differs,
            "gone": (other != NONE) & differs,
            "same": self.fired & ~differs,
        }

    @cached_property
    def languages(self) -> tuple[Sequence[str], Any]:
        """The languages of the chats, and the place in that list of each point's."""
        names, of_chats = self._spoken
        return names, np.repeat(of_chats, np.diff(self.chunk.points.columns.chat_starts))

    def of_code(self, code: str, *, gone: bool) -> Flags:
        """Where the rule fires, or its nudge is recorded and none fires; `gone`: where the other rule set fires it."""
        chunk = self.chunk
        if gone:
            old = chunk.compared
            if old is None:
                return np.zeros(len(self.fired), dtype=np.bool_)
            return np.asarray(old == place_of(chunk.others or (), code), dtype=np.bool_)
        recorded = self.following == chunk.points.columns.code_number(code)
        found: Flags = (chunk.outcome == place_of(chunk.rules, code)) | (~self.fired & recorded)
        return found

    def in_language(self, language: str) -> Flags:
        names, of_points = self.languages
        wanted = "" if language == _UNKNOWN else language
        return np.asarray(of_points == (names.index(wanted) if wanted in names else len(names)))

    def judged(self, verdict: str, *, gone: bool) -> Flags:
        """Where somebody gave the verdict; `none`: where nobody gave any."""
        if gone not in self._judged:
            self._judged[gone] = self._find_judged(gone)
        found = self._judged[gone]
        if verdict == _UNKNOWN:
            somebody: Flags = np.any(np.stack(list(found.values())), axis=0)
            return ~somebody
        return found[verdict]

    def _find_judged(self, gone: bool) -> dict[str, Flags]:
        columns = self.chunk.points.columns
        found = {value: np.zeros(columns.points, dtype=np.bool_) for value in Verdict.Value.values}
        if not self.said:
            return found
        starts, messages, is_round = columns.chat_starts, columns.field("message"), columns.field("is_round")
        for one in self.said:
            first, end = int(starts[one.chat]), int(starts[one.chat + 1])
            here = (messages[first:end] == one.message) & (is_round[first:end] == (one.stage == "round"))
            for place in (first + np.flatnonzero(here)).tolist():
                # That something was missed at a point is said of the point, whatever rule was thought of.
                if one.value == Verdict.Value.MISSED or one.code == self._code_at(place, gone):
                    found[one.value][place] = True
        return found

    def _code_at(self, place: int, gone: bool) -> str:
        chunk = self.chunk
        if gone:
            other = NONE if chunk.compared is None else int(chunk.compared[place])
            return "" if other == NONE else (chunk.others or [])[other].code
        if self.fired[place]:
            return chunk.rules[int(chunk.outcome[place])].code
        recorded = int(self.following[place])
        return chunk.points.columns.codes[recorded - 1] if recorded else ""

    def kept(self, wanted: FindingFilter) -> Flags:
        """The points that all the filters leave."""
        gone = wanted.delta == "gone"
        found = self.deltas[wanted.delta] if wanted.delta else self.told
        if wanted.status:
            found = found & self.statuses[wanted.status]
        if wanted.code:
            found = found & self.of_code(wanted.code, gone=gone)
        if wanted.language:
            found = found & self.in_language(wanted.language)
        if wanted.verdict:
            found = found & self.judged(wanted.verdict, gone=gone)
        scope = self.chunk.points.scope
        return found if scope is None else found & scope

    def places(self, wanted: FindingFilter) -> Places:
        """The same as numbers, ascending."""
        return np.flatnonzero(self.kept(wanted))

    def strays(self, wanted: FindingFilter) -> Iterator[tuple[int, int, int, int, str]]:
        """Recorded nudges without a point before them that the filters leave: place, chat, message, turn, code."""
        if wanted.delta or wanted.status not in ("", _RECORDED_ONLY) or wanted.verdict not in ("", _UNKNOWN):
            return
        kept = None if self.chunk.row.scope is None else bytes(self.chunk.row.scope)
        for at, (chat, message, turn, code) in enumerate(strays_of(self.chunk.segment, kept)):
            if wanted.code and code != wanted.code:
                continue
            if wanted.language and self.language_of(chat) != wanted.language:
                continue
            yield at, chat, message, turn, code

    def language_of(self, chat: int) -> str:
        """A chat's language, `none` where it isn't known."""
        names, of_chats = self._spoken
        return names[int(of_chats[chat])] or _UNKNOWN


@dataclass(frozen=True)
class Languages:
    """The languages of the chats of some segments: for each its names, and the place in them of each chat's."""

    by_segment: Mapping[int, tuple[Sequence[str], Any]]


def languages_of(replay: Replay) -> Languages:
    """Of all segments of a replay. Read in one query, and not again while no chat was stored."""
    segments = ReplayChunk.objects.filter(replay=replay, segment__isnull=False)
    # A chat's language is found anew whenever a version of it is stored.
    newest = ChatVersion.objects.aggregate(top=Max("pk"))["top"]
    keys = {pk: (pk, digest, newest) for pk, digest in segments.values_list("segment", "segment__digest")}
    with _spoken_lock:
        found = {pk: _spoken[key] for pk, key in keys.items() if key in _spoken}
    missing = [pk for pk in keys if pk not in found]
    rows: dict[int, list[tuple[int, str]]] = {pk: [] for pk in missing}
    for at in range(0, len(missing), _BATCH):
        chats = SegmentChat.objects.filter(segment__in=missing[at : at + _BATCH])
        for segment, number, language in chats.values_list("segment", "number", "version__chat__language"):
            rows[segment].append((number, language))
    found.update((pk, _packed(spoken)) for pk, spoken in rows.items())
    with _spoken_lock:
        for pk, key in keys.items():
            _spoken[key] = found[pk]
            _spoken.move_to_end(key)
        while len(_spoken) > _SPOKEN_KEPT:
            _spoken.popitem(last=False)
    return Languages(found)


def _packed(spoken: Sequence[tuple[int, str]]) -> tuple[Sequence[str], Any]:
    names = sorted({language for _number, language in spoken} | {""})
    places = {name: at for at, name in enumerate(names)}
    of_chats = np.full(max((number for number, _language in spoken), default=-1) + 1, places[""], dtype=np.uint8)
    for number, language in spoken:
        of_chats[number] = places[language]
    return names, of_chats


# A byte a chat: these take a thousandth of what the columns do.
_SPOKEN_KEPT: Final = 1024
_spoken: OrderedDict[tuple[int, str, int | None], tuple[Sequence[str], Any]] = OrderedDict()
_spoken_lock = threading.Lock()


# --- counts


@dataclass(frozen=True)
class Breakdown:
    """What each value of each filter leaves, and how often each rule fires by language of the chat."""

    facets: list[Facet]
    languages: dict[str, dict[str, int]]


def breakdown(replay: Replay, wanted: FindingFilter | None) -> Breakdown:
    """Both in one pass over the chunks that are done; no facets where no filter is given."""
    counted: dict[str, Counter[str]] = {name: Counter() for name in ("status", "delta", "language", "verdict")}
    split: dict[str, Counter[str]] = {spec.code: Counter() for spec in manifest(replay).rules}
    spoken, said = languages_of(replay), judgements(replay) if wanted else Judgements()
    for chunk in done_chunks(replay):
        here = FacetedChunk(chunk, spoken, said)
        _count_firings(here, split)
        if wanted is not None:
            _count_values(here, wanted, counted)
    if replay.compared_with == "":
        del counted["delta"]
    found = [Facet(name, dict(counts)) for name, counts in counted.items() if wanted is not None]
    return Breakdown(found, {code: dict(counts) for code, counts in split.items()})


def _count_firings(here: FacetedChunk, split: Mapping[str, Counter[str]]) -> None:
    names, of_points = here.languages
    rules = here.chunk.rules
    places = here.chunk.outcome[here.fired].astype(np.int64) * len(names) + of_points[here.fired]
    counts = np.bincount(places, minlength=len(rules) * len(names)).reshape(-1, len(names)).tolist()
    for rule, of_rule in zip(rules, counts, strict=True):
        split[rule.code].update({name or _UNKNOWN: n for name, n in zip(names, of_rule, strict=True) if n})


def _count_values(here: FacetedChunk, wanted: FindingFilter, counted: Mapping[str, Counter[str]]) -> None:
    gone = wanted.delta == "gone"
    for value in ("", *DELTAS):
        _add(here, counted["delta"], value, here.kept(replace(wanted, delta=value)), replace(wanted, delta=value))
    others = replace(wanted, status="")
    left = here.kept(others)
    _add(here, counted["status"], "", left, others)
    for value in STATUSES:
        _add(here, counted["status"], value, left & here.statuses[value], replace(wanted, status=value))
    others = replace(wanted, verdict="")
    left = here.kept(others)
    _add(here, counted["verdict"], "", left, others)
    for value in VERDICTS:
        judged = left & here.judged(value, gone=gone) if here.said else left if value == _UNKNOWN else None
        _add(here, counted["verdict"], value, judged, replace(wanted, verdict=value))
    others = replace(wanted, language="")
    names, of_points = here.languages
    counts = np.bincount(of_points[here.kept(others)], minlength=len(names)).tolist()
    spoken = Counter({name or _UNKNOWN: n for name, n in zip(names, counts, strict=True)})
    spoken.update(here.language_of(chat) for _at, chat, *_rest in here.strays(others))
    counted["language"].update({"": sum(spoken.values()), **spoken})


def _add(here: FacetedChunk, counts: Counter[str], value: str, left: Flags | None, wanted: FindingFilter) -> None:
    points = 0 if left is None else int(np.count_nonzero(left))
    counts[value] += points + sum(1 for _stray in here.strays(wanted))
