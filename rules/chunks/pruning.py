"""Taking deleted chats out of segments, and out of what replays found in them (product.md goal C7).

A segment never changes: one without the chats takes its place. Results move there with what they decided in the chats
that stay; what they found in the others is kept as numbers.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any

import numpy as np
import structlog
from django.db import transaction
from django.utils import timezone
from django_scopes import scope

from chats.models import ChatVersion
from chats.queries.chats import record_of
from eleanor_site.jobs import Status
from eleanor_site.tenants.models import Tenant
from rules import kept_columns, text_files
from rules.chunks import segments
from rules.domain.columns import Columns
from rules.domain.human_texts import renumbered
from rules.domain.pruning import Selection, pruned, selection
from rules.domain.replaying import pack_outcome, unpack_outcome
from rules.domain.results import sum_of_digests
from rules.domain.sequels import Sequels
from rules.models import RemovedFinding, Replay, ReplayChunk, Segment, SegmentAtom, SegmentChat
from rules.queries.manifests import BATCH, catalogue_digest, catalogue_entries
from rules.queries.replay_findings import Told, told_of

log = structlog.get_logger(__name__)

# A file without a row may be one whose transaction is at work.
ORPHANED_AFTER = timedelta(hours=6)


def prune(tenant: Tenant, versions: Collection[int]) -> int:
    """Take these chat versions out of every segment, inside the caller's transaction; how many segments there were.

    The versions must still be stored. Text files are deleted once the transaction stands.
    """
    gone = set(versions)
    _drop_from_waiting_chunks(gone)
    found = _segments_with(gone)
    _lock_results(found)
    Tenant.objects.select_for_update(no_key=True).get(pk=tenant.pk)  # one writer of a tenant's segments at a time
    # Somebody may have written a segment until the lock was ours.
    found = _segments_with(gone)
    for pk in found:
        _replace(Segment.objects.get(pk=pk), gone)
    transaction.on_commit(functools.partial(kept_columns.drop, tenant))
    return len(found)


def delete_orphaned_texts() -> int:
    """Delete text files that no segment of their tenant names; how many."""
    before = (timezone.now() - ORPHANED_AFTER).timestamp()
    count = 0
    for tenant in Tenant.objects.all():
        with scope(tenant=tenant):
            count += text_files.remove_orphans(tenant.pk, before)
    return count


def _segments_with(versions: Collection[int]) -> list[int]:
    wanted = sorted(versions)
    found: set[int] = set()
    for at in range(0, len(wanted), BATCH):
        rows = SegmentChat.objects.filter(version__in=wanted[at : at + BATCH])
        found.update(rows.order_by().values_list("segment", flat=True).distinct())
    return sorted(found)


def _lock_results(found: Sequence[int]) -> None:
    """The replays first, then their chunks, as whoever writes a result does."""
    replays = Replay.objects.filter(chunks__segment__in=found).order_by("pk").values_list("pk", flat=True).distinct()
    list(Replay.objects.select_for_update().filter(pk__in=list(replays)).order_by("pk").values_list("pk"))
    list(ReplayChunk.objects.select_for_update().filter(segment__in=found).order_by("pk").values_list("pk"))


def _drop_from_waiting_chunks(versions: set[int]) -> None:
    """A replay that runs goes on without the chats."""
    waiting = ReplayChunk.objects.filter(segment__isnull=True).exclude(status=Status.DONE).exclude(chats="[]")
    for pk, text in list(waiting.values_list("pk", "chats")):
        chats = json.loads(text)
        if not versions.isdisjoint(chats):
            kept = json.dumps([chat for chat in chats if chat not in versions])
            ReplayChunk.objects.filter(pk=pk).update(chats=kept)


# --- one segment


def _replace(segment: Segment, versions: set[int]) -> None:
    rows = list(SegmentChat.objects.filter(segment=segment).order_by("number"))
    gone = [row for row in rows if row.version_id in versions]
    chunks = list(ReplayChunk.objects.filter(segment=segment).select_related("replay", "tenant", "segment"))
    kept = np.array([row.version_id not in versions for row in rows], dtype=np.bool_)
    needed = chunks or (segment.retired_at is None and any(not row.superseded for row in rows))
    left: list[SegmentChat] = []
    new = _without(segment, rows, kept) if needed and kept.any() else None
    if new is None:
        # Nothing is left, or nothing can be told apart any more: the results keep their numbers.
        gone, left = rows, [row for row in rows if kept[row.number]]
    told = {chunk.pk: told_of(chunk, {row.number for row in gone}) for chunk in chunks if _has_result(chunk)}
    for chunk in chunks:
        if chunk.pk in told:
            _keep_numbers(chunk, told[chunk.pk])
        elif new is None:
            chunk.chats = json.dumps([row.version_id for row in left if _is_inside(chunk, row.number)])
        _move(chunk, new)
    _delete(segment)


def _is_inside(chunk: ReplayChunk, number: int) -> bool:
    return chunk.scope is None or bool(bytes(chunk.scope)[number >> 3] & 128 >> (number & 7))


class _Replacement:
    """The segment that takes another one's place, stored, with what chunks need to move there."""

    def __init__(self, segment: Segment, stays: Selection) -> None:
        self.segment = segment
        self.stays = stays


