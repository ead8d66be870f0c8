"""The tool catalogue against the stored chats: which names an entry takes, and what a change of it would do."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from chats.models import ChatVersion
from chats.queries.chats import record_of
from eleanor_site.tenants.models import Tenant
from rules.domain.deciding import replay
from rules.domain.manifest import CatalogueEntry
from rules.domain.nudges import KnownPrompts
from rules.domain.points import Point, Walk
from rules.domain.rule_set import compile_rules
from rules.domain.tools import FALLBACK, ToolCatalogue, ToolEntry
from rules.domain.turns import walk
from rules.models import KnownPrompt, Segment, SegmentChat
from rules.queries.manifests import catalogue_digest, catalogue_entries, defaults_of
from rules.queries.rules import rule_set
from rules.queries.segments import kept_view

NAMES_SHOWN = 12
TRY_SECONDS = 0.25
_READ_AT_ONCE = 8
_KEPT_TRIALS = 32


@dataclass(frozen=True)
class ToolName:
    """A tool that stored chats offer or call."""

    name: str
    calls: int
    chats: int


@dataclass(frozen=True)
class EntryUse:
    """The stored names that an entry takes, the most called first; those behind a condition it may take."""

    names: list[ToolName]

    @property
    def shown(self) -> list[ToolName]:
        return self.names[:NAMES_SHOWN]

    @property
    def more(self) -> int:
        return max(0, len(self.names) - NAMES_SHOWN)

    @property
    def calls(self) -> int:
        return sum(name.calls for name in self.names)


@dataclass(frozen=True)
class CatalogueUse:
    """What each entry takes, in the order of the catalogue: the tenant's own, then the built-in ones."""

    own: list[EntryUse]
    built_in: list[EntryUse]
    unknown: EntryUse


def catalogue_of(entries: Sequence[CatalogueEntry]) -> ToolCatalogue:
    """The tenant's entries before the built-in ones. Raises ValueError for a pattern that is refused."""
    return ToolCatalogue([ToolEntry(**entry.model_dump()) for entry in entries])


def tool_names(tenant: Tenant) -> list[ToolName]:
    """The tools of the tenant's chats, the most called first."""
    calls: Counter[str] = Counter()
    chats: Counter[str] = Counter()
    for tools, kept in _tools_by_segment(tenant):
        for name, (count, bits) in tools.items():
            held = int(bits, 16) if kept is None else int(bits, 16) & int(kept.hex(), 16)
            if held:
                calls[name] += count
                chats[name] += held.bit_count()
    return [ToolName(name, calls[name], chats[name]) for name in sorted(chats, key=lambda n: (-calls[n], n))]


def _tools_by_segment(tenant: Tenant) -> Iterable[tuple[dict[str, tuple[int, str]], bytes | None]]:
    parts = {part.segment: part.kept for part in kept_view(tenant).parts}
    for pk, tools in Segment.objects.filter(pk__in=list(parts)).order_by("pk").values_list("pk", "tools"):
        yield json.loads(tools), parts[pk]


def catalogue_use(tenant: Tenant, entries: Sequence[CatalogueEntry]) -> CatalogueUse:
    """Which stored names each entry takes, and which fit none."""
    catalogue = catalogue_of(entries)
    taken: list[list[ToolName]] = [[] for _ in catalogue.entries]
    unknown = []
    places = {id(entry): at for at, entry in enumerate(catalogue.entries)}
    for name in tool_names(tenant):
        candidates = catalogue.candidates(name.name)
        if candidates == (FALLBACK,):
            unknown.append(name)
        for entry in candidates:
            if id(entry) in places:
                taken[places[id(entry)]].append(name)
    uses = [EntryUse(names) for names in taken]
    return CatalogueUse(uses[: len(entries)], uses[len(entries) :], EntryUse(unknown))


# --- the effect of a change


@dataclass(frozen=True)
class RuleEffect:
    code: str
    before: int
    after: int

    @property
    def change(self) -> int:
        return self.after - self.before


@dataclass(frozen=True)
class ToolEffect:
    """What another catalogue does to points and to the live rules.

    Only chats that hold a tool whose entries change are looked at: `seen` of `concerned`. While not `exact`, numbers
    are estimates from those seen.
    """

    names: list[str]
    concerned: int
    seen: int
    points_before: int
    points_after: int
    points_changed: int
    rules: list[RuleEffect]
    missing: int

    @property
    def exact(self) -> bool:
        return self.seen == self.concerned


