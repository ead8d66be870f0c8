"""One chunk of a replay at work: read, compute, write once (rule-engine.md section 7.4)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django_scopes import scope, scopes_disabled

from eleanor_site import jobs
from eleanor_site.jobs import Status
from rules import kept_columns, text_files
from rules.chunks import segments
from rules.domain.manifest import Manifest
from rules.domain.masks import Points
from rules.domain.replaying import SegmentResult, replay_segment
from rules.domain.results import merge_counts, sum_of_digests
from rules.domain.rule_changes import rule_changes
from rules.domain.sequels import GO_AHEAD, Sequels, came_after
from rules.domain.settling import Outcome, Places, Rule
from rules.models import Replay, ReplayChunk, Segment
from rules.queries import replays as queries
from rules.queries.manifests import catalogue_digest
from rules.queries.replay_chunks import chats_in, strays_of
from rules.queries.replay_findings import outcome_digest
from rules.queries.segments import Part, prompts_prefix

log = structlog.get_logger(__name__)

ACTIVE = (Replay.Status.QUEUED, Replay.Status.RUNNING)
IN_FLIGHT = 16
"""Chunks of one tenant that are sent at a time, so that nobody's replay keeps others waiting."""


@dataclass(frozen=True)
class ChunkResult:
    """What is written for a chunk. The same inputs give the same bytes, however often they are computed."""

    blob: bytes
    compared: bytes | None
    aftermath: str
    segment: int
    digest: str
    counts: dict[str, Any]
    points: int
    fires: int


def run_chunk(chunk_id: int) -> bool:
    """Do one chunk, unless it is done, stopped, or somebody else's. True when it should be sent again.

    However often and wherever this runs for a chunk, its result counts once.
    """
    with scopes_disabled():
        chunk = ReplayChunk.objects.select_related("tenant", "replay").filter(pk=chunk_id).first()
    if chunk is None:
        return False
    with scope(tenant=chunk.tenant):
        if chunk.replay.status not in ACTIVE:
            return False
        attempt = jobs.claim(ReplayChunk.objects.all(), chunk_id)
        if attempt is None:
            return False
        Replay.objects.filter(pk=chunk.replay_id, status=Replay.Status.QUEUED).update(
            status=Replay.Status.RUNNING, started_at=timezone.now()
        )
        try:
            result = compute(chunk)
        except Exception as error:
            log.exception("chunk_failed", chunk=chunk_id, attempt=attempt)
            return _failed(chunk, attempt, type(error).__name__)
        write(chunk, result)
    return False


def run_chunk_and_next(chunk_id: int) -> list[int]:
    """Do one chunk; the chunks to send next: itself after a failure, and those that waited for room."""
    again = run_chunk(chunk_id)
    with scopes_disabled():
        tenant = ReplayChunk.objects.filter(pk=chunk_id).values_list("tenant", flat=True).first()
    waiting = next_chunks(tenant) if tenant is not None else []
    return [chunk_id, *waiting] if again else waiting


# --- computing


def compute(chunk: ReplayChunk) -> ChunkResult:
    """What the rules decide at the points of a chunk: a pure function of immutable rows."""
    manifest = queries.manifest(chunk.replay)
    segment = _segment_of(chunk, manifest)
    part = Part(segment.pk, segment.digest, bytes(chunk.scope) if chunk.scope is not None else None, 0, 0)
    [points] = kept_columns.views_of(chunk.tenant, [part], manifest.defaults)
    rules = kept_columns.engine_rules(manifest.rules)
    other = queries.compared(chunk.replay)
    against = None if other is None else kept_columns.engine_rules(other.rules)
    find_bits(chunk, segment, manifest, points, part, [*rules, *(against or [])])
    found = replay_segment(points, rules)
    counts = json.loads(json.dumps(dict(found.counts)))
    for _chat, _message, _turn, code in strays_of(segment, None if chunk.scope is None else bytes(chunk.scope)):
        counts["recorded_only"][code] = counts["recorded_only"].get(code, 0) + 1
    compared = None
    if against is not None:
        compared = replay_segment(points, against)
        _add_changes(counts, found, rules, compared, against)
    return ChunkResult(
        blob=found.packed(),
        compared=compared.packed() if compared is not None else None,
        aftermath=aftermath_of(chunk, segment, points, rules, found.outcome, found.matches),
        segment=segment.pk,
        digest=outcome_digest(points, found.outcome, bytes(segment.contents), chunk.scope),
        counts=counts,
        points=sum(counts["points"].values()),
        fires=sum(of_rule["fires"] for of_rule in counts["rules"].values()),
    )


