"""Which points are there: the segments of a selection of chats, and which of their chats belong to it.

Nothing here needs the numeric libraries: a corpus is a list of segments with one bit for each of their chats.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from django.db import connection
from django.db.models import Count, F, Max, Q, QuerySet, Sum
from django.db.models.expressions import RawSQL
from django.utils import formats
from django.utils.translation import gettext as _

from chats.models import Chat, ChatVersion, Corpus, ImportJob, SavedSearch
from chats.queries.chats import ChatFilter, chats, chats_of_search, newest_versions
from eleanor_site.jobs import Status
from eleanor_site.tenants.models import Tenant
from rules.domain.manifest import CatalogueEntry
from rules.domain.turns import WALKER_VERSION
from rules.models import KnownPrompt, Segment, SegmentChat
from rules.queries.manifests import catalogue_digest, catalogue_entries

KINDS = ("all", "import", "search", "corpus", "time")
_KEPT_VIEWS = 64
_HASH_DIGITS = 64
_SEARCH_SECONDS = 15.0


@dataclass(frozen=True)
class Scope:
    """Which chats are meant: all of them, those of an import or of a saved search, a frozen corpus, or those that began
    in a time, both days (UTC) included; either may be left open."""

    kind: str = "all"
    id: int = 0
    since: date | None = None
    until: date | None = None

    @classmethod
    def parse(cls, text: str) -> Scope:
        """From its text, such as `import:7` or `time:2026-01-01..2026-01-31`. Raises ValueError."""
        kind, _colon, number = (text or "all").partition(":")
        if kind == "all" and not number:
            return cls()
        if kind == "time":
            since, dots, until = number.partition("..")
            if dots and (since or until):
                return cls("time", 0, *(date.fromisoformat(day) if day else None for day in (since, until)))
        elif kind in KINDS[1:] and number.isascii() and number.isdecimal() and len(number) < 18:
            return cls(kind, int(number))
        raise ValueError(f"no scope: {text!r}")

    @classmethod
    def read(cls, kept: Mapping[str, Any]) -> Scope | None:
        """From what a replay kept of it (`as_json`); None for the chats of a manifest."""
        kind = kept.get("kind", "all")
        if kind == "manifest":
            return None
        return cls.parse("all" if kind == "all" else f"{kind}:{kept[kind]}")

    def __str__(self) -> str:
        if self.kind == "time":
            return f"time:{self.since or ''}..{self.until or ''}"
        return self.kind if self.kind == "all" else f"{self.kind}:{self.id}"

    def found(self) -> ImportJob | SavedSearch | Corpus | None:
        """The row that it names; None for all chats, and for a row that this tenant doesn't have."""
        match self.kind:
            case "import":
                return ImportJob.objects.filter(pk=self.id).first()
            case "search":
                return SavedSearch.objects.filter(pk=self.id).first()
            case "corpus":
                return Corpus.objects.filter(pk=self.id).first()
            case _:
                return None

    def exists(self) -> bool:
        return self.kind in ("all", "time") or self.found() is not None

    def name(self) -> str:
        """What it is called on pages, in the reader's language."""
        if self.kind == "time":
            return time_words(self.since, self.until)
        found = self.found()
        if found is None:
            return _("All chats") if self.kind == "all" else _("Chats that are gone")
        return str(found)

    def as_json(self) -> dict[str, object]:
        """What a replay keeps of it. The names stay readable when the row is gone."""
        if self.kind == "all":
            return {"kind": "all"}
        if self.kind == "time":
            return {"kind": "time", "time": str(self).removeprefix("time:")}
        key = {"import": "file"}.get(self.kind, "name")
        return {"kind": self.kind, self.kind: self.id, key: str(self.found() or "")}

    def chats(self) -> QuerySet[Chat]:
        """The chats whose newest versions are meant. Not for a frozen corpus, which names versions."""
        found = self.found()
        match found:
            case ImportJob():
                return chats(ChatFilter(job=found.pk))
            case SavedSearch():
                return chats_of_search(found)
            case None if self.kind == "all":
                return Chat.objects.all()
            case None if self.kind == "time":
                return chats(ChatFilter(start=self.since, end=self.until))
            case _:
                return Chat.objects.none()

    def versions(self) -> list[int]:
        """The chat versions in the order in which they are replayed."""
        found = self.found()
        if isinstance(found, Corpus):
            wanted: list[int] = json.loads(found.members)
            there = set(ChatVersion.objects.values_list("pk", flat=True))
            return [pk for pk in wanted if pk in there]
        return list(newest_versions(self.chats()).values_list("pk", flat=True))


def time_words(since: date | None, until: date | None) -> str:
    """Which days, in the reader's language."""
    shown = [formats.date_format(day, "SHORT_DATE_FORMAT") if day else "" for day in (since, until)]
    days = dict(zip(("since", "until"), shown, strict=True))
    if not since:
        return _("Chats up to %(until)s") % days
    if not until:
        return _("Chats since %(since)s") % days
    return _("Chats from %(since)s to %(until)s") % days


ALL = Scope()
_NEWEST = Q(version__number=F("version__chat__version_count"))


