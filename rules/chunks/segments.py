"""Making segments: from walks at an import, from stored chats when columns are missing (rule-engine.md section 5).

A segment stands whole or not at all, and each chat version counts in one segment of its catalogue and walker: what is
written twice is passed over, so any of this may run any number of times.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

import structlog
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from chats.domain import ChatRecord
from chats.models import ChatVersion
from chats.queries.chats import record_of
from eleanor_site.tenants.models import Tenant
from rules import text_files
from rules.domain.atoms import Atoms
from rules.domain.columns import SEGMENT_POINTS, Columns, SegmentBuilder
from rules.domain.columns import Segment as Built
from rules.domain.human_texts import HumanTexts
from rules.domain.language import check
from rules.domain.language.tree import Node
from rules.domain.manifest import CatalogueEntry
from rules.domain.nudges import KnownPrompts
from rules.domain.points import Walk
from rules.domain.sequels import SequelsBuilder
from rules.domain.texts import open_texts
from rules.domain.tools import ToolCatalogue, ToolEntry
from rules.domain.turns import WALKER_VERSION, walk
from rules.models import KnownPrompt, ReplayChunk, Segment, SegmentAtom, SegmentChat
from rules.queries.manifests import BATCH, catalogue_digest, catalogue_entries
from rules.queries.rules import live_entries
from rules.queries.segments import newest_prompt, outdated_chats, packed_bits, segments_of, uncovered_versions

log = structlog.get_logger(__name__)

SEGMENT_TEXT = 64 * 1024 * 1024
# Below this, segments are put together when there are many: each costs a few milliseconds wherever it is read.
SMALL_SEGMENT = 8_192
MOST_SMALL = 16
READ_CHATS = 100

HELPER_TERMS = (
    "is_go_ahead(ctx.user_text)",
    "lists_remaining_work(ctx.final_text)",
    "announces_action(ctx.final_text)",
    "announces_action(last_paragraph(ctx.final_text))",
    "asks_user(ctx.final_text)",
    'ctx.final_text == ""',
)


class SegmentDraft:
    """A segment that is being collected. `prompts` is the highest known prompt that its walks looked for."""

    def __init__(self, catalogue: str, prompts: int) -> None:
        self.catalogue = catalogue
        self.prompts = prompts
        self.versions: list[tuple[int, str]] = []
        self._rows: list[tuple[int, int, str]] = []
        self._strays: list[tuple[int, int, int, str]] = []
        self._builder = SegmentBuilder()
        self._people = HumanTexts()
        self._sequels = SequelsBuilder()
        self._calls: Counter[str] = Counter()
        self._users: dict[str, list[int]] = {}
        self._text = 0

    def add(self, version: ChatVersion, record: ChatRecord, walked: Walk) -> None:
        number = len(self.versions)
        points = walked.points
        self.versions.append((version.pk, version.content_hash))
        self._rows.append((self._builder.points, len(points), _gaps(walked)))
        self._strays += [(number, n.message, n.turn, n.code) for n in walked.nudges if n.point is None]
        self._text += sum(len(point.final_text) for point in points)
        self._builder.add(walked)
        self._people.add(record)
        self._sequels.add(walked, version.chat.model, version.chat.language)
        calls = Counter(call.name for details in record.details for call in details.tool_calls)
        self._calls.update(calls)
        for name in {*calls, *(tool.name for tool in record.tools or ())}:
            self._users.setdefault(name, []).append(number)

    def has_room(self, walked: Walk) -> bool:
        """Whether the chat still fits; a chat that is too large for any segment has one of its own."""
        if not self.versions:
            return True
        return self._builder.points + len(walked.points) <= SEGMENT_POINTS and self._text < SEGMENT_TEXT

    def build(self, tenant: Tenant) -> tuple[Segment, Built, list[SegmentChat]]:
        """The row with its blobs, what it was built from, and the rows of its chats. Nothing is stored yet."""
        built = self._builder.build()
        segment = Segment(
            tenant=tenant,
            point_count=built.points,
            chat_count=built.chats,
            catalogue=self.catalogue,
            walker_version=WALKER_VERSION,
            prompts=self.prompts,
            scalars=built.scalars,
            people=self._people.build(),
            contents=b"".join(bytes.fromhex(content_hash) for _pk, content_hash in self.versions),
            strays=json.dumps(self._strays, ensure_ascii=False),
            tools=json.dumps(
                {
                    name: [self._calls[name], packed_bits(numbers, built.chats).hex()]
                    for name, numbers in sorted(self._users.items())
                },
                ensure_ascii=False,
            ),
            sequels=self._sequels.build(),
            text_hash=built.texts_hash,
            text_size=len(built.texts),
            digest=built.digest,
        )
        chats = [
            SegmentChat(tenant=tenant, number=n, version_id=pk, first_point=first, point_count=points, gaps=gaps)
            for n, ((pk, _hash), (first, points, gaps)) in enumerate(zip(self.versions, self._rows, strict=True))
        ]
        return segment, built, chats


def _gaps(walked: Walk) -> str:
    turns = list(dict.fromkeys(point.turn for point in walked.points))
    return "" if turns == list(range(len(turns))) else json.dumps(turns)


# --- writing


@dataclass(frozen=True)
class Finished:
    """A segment that is ready to be written: its text file stands already, its rows don't."""

    segment: Segment
    chats: list[SegmentChat]
    versions: list[tuple[int, str]]
    bits: dict[str, bytes]