def _segment_of(chunk: ReplayChunk, manifest: Manifest) -> Segment:
    """The chunk's segment; chats that had none when the replay was started get one now, once."""
    if chunk.segment_id is not None:
        return Segment.objects.defer("scalars", "people").get(pk=chunk.segment_id)
    prompts = prompts_prefix(manifest.known_prompts)
    if prompts is None:
        raise LookupError("the known prompts of the manifest are not this tenant's")
    draft = segments.SegmentDraft(catalogue_digest(manifest.catalogue), prompts)
    versions = json.loads(chunk.chats)
    for version, record, walked in segments.walks_of(versions, manifest.catalogue, draft.prompts):
        draft.add(version, record, walked)
    if len(draft.versions) != len(versions):
        raise LookupError(f"{len(versions) - len(draft.versions)} chat versions are gone")
    finished = segments.finish(chunk.tenant, draft)
    with transaction.atomic():
        row = ReplayChunk.objects.select_for_update().get(pk=chunk.pk)
        if row.segment_id is None:
            row.segment = segments.write(chunk.tenant, finished, always=True)
            row.save(update_fields=["segment"])
    segment = row.segment
    assert segment is not None, "versions that were just read are stored"
    return segment


def find_bits(
    chunk: ReplayChunk, segment: Segment, manifest: Manifest, points: Points, part: Part, rules: Sequence[Rule]
) -> None:
    """All text terms of the rules, and of what came after; a text file that is gone is made anew first."""
    trees = [GO_AHEAD, *(rule.tree for rule in rules)]
    if kept_columns.fetch_bits([points], [part], trees):
        return
    try:
        points.atoms.fill(trees)
    except text_files.TextsGone:
        segments.rebuild_texts(segment, manifest.catalogue)
        points.atoms.fill(trees)
    kept_columns.store_bits(chunk.tenant, [points], [part])


def aftermath_of(
    chunk: ReplayChunk,
    segment: Segment,
    points: Points,
    rules: Sequence[Rule],
    outcome: Outcome,
    matches: Sequence[Places],
) -> str:
    """What came after the firings, as it is stored; empty where the segment is too old to tell."""
    if not segment.sequels:
        return ""
    sequels = Sequels.read(bytes(segment.sequels), points.columns)
    found = came_after(points, rules, outcome, matches, sequels, chats_in(points, chunk.scope))
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"))


def _add_changes(
    counts: dict[str, Any],
    found: SegmentResult,
    rules: Sequence[Rule],
    compared: SegmentResult,
    against: Sequence[Rule],
) -> None:
    """Newly and gone by rule; `gone` names the rules that only the other set has."""
    counts["gone"] = {}
    for code, change in rule_changes(compared.outcome, against, found.outcome, rules).items():
        if code in counts["rules"]:
            counts["rules"][code] |= {"newly": change.newly, "gone": change.gone}
        elif change.gone:
            counts["gone"][code] = change.gone


# --- writing