@dataclass(frozen=True)
class Part:
    """A segment and those of its chats that belong to a corpus: one bit each, the first one highest; None: all."""

    segment: int
    digest: str
    kept: bytes | None
    points: int
    chats: int


@dataclass(frozen=True)
class CorpusView:
    """The points of some chats. `digest` tells two states of it apart; `missing` chats have no columns yet."""

    parts: tuple[Part, ...] = ()
    missing: int = 0
    as_of: datetime | None = None

    @property
    def points(self) -> int:
        return sum(part.points for part in self.parts)

    @property
    def chats(self) -> int:
        return sum(part.chats for part in self.parts)

    @property
    def digest(self) -> str:
        whole = hashlib.sha256()
        for part in self.parts:
            whole.update(f"{part.digest}:{'*' if part.kept is None else part.kept.hex()}\n".encode())
        return whole.hexdigest()


# --- the segments that are good for a catalogue and a set of prompts


def segments_of(catalogue: Sequence[CatalogueEntry]) -> QuerySet[Segment]:
    """Segments derived with this catalogue and the present walker, oldest first, without their blobs."""
    found = Segment.objects.filter(
        catalogue=catalogue_digest(catalogue), walker_version=WALKER_VERSION, retired_at__isnull=True
    )
    return found.defer("scalars", "people", "contents", "strays", "tools", "sequels").order_by("pk")


def newest_prompt() -> int:
    """The highest number of a known prompt, 0 when there is none."""
    return KnownPrompt.objects.aggregate(top=Max("pk"))["top"] or 0


def prompts_prefix(prompts: dict[str, str]) -> int | None:
    """The highest of the tenant's known prompts in a set that holds all prompts up to it; None for any other set."""
    known = list(KnownPrompt.objects.order_by("pk").values_list("pk", "text_hash", "code"))
    number = max((pk for pk, text_hash, _code in known if text_hash in prompts), default=0)
    return number if {h: code for pk, h, code in known if pk <= number} == prompts else None


def outdated_chats(segments: Sequence[Segment], prompts: dict[str, str] | None = None) -> dict[int, frozenset[int]]:
    """For each segment the numbers of the chats that other prompts would walk differently.

    `prompts` are code by hash, None: those that the tenant knows now. Almost always nothing is read but row numbers.
    """
    known = list(KnownPrompt.objects.order_by("pk").values_list("pk", "text_hash", "code"))
    wanted = {text_hash: code for _pk, text_hash, code in known} if prompts is None else prompts
    found: dict[int, frozenset[int]] = {}
    by_number: dict[int, set[str]] = {}
    for segment in segments:
        if segment.prompts not in by_number:
            had = {text_hash: code for pk, text_hash, code in known if pk <= segment.prompts}
            by_number[segment.prompts] = {h for h in {*had, *wanted} if had.get(h) != wanted.get(h)}
        differing = by_number[segment.prompts]
        if differing:
            from rules.domain.human_texts import chats_with  # numeric libraries, on first use

            concerned = chats_with(bytes(segment.people), differing)
            if len(concerned):
                found[segment.pk] = frozenset(concerned.tolist())
    return found


# --- corpora


def corpus_view(scope: Scope = ALL) -> CorpusView:
    """The points of the scope's chats as they are stored now, with the tenant's present catalogue and prompts."""
    segments = list(segments_of(catalogue_entries()))
    parts = _parts(segments, _condition(scope), outdated_chats(segments))
    wanted = len(set(scope.versions())) if scope.kind == "corpus" else newest_versions(scope.chats()).count()
    return _view(segments, parts, max(0, wanted - sum(part.chats for part in parts)))


def parts_of(
    versions: Iterable[int], catalogue: Sequence[CatalogueEntry], prompts: dict[str, str]
) -> tuple[CorpusView, list[int]]:
    """The stored points of these versions, and the versions that have none for this catalogue and these prompts."""
    wanted = list(versions)
    segments = list(segments_of(catalogue))
    condition, outdated = Q(version__in=_listed(wanted)), outdated_chats(segments, prompts)
    parts = _parts(segments, condition, outdated)
    missing: list[int] = []
    if sum(part.chats for part in parts) < len(wanted):
        held = _held(segments, condition, outdated)
        missing = [pk for pk in wanted if pk not in held]
    return _view(segments, parts, len(missing)), missing


def _condition(scope: Scope) -> Q:
    """Which rows of segments belong to the scope."""
    if scope.kind == "corpus":
        return Q(version__in=_listed(scope.versions()))
    return _NEWEST if scope == ALL else _NEWEST & Q(version__chat__in=scope.chats().order_by().values("pk"))


def _listed(ids: Iterable[int]) -> RawSQL:
    """However many ids, as one parameter."""
    text = ",".join(str(pk) for pk in ids)
    if connection.vendor == "postgresql":
        return RawSQL("SELECT unnest(%s::bigint[])", ("{" + text + "}",))
    return RawSQL("SELECT value FROM json_each(%s)", (f"[{text}]",))