def finish(tenant: Tenant, draft: SegmentDraft) -> Finished:
    """Write the text file and find the bits of the terms that rules usually ask for. Takes seconds, holds no lock."""
    segment, built, chats = draft.build(tenant)
    text_files.write(segment, built.texts)
    return Finished(segment, chats, draft.versions, _bits_of(built, usual_terms()))


def store(tenant: Tenant, draft: SegmentDraft, *, replacing: bool = False) -> Segment | None:
    """Write the segment, whole or not at all.

    None when some version is not as it was walked, or other segments hold all of them already. With `replacing` the
    versions count here from now on, whatever held them.
    """
    return write(tenant, finish(tenant, draft), replacing=replacing)


@transaction.atomic
def write(tenant: Tenant, finished: Finished, *, replacing: bool = False, always: bool = False) -> Segment | None:
    """The rows of a finished segment. With `always` it is written, retired, though other segments hold its chats."""
    segment, chats = finished.segment, finished.chats
    Tenant.objects.select_for_update(no_key=True).get(pk=tenant.pk)  # one writer of a tenant's segments at a time
    if not _are_stored(finished.versions):
        return None
    if not _take_over(segment, chats, replacing):
        if not always:
            return None
        segment.retired_at = timezone.now()
    segment.save()
    SegmentAtom.objects.bulk_create(
        SegmentAtom(tenant=tenant, segment=segment, key=key, bits=value) for key, value in finished.bits.items()
    )
    for chat in chats:
        chat.segment = segment
    SegmentChat.objects.bulk_create(chats, batch_size=BATCH)
    _retire_emptied(segment)
    return segment


def _bits_of(built: Built, trees: Sequence[Node]) -> dict[str, bytes]:
    columns = Columns(built.scalars)
    atoms = Atoms(columns, lambda: open_texts(built.texts))
    atoms.fill(trees)
    return atoms.take_fresh()


def usual_terms() -> list[Node]:
    """Predicates whose text terms every segment should have the bits of: the helpers', and those of live rules."""
    sources = [*HELPER_TERMS, *(entry.version.expression for entry in live_entries())]
    trees = (check(source).tree for source in dict.fromkeys(sources))
    return [tree for tree in trees if tree is not None]


def _are_stored(versions: Sequence[tuple[int, str]]) -> bool:
    found: dict[int, str] = {}
    for at in range(0, len(versions), BATCH):
        part = [pk for pk, _hash in versions[at : at + BATCH]]
        found.update(ChatVersion.objects.filter(pk__in=part).values_list("pk", "content_hash"))
    return all(found.get(pk) == content_hash for pk, content_hash in versions)


def _take_over(segment: Segment, chats: Sequence[SegmentChat], replacing: bool) -> bool:
    """Decide in which segment each version counts; False when none of them would count here."""
    old: list[int] = []
    held: set[int] = set()
    for at in range(0, len(chats), BATCH):
        rows = SegmentChat.objects.filter(
            version__in=[chat.version_id for chat in chats[at : at + BATCH]],
            superseded=False,
            segment__catalogue=segment.catalogue,
            segment__walker_version=segment.walker_version,
        )
        for pk, version, prompts in rows.values_list("pk", "version", "segment__prompts"):
            if replacing or prompts < segment.prompts:
                old.append(pk)
            else:
                held.add(version)
    for chat in chats:
        chat.superseded = chat.version_id in held
    if all(chat.superseded for chat in chats):
        return False
    for at in range(0, len(old), BATCH):
        SegmentChat.objects.filter(pk__in=old[at : at + BATCH]).update(superseded=True)
    return True


def _retire_emptied(newest: Segment) -> None:
    alike = Segment.objects.filter(
        catalogue=newest.catalogue, walker_version=newest.walker_version, retired_at__isnull=True
    ).exclude(pk=newest.pk)
    alike.exclude(chats__superseded=False).update(retired_at=timezone.now())


# --- deriving from what is stored


def derive(
    tenant: Tenant,
    versions: Iterable[int],
    catalogue: Sequence[CatalogueEntry],
    prompts: int,
    *,
    replacing: bool = False,
) -> Iterator[Segment | None]:
    """Walk these chat versions and store their segments, one after the other, each as soon as it is full."""
    draft = SegmentDraft(catalogue_digest(catalogue), prompts)
    for version, record, walked in walks_of(versions, catalogue, prompts):
        if not draft.has_room(walked):
            yield store(tenant, draft, replacing=replacing)
            draft = SegmentDraft(draft.catalogue, prompts)
        draft.add(version, record, walked)
    if draft.versions:
        yield store(tenant, draft, replacing=replacing)


