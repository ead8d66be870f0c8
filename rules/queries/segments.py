"""Which points are there: the segments of a selection of chats, and which of their chats belong to it.

Nothing here needs the numeric libraries: a corpus is a list of segments with one bit for each of their chats.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import F, Max, Q, QuerySet
from django.utils.translation import gettext as _

from chats.models import Chat, ChatVersion, Corpus, ImportJob, SavedSearch
from chats.queries.chats import ChatFilter, chats, chats_of_search, newest_versions
from eleanor_site.jobs import Status
from eleanor_site.tenants.models import Tenant
from rules.domain.manifest import CatalogueEntry
from rules.domain.turns import WALKER_VERSION
from rules.models import KnownPrompt, Segment, SegmentChat
from rules.queries.manifests import catalogue_digest, catalogue_entries

KINDS = ("all", "import", "search", "corpus")
_KEPT_VIEWS = 64
_HASH_DIGITS = 64
_SEARCH_SECONDS = 15.0


@dataclass(frozen=True)
class Scope:
    """Which chats are meant: all of them, those of an import or of a saved search, or a frozen corpus."""

    kind: str = "all"
    id: int = 0

    @classmethod
    def parse(cls, text: str) -> Scope:
        """From its text, such as `import:7`. Raises ValueError."""
        kind, _colon, number = (text or "all").partition(":")
        if kind == "all" and not number:
            return cls()
        if kind in KINDS[1:] and number.isascii() and number.isdecimal() and len(number) < 18:
            return cls(kind, int(number))
        raise ValueError(f"no scope: {text!r}")

    def __str__(self) -> str:
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
        return self.kind == "all" or self.found() is not None

    def name(self) -> str:
        """What it is called on pages, in the reader's language."""
        found = self.found()
        if found is None:
            return _("All chats") if self.kind == "all" else _("Chats that are gone")
        return str(found)

    def as_json(self) -> dict[str, object]:
        """What a replay keeps of it. The names stay readable when the row is gone."""
        if self.kind == "all":
            return {"kind": "all"}
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
    versions: tuple[int, ...] = field(default=(), repr=False)

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
    return found.defer("scalars", "people", "contents", "strays", "tools").order_by("pk")


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
    if scope.kind == "corpus":
        members = set(scope.versions())
        covered, versions = _covered(segments, Q(), members)
        return _view(segments, covered, versions, missing=len(members) - len(versions))
    condition = _NEWEST if scope == ALL else _NEWEST & Q(version__chat__in=scope.chats().order_by().values("pk"))
    covered, versions = _covered(segments, condition)
    return _view(segments, covered, versions, missing=max(0, newest_versions(scope.chats()).count() - len(versions)))


def parts_of(
    versions: Iterable[int], catalogue: Sequence[CatalogueEntry], prompts: dict[str, str]
) -> tuple[CorpusView, list[int]]:
    """The stored points of these versions, and the versions that have none for this catalogue and these prompts."""
    wanted = list(versions)
    segments = list(segments_of(catalogue))
    covered, found = _covered(segments, Q(), set(wanted), prompts)
    held = set(found)
    missing = [pk for pk in wanted if pk not in held]
    return _view(segments, covered, found, missing=len(missing)), missing


def _covered(
    segments: Sequence[Segment],
    condition: Q,
    wanted: set[int] | None = None,
    prompts: dict[str, str] | None = None,
) -> tuple[dict[int, dict[int, int]], list[int]]:
    """Points of each covered chat by segment and number, and the versions covered."""
    outdated = outdated_chats(segments, prompts)
    rows = SegmentChat.objects.filter(condition, segment__in=[s.pk for s in segments], superseded=False)
    covered: dict[int, dict[int, int]] = {}
    versions: list[int] = []
    listed = rows.order_by("segment", "number").values_list("segment", "number", "version", "point_count")
    for segment, number, version, points in listed.iterator(chunk_size=5000):
        if number in outdated.get(segment, ()) or (wanted is not None and version not in wanted):
            continue
        covered.setdefault(segment, {})[number] = points
        versions.append(version)
    return covered, versions


def _view(
    segments: Sequence[Segment], covered: dict[int, dict[int, int]], versions: list[int], *, missing: int
) -> CorpusView:
    parts = []
    for segment in segments:
        held = covered.get(segment.pk, {})
        if not held:
            continue
        kept = None if len(held) == segment.chat_count else packed_bits(held, segment.chat_count)
        parts.append(Part(segment.pk, segment.digest, kept, sum(held.values()), len(held)))
    as_of = max((s.created_at for s in segments if s.pk in covered), default=None)
    return CorpusView(tuple(parts), missing, as_of, tuple(versions))


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
    if not view.missing:
        return []
    held = set(view.versions)
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


def uncovered_versions(limit: int | None = None) -> list[int]:
    """Newest versions without columns for the present catalogue and prompts, in the order in which chats came in."""
    segments = list(segments_of(catalogue_entries()))
    _covered_chats, held = _covered(segments, _NEWEST)
    there = set(held)
    newest = newest_versions(Chat.objects.all()).values_list("pk", flat=True)
    found = [pk for pk in newest.iterator(chunk_size=5000) if pk not in there]
    return found if limit is None else found[:limit]