@dataclass
class _Trial:
    """How far the effect of one change has been worked out."""

    names: list[str]
    versions: list[int]
    at: int = 0
    points: list[int] = field(default_factory=lambda: [0, 0, 0])
    fires: tuple[Counter[str], Counter[str]] = field(default_factory=lambda: (Counter(), Counter()))


_trials: OrderedDict[tuple[object, ...], _Trial] = OrderedDict()
_lock = threading.Lock()


def tool_effect(tenant: Tenant, after: Sequence[CatalogueEntry], seconds: float = TRY_SECONDS) -> ToolEffect:
    """What the change would do, worked out for so long; the same question again carries on.

    Raises ValueError for a pattern that is refused.
    """
    before = catalogue_entries()
    view = kept_view(tenant)
    old, new = catalogue_of(before), catalogue_of(after)
    specs = rule_set(tenant, drafts=False)
    key = (tenant.pk, catalogue_digest(before), catalogue_digest(after), view.digest, tuple(specs))
    with _lock:
        trial = _trials.get(key)
        if trial is None:
            names = _changed_names(tenant, old, new)
            trial = _trials[key] = _Trial(names, _concerned(tenant, set(names)))
        _trials.move_to_end(key)
        while len(_trials) > _KEPT_TRIALS:
            _trials.popitem(last=False)
        _go_on(tenant, trial, old, new, time.monotonic() + seconds)
        scale = len(trial.versions) / trial.at if trial.at else 1.0
        fires_before, fires_after = trial.fires
        rules = [
            RuleEffect(spec.code, round(fires_before[spec.code] * scale), round(fires_after[spec.code] * scale))
            for spec in specs
        ]
        had, has, changed = (round(number * scale) for number in trial.points)
        return ToolEffect(trial.names, len(trial.versions), trial.at, had, has, changed, rules, view.missing)


def _changed_names(tenant: Tenant, old: ToolCatalogue, new: ToolCatalogue) -> list[str]:
    names = (name.name for name in tool_names(tenant))
    return [name for name in names if old.candidates(name) != new.candidates(name)]


def _concerned(tenant: Tenant, names: set[str]) -> list[int]:
    """The chat versions that hold one of the tools, in an order that spreads over the corpus and never changes."""
    found: list[int] = []
    parts = {part.segment: part.kept for part in kept_view(tenant).parts}
    for segment in Segment.objects.filter(pk__in=list(parts)).only("pk", "tools", "chat_count").order_by("pk"):
        tools = json.loads(segment.tools)
        width = -(-segment.chat_count // 8)
        bits = 0
        for name in names & tools.keys():
            bits |= int(tools[name][1], 16)
        kept = parts[segment.pk]
        held = (bits if kept is None else bits & int(kept.hex(), 16)).to_bytes(width, "big")
        numbers = {n for n in range(segment.chat_count) if held[n >> 3] & 128 >> (n & 7)}
        if numbers:
            rows = SegmentChat.objects.filter(segment=segment).values_list("number", "version")
            found += [version for number, version in rows if number in numbers]
    return sorted(found, key=lambda pk: hashlib.sha256(str(pk).encode()).digest())


def _go_on(tenant: Tenant, trial: _Trial, old: ToolCatalogue, new: ToolCatalogue, deadline: float) -> None:
    rules, defaults = compile_rules(rule_set(tenant, drafts=False)), defaults_of(tenant)
    known = KnownPrompts(dict(KnownPrompt.objects.values_list("text_hash", "code")))
    while trial.at < len(trial.versions) and time.monotonic() < deadline:
        part = trial.versions[trial.at : trial.at + _READ_AT_ONCE]
        versions = ChatVersion.objects.select_related("chat").in_bulk(part, field_name="pk")
        for pk in part:
            trial.at += 1
            if pk not in versions:
                continue
            record = record_of(versions[pk])
            walks = [walk(record, catalogue, known) for catalogue in (old, new)]
            trial.points[0] += len(walks[0].points)
            trial.points[1] += len(walks[1].points)
            trial.points[2] += _changed_points(*walks)
            for fires, walked in zip(trial.fires, walks, strict=True):
                fires.update(d.fired for d in replay(walked, rules, defaults) if d.fired is not None)


def _changed_points(before: Walk, after: Walk) -> int:
    """Points whose context is another one, or that only one of the two walks has."""
    old, new = ({(p.message, p.stage): _context(p, w) for p in w.points} for w in (before, after))
    return sum(old.get(place) != new.get(place) for place in old.keys() | new.keys())


def _context(point: Point, walked: Walk) -> tuple[object, ...]:
    return (point._replace(seq=0, turn=0, next_nudge=None, same_results=None), walked.facts.verify_available)