def _without(segment: Segment, rows: Sequence[SegmentChat], kept: Any) -> _Replacement | None:
    """None when the texts can't be had any more."""
    texts = _texts(segment)
    if texts is None:
        return None
    columns = Columns(bytes(segment.scalars))
    stays = selection(columns, kept)
    built = pruned(columns, texts, stays)
    numbers = stays.numbers
    contents = bytes(segment.contents)
    staying = [row for row in rows if kept[row.number]]
    new = Segment(
        tenant=segment.tenant,
        point_count=built.points,
        chat_count=built.chats,
        catalogue=segment.catalogue,
        walker_version=segment.walker_version,
        prompts=segment.prompts,
        scalars=built.scalars,
        people=renumbered(bytes(segment.people), numbers),
        contents=b"".join(contents[32 * row.number : 32 * row.number + 32] for row in staying),
        strays=json.dumps(
            [[int(numbers[chat]), *rest] for chat, *rest in json.loads(segment.strays) if kept[chat]],
            ensure_ascii=False,
        ),
        tools=_tools(segment, [row.version_id for row in rows if not kept[row.number]], stays),
        sequels=Sequels.read(bytes(segment.sequels), columns).pruned(columns, stays) if segment.sequels else b"",
        text_hash=built.texts_hash,
        text_size=len(built.texts),
        digest=built.digest,
        retired_at=segment.retired_at,
    )
    if new.retired_at is None and all(row.superseded for row in staying):
        new.retired_at = timezone.now()
    text_files.write(new, built.texts)
    new.save()
    Segment.objects.filter(pk=new.pk).update(created_at=segment.created_at)
    first, chats = 0, []
    for number, row in enumerate(staying):
        chats.append(
            SegmentChat(
                tenant=segment.tenant,
                segment=new,
                number=number,
                version_id=row.version_id,
                first_point=first,
                point_count=row.point_count,
                superseded=row.superseded,
                gaps=row.gaps,
            )
        )
        first += row.point_count
    SegmentChat.objects.bulk_create(chats, batch_size=BATCH)
    SegmentAtom.objects.bulk_create(
        SegmentAtom(tenant=segment.tenant, segment=new, key=key, bits=stays.bits(bytes(bits)))
        for key, bits in SegmentAtom.objects.filter(segment=segment).values_list("key", "bits")
    )
    return _Replacement(new, stays)