def _rows(segments: Sequence[Segment], condition: Q) -> QuerySet[SegmentChat]:
    return SegmentChat.objects.filter(condition, segment__in=[s.pk for s in segments], superseded=False)


def _parts(segments: Sequence[Segment], condition: Q, outdated: Mapping[int, frozenset[int]]) -> list[Part]:
    """What is covered of each segment. Chats are only listed of segments that are covered in part."""
    rows = _rows(segments, condition)
    sums = rows.order_by().values("segment").annotate(n=Count("pk"), points=Sum("point_count"))
    held = {pk: (n, points) for pk, n, points in sums.values_list("segment", "n", "points")}
    parts = []
    for segment in segments:
        chats, points = held.get(segment.pk, (0, 0))
        kept = None
        if chats and (chats < segment.chat_count or segment.pk in outdated):
            listed = rows.filter(segment=segment).values_list("number", "point_count")
            counts = {n: count for n, count in listed if n not in outdated.get(segment.pk, ())}
            chats, points = len(counts), sum(counts.values())
            kept = packed_bits(counts, segment.chat_count)
        if chats:
            parts.append(Part(segment.pk, segment.digest, kept, points, chats))
    return parts


def _held(segments: Sequence[Segment], condition: Q, outdated: Mapping[int, frozenset[int]]) -> set[int]:
    """The chat versions that are covered."""
    listed = _rows(segments, condition).values_list("segment", "number", "version")
    return {version for pk, n, version in listed.iterator(chunk_size=5000) if n not in outdated.get(pk, ())}


def _view(segments: Sequence[Segment], parts: Sequence[Part], missing: int) -> CorpusView:
    used = {part.segment for part in parts}
    as_of = max((segment.created_at for segment in segments if segment.pk in used), default=None)
    return CorpusView(tuple(parts), missing, as_of)


def content_hashes_in(view: CorpusView) -> list[str]:
    """What the covered chats hold, by hash, from the segments alone."""
    kept = {part.segment: part.kept for part in view.parts}
    found: list[str] = []
    for pk, contents in Segment.objects.filter(pk__in=list(kept)).values_list("pk", "contents"):
        text = bytes(contents).hex()
        bits = kept[pk]
        numbers = range(len(text) // _HASH_DIGITS)
        found += [
            text[_HASH_DIGITS * n : _HASH_DIGITS * (n + 1)]
            for n in numbers
            if bits is None or bits[n >> 3] & 128 >> (n & 7)
        ]
    return found


def versions_missing(view: CorpusView, scope: Scope) -> list[int]:
    """The versions of the scope that the view doesn't cover, in the order in which they are replayed."""
    return _uncovered(scope) if view.missing else []


def _uncovered(scope: Scope) -> list[int]:
    segments = list(segments_of(catalogue_entries()))
    held = _held(segments, _condition(scope), outdated_chats(segments))
    return [pk for pk in scope.versions() if pk not in held]


def packed_bits(numbers: Iterable[int], count: int) -> bytes:
    """One bit for each number below `count`, the first one highest in the first byte (as `numpy.packbits`)."""
    bits = bytearray(-(-count // 8))
    for number in numbers:
        bits[number >> 3] |= 128 >> (number & 7)
    return bytes(bits)


# --- kept between requests


@dataclass(frozen=True)
class _Kept:
    stamp: tuple[object, ...]
    until: float
    view: CorpusView


_views: OrderedDict[tuple[int, str], _Kept] = OrderedDict()
_views_lock = threading.Lock()


def kept_view(tenant: Tenant, scope: Scope = ALL) -> CorpusView:
    """The same as `corpus_view`, not worked out again while nothing that it depends on has changed."""
    key = (tenant.pk, str(scope))
    stamp = _stamp()
    with _views_lock:
        kept = _views.get(key)
        if kept is not None and kept.stamp == stamp and time.monotonic() < kept.until:
            _views.move_to_end(key)
            return kept.view
    view = corpus_view(scope)
    # What a search finds may hang on labels too, and an import grows while it runs.
    until = time.monotonic() + (_SEARCH_SECONDS if scope.kind in ("search", "import") else float("inf"))
    with _views_lock:
        _views[key] = _Kept(stamp, until, view)
        _views.move_to_end(key)
        while len(_views) > _KEPT_VIEWS:
            _views.popitem(last=False)
    return view


def _stamp() -> tuple[object, ...]:
    """What changes whenever the stored points, or the chats that they belong to, do."""
    segments = Segment.objects.filter(retired_at__isnull=True)
    return (
        catalogue_digest(catalogue_entries()),
        tuple(segments.order_by("pk").values_list("pk", "digest")),
        ChatVersion.objects.aggregate(top=Max("pk"))["top"],
        Chat.objects.count(),
        newest_prompt(),
    )


def is_importing() -> bool:
    """Whether an import of the tenant is at work or waits."""
    return ImportJob.objects.filter(status__in=(Status.QUEUED, Status.RUNNING)).exists()


def uncovered_versions() -> list[int]:
    """Newest versions without columns for the present catalogue and prompts, in the order in which chats came in."""
    return _uncovered(ALL)