def write(chunk: ReplayChunk, result: ChunkResult) -> bool:
    """Write the result in the transaction that marks the chunk done. False when it was done or stopped meanwhile."""
    with transaction.atomic():
        # The lock order is replay, then chunk, everywhere.
        replay = Replay.objects.select_for_update().get(pk=chunk.replay_id)
        # A segment that lost deleted chats meanwhile has other points: then the chunk is done anew.
        same = ReplayChunk.objects.select_for_update().filter(pk=chunk.pk, segment=result.segment)
        mine = same.exclude(status=Status.DONE)
        if replay.status not in ACTIVE or not mine.exists():
            return False
        mine.update(
            status=Status.DONE,
            result=result.blob,
            compared=result.compared,
            aftermath=result.aftermath,
            result_hash=result.digest,
            counts=json.dumps(result.counts, ensure_ascii=False),
            points=result.points,
            error="",
            heartbeat_at=timezone.now(),
        )
        Replay.objects.filter(pk=replay.pk).update(
            chunks_done=F("chunks_done") + 1, points=F("points") + result.points, fires=F("fires") + result.fires
        )
        _settle(replay.pk)
    return True


def _settle(replay_id: int) -> None:
    """Finish the replay when this was its last chunk. Runs under the replay's lock."""
    chunks = ReplayChunk.objects.filter(replay=replay_id).order_by("number")
    if chunks.exclude(status__in=(Status.DONE, Status.FAILED)).exists():
        return
    if chunks.filter(status=Status.FAILED).exists():
        Replay.objects.filter(pk=replay_id).update(status=Replay.Status.INCOMPLETE, finished_at=timezone.now())
        return
    done = list(chunks.values_list("counts", "result_hash"))
    Replay.objects.filter(pk=replay_id).update(
        status=Replay.Status.DONE,
        finished_at=timezone.now(),
        points_total=F("points"),
        counts=json.dumps(merge_counts([json.loads(counts) for counts, _hash in done]), ensure_ascii=False),
        result_digest=sum_of_digests([found for _counts, found in done]),
    )


def _failed(chunk: ReplayChunk, attempt: int, error: str) -> bool:
    with transaction.atomic():
        Replay.objects.select_for_update().get(pk=chunk.replay_id)
        status = jobs.give_back(ReplayChunk.objects.all(), chunk.pk, attempt, error)
        if status == Status.FAILED:
            _settle(chunk.replay_id)
    return status == Status.QUEUED


# --- sending


def next_chunks(tenant: int) -> list[int]:
    """Chunks of the tenant's replays that nobody was told of, as many as there is room for; each is named once.

    Replays take turns, so that a small one doesn't wait for the end of a large one.
    """
    with scopes_disabled():
        rows = ReplayChunk.objects.filter(tenant=tenant, replay__status__in=ACTIVE)
        sent = rows.filter(status__in=(Status.QUEUED, Status.RUNNING), heartbeat_at__isnull=False).count()
        if sent >= IN_FLIGHT:
            return []
        waiting = rows.filter(status=Status.QUEUED, heartbeat_at__isnull=True).order_by("number", "replay")
        found = list(waiting.values_list("pk", flat=True)[: IN_FLIGHT - sent])
        return [pk for pk in found if jobs.touch(ReplayChunk.objects.all(), pk, seen=None)]


def chunks_to_send_again() -> list[int]:
    """Chunks of replays that stand still, each named by one sweeper only."""
    with scopes_disabled():
        rows = ReplayChunk.objects.filter(replay__status__in=ACTIVE, heartbeat_at__isnull=False)
        found = list(jobs.silent(rows).values_list("pk", "heartbeat_at"))
        again = [pk for pk, seen in found if jobs.touch(ReplayChunk.objects.all(), pk, seen=seen)]
        waiting = ReplayChunk.objects.filter(replay__status__in=ACTIVE, status=Status.QUEUED, heartbeat_at__isnull=True)
        tenants = list(waiting.order_by().values_list("tenant", flat=True).distinct())
    return [*again, *(pk for tenant in tenants for pk in next_chunks(tenant))]


def run_here(replay: Replay) -> Replay:
    """Do all open chunks in this process, for commands and tests."""
    for pk in ReplayChunk.objects.filter(replay=replay).exclude(status=Status.DONE).values_list("pk", flat=True):
        while run_chunk(pk):
            pass
    return Replay.objects.get(pk=replay.pk)