def _texts(segment: Segment) -> Any | None:
    """The texts of the segment, made anew from its chats where the file is missing or damaged."""
    try:
        return text_files.open_texts(segment)
    except text_files.TextsGone:
        entries = catalogue_entries()
    try:
        if catalogue_digest(entries) != segment.catalogue:
            raise text_files.TextsGone("another catalogue")
        segments.rebuild_texts(segment, entries)
        return text_files.open_texts(segment)
    except text_files.TextsGone as error:
        log.warning("segment_given_up", segment=segment.pk, why=str(error))
        return None


def _tools(segment: Segment, gone: Sequence[int], stays: Selection) -> str:
    """The tools of the chats that stay: those of the others are counted in what they hold, and taken off."""
    calls: Counter[str] = Counter()
    for at in range(0, len(gone), segments.READ_CHATS):
        for version in ChatVersion.objects.select_related("chat").filter(pk__in=gone[at : at + segments.READ_CHATS]):
            calls.update(call.name for details in record_of(version).details for call in details.tool_calls)
    found: dict[str, list[Any]] = {}
    for name, (count, users) in json.loads(segment.tools).items():
        bits = stays.chat_bits(bytes.fromhex(users))
        if any(bits):
            found[name] = [max(0, count - calls[name]), bits.hex()]
    return json.dumps(found, ensure_ascii=False)


def _delete(segment: Segment) -> None:
    named = Segment(pk=segment.pk, tenant_id=segment.tenant_id, text_hash=segment.text_hash)
    SegmentAtom.objects.filter(segment=segment).delete()
    SegmentChat.objects.filter(segment=segment).delete()
    Segment.objects.filter(pk=segment.pk).delete()
    transaction.on_commit(functools.partial(text_files.remove, named))


# --- its results


def _has_result(chunk: ReplayChunk) -> bool:
    return chunk.status == Status.DONE and chunk.result is not None


def _keep_numbers(chunk: ReplayChunk, told: Told) -> None:
    """What the chunk found in chats that go, by day, rule and kind."""
    if not told.chats:
        return
    chunk.removed_digest = _sum(chunk.removed_digest, told.digest)
    chunk.removed_chats += told.chats
    chunk.save(update_fields=["removed_chats", "removed_digest"])
    facts = _facts({version for _status, _code, version in told.findings})
    kinds = Counter((*facts[version], code, status) for status, code, version in told.findings)
    RemovedFinding.objects.bulk_create(
        (
            RemovedFinding(
                tenant=chunk.tenant,
                chunk=chunk,
                day=day,
                model=model,
                language=language,
                code=code[:64],
                status=status,
                count=count,
            )
            for (day, model, language, code, status), count in kinds.items()
        ),
        batch_size=BATCH,
    )


def _sum(one: str, other: str) -> str:
    return sum_of_digests([digest for digest in (one, other) if digest])


def _facts(versions: Collection[int]) -> Mapping[int, tuple[Any, str, str]]:
    wanted = sorted(versions)
    found: dict[int, tuple[Any, str, str]] = {}
    for at in range(0, len(wanted), BATCH):
        rows = ChatVersion.objects.filter(pk__in=wanted[at : at + BATCH])
        for pk, model, language, started in rows.values_list("pk", "chat__model", "chat__language", "chat__started_at"):
            found[pk] = (started.date() if started else None, model, language)
    return found


def _move(chunk: ReplayChunk, new: _Replacement | None) -> None:
    """To the segment that takes the old one's place, with what was decided in the chats that stay."""
    if new is None:
        chunk.segment = chunk.scope = chunk.result = chunk.compared = None
    else:
        chunk.segment = new.segment
        chunk.scope = None if chunk.scope is None else new.stays.chat_bits(bytes(chunk.scope))
        chunk.result, chunk.compared = (
            None if blob is None else pack_outcome(unpack_outcome(bytes(blob))[new.stays.points])
            for blob in (chunk.result, chunk.compared)
        )
    chunk.save(update_fields=["segment", "scope", "result", "compared", "chats"])