def walks_of(
    versions: Iterable[int], catalogue: Sequence[CatalogueEntry], prompts: int
) -> Iterator[tuple[ChatVersion, ChatRecord, Walk]]:
    """Each of the versions that are still there, in their order, with what it holds and its walk."""
    tools = ToolCatalogue([ToolEntry(**entry.model_dump()) for entry in catalogue])
    known = KnownPrompts(prompts_upto(prompts))
    wanted = list(versions)
    for at in range(0, len(wanted), READ_CHATS):
        part = wanted[at : at + READ_CHATS]
        found = ChatVersion.objects.select_related("chat").in_bulk(part)
        for pk in part:
            if pk in found:
                record = record_of(found[pk])
                yield found[pk], record, walk(record, tools, known)


def prompts_upto(number: int) -> dict[str, str]:
    """The known prompts up to this one, code by hash."""
    return dict(KnownPrompt.objects.filter(pk__lte=number).values_list("text_hash", "code"))


def derive_missing(tenant: Tenant, *, seconds: float, beat: Callable[[], bool] = lambda: True) -> bool:
    """Give columns to the newest versions that have none, and put small segments together. True: there is more to do.

    Stops at a full segment when the time is over. `beat` is called after each, and ends the work by giving False.
    """
    until = time.monotonic() + seconds
    catalogue, prompts = catalogue_entries(), newest_prompt()
    repair_texts(tenant, catalogue)
    for _segment in derive(tenant, uncovered_versions(), catalogue, prompts):
        if not beat():
            return False
        if time.monotonic() > until:
            return True
    raise_prompts(prompts)
    small = _small_segments(catalogue)
    if len(small) > MOST_SMALL:
        versions = SegmentChat.objects.filter(segment__in=small, superseded=False).order_by("segment", "number")
        for _segment in derive(
            tenant, list(versions.values_list("version", flat=True)), catalogue, prompts, replacing=True
        ):
            if not beat():
                return False
            if time.monotonic() > until:
                return True
    return False


def raise_prompts(number: int) -> None:
    """Note on the segments that no later prompt, up to this one, concerns a chat that counts in them."""
    behind = [segment for segment in segments_of(catalogue_entries()) if segment.prompts < number]
    outdated = outdated_chats(behind)
    for segment in behind:
        numbers = outdated.get(segment.pk, frozenset())
        counting = SegmentChat.objects.filter(segment=segment, superseded=False).values_list("number", flat=True)
        if numbers.isdisjoint(counting):
            Segment.objects.filter(pk=segment.pk).update(prompts=number)


def _small_segments(catalogue: Sequence[CatalogueEntry]) -> list[int]:
    return [s.pk for s in segments_of(catalogue) if s.point_count < SMALL_SEGMENT and s.text_size < SEGMENT_TEXT // 4]


def repair_texts(tenant: Tenant, catalogue: Sequence[CatalogueEntry]) -> int:
    """Make text files anew that are missing or damaged; how many."""
    broken = [segment for segment in segments_of(catalogue) if not text_files.is_whole(segment)]
    for segment in broken:
        rebuild_texts(segment, catalogue)
    return len(broken)


def rebuild_texts(segment: Segment, catalogue: Sequence[CatalogueEntry]) -> None:
    """Make the text file of a segment anew from its chats. Raises TextsGone when they give other texts now."""
    _rebuilt, built = _built_anew(segment, catalogue)
    text_files.write(segment, built.texts)
    log.info("texts_rebuilt", segment=segment.pk)


def add_sequels(segment: Segment, catalogue: Sequence[CatalogueEntry]) -> None:
    """Give a segment of older times its sequels, from its chats. Raises TextsGone when they give other points now."""
    rebuilt, _built = _built_anew(segment, catalogue)
    segment.sequels = rebuilt.sequels
    Segment.objects.filter(pk=segment.pk).update(sequels=rebuilt.sequels)


def _built_anew(segment: Segment, catalogue: Sequence[CatalogueEntry]) -> tuple[Segment, Built]:
    draft = SegmentDraft(segment.catalogue, segment.prompts)
    versions = SegmentChat.objects.filter(segment=segment).order_by("number").values_list("version", flat=True)
    for version, record, walked in walks_of(list(versions), catalogue, segment.prompts):
        draft.add(version, record, walked)
    rebuilt, built, _chats = draft.build(segment.tenant)
    if (rebuilt.text_hash, rebuilt.point_count) != (segment.text_hash, segment.point_count):
        raise text_files.TextsGone(f"the chats of segment {segment.pk} give other texts")
    return rebuilt, built


def forget_unused(catalogue: Sequence[CatalogueEntry], days: int = 7) -> int:
    """Delete old segments that count for nothing any more and that no result names, with their files; how many."""
    named = ReplayChunk.objects.filter(segment__isnull=False).values("segment")
    passed = Q(retired_at__isnull=False) | ~Q(catalogue=catalogue_digest(catalogue), walker_version=WALKER_VERSION)
    old = Segment.objects.filter(passed, created_at__lt=timezone.now() - timedelta(days=days)).exclude(pk__in=named)
    count = 0
    for segment in old.defer("scalars", "people"):
        text_files.remove(segment)
        segment.delete()
        count += 1
    return count
