"""One chunk of a replay at work: read, compute, write once (rule-engine.md section 7.4)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import structlog
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django_scopes import scope, scopes_disabled

from chats.models import ChatVersion
from chats.queries.chats import record_of
from eleanor_site import jobs
from eleanor_site.jobs import Status
from rules.domain.manifest import Manifest
from rules.domain.results import Finding, RuleCounts, merge_counts, pack, result_hash, total_digest
from rules.domain.rule_set import compile_rules
from rules.domain.turns import walk
from rules.domain.walk import Decision
from rules.domain.walk import replay as replay_chat
from rules.models import Replay, ReplayChunk

log = structlog.get_logger(__name__)

ACTIVE = (Replay.Status.QUEUED, Replay.Status.RUNNING)


@dataclass(frozen=True)
class ChunkResult:
    blob: bytes
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
            result = compute(Manifest.model_validate_json(chunk.replay.manifest), json.loads(chunk.chats))
        except Exception as error:
            log.exception("chunk_failed", chunk=chunk_id, attempt=attempt)
            return _failed(chunk, attempt, type(error).__name__)
        write(chunk, result)
    return False


def compute(manifest: Manifest, version_ids: list[int]) -> ChunkResult:
    """What the rules decide on these chat versions: a pure function of immutable rows, the same bytes each time."""
    rules = compile_rules(manifest.rules)
    catalogue, prompts = manifest.tool_catalogue(), manifest.prompts()
    versions = {v.pk: v for v in ChatVersion.objects.filter(pk__in=version_ids).select_related("chat")}
    counts = {rule.code: RuleCounts() for rule in rules}
    recorded_only: dict[str, int] = {}
    points = {"final": 0, "round": 0}
    findings: list[Finding] = []
    for version_id in version_ids:
        walked = walk(record_of(versions[version_id]), catalogue, prompts)
        for decision in replay_chat(walked, rules, manifest.defaults):
            points[decision.point.stage] += 1
            _count(counts, decision)
            if decision.status is None:
                continue
            if decision.status == "recorded_only":
                code = str(decision.recorded)
                recorded_only[code] = recorded_only.get(code, 0) + 1
            findings.append(_finding(version_id, decision))
    for rule in rules:
        counts[rule.code].points = points[rule.stage]
    return ChunkResult(
        blob=pack(findings),
        counts={
            "rules": {code: vars(c).copy() for code, c in counts.items()},
            "recorded_only": recorded_only,
            "points": points,
        },
        points=sum(points.values()),
        fires=sum(c.fires for c in counts.values()),
    )


def _count(counts: dict[str, RuleCounts], decision: Decision) -> None:
    for rule in decision.rules:
        of_rule = counts[rule.code]
        if rule.problem is not None:
            of_rule.errors += 1
        if rule.outcome == "false":
            continue
        of_rule.matches += 1
        if rule.outcome == "fires":
            of_rule.fires += 1
            status = str(decision.status)
            setattr(of_rule, status, getattr(of_rule, status) + 1)
        elif rule.outcome == "shadowed":
            of_rule.shadowed += 1
        else:
            of_rule.capped += 1


def _finding(version_id: int, decision: Decision) -> Finding:
    point = decision.point
    assert decision.status is not None
    return Finding(
        version_id, point.message, point.stage, point.turn, decision.fired, decision.recorded, decision.status
    )


def write(chunk: ReplayChunk, result: ChunkResult) -> bool:
    """Write the result in the transaction that marks the chunk done. False when it was done or stopped meanwhile."""
    with transaction.atomic():
        # The lock order is replay, then chunk, everywhere.
        replay = Replay.objects.select_for_update().get(pk=chunk.replay_id)
        mine = ReplayChunk.objects.select_for_update().filter(pk=chunk.pk).exclude(status=Status.DONE)
        if replay.status not in ACTIVE or not mine.exists():
            return False
        mine.update(
            status=Status.DONE,
            result=result.blob,
            result_hash=result_hash(result.blob),
            counts=json.dumps(result.counts, ensure_ascii=False),
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
    open_chunks = chunks.exclude(status__in=(Status.DONE, Status.FAILED)).exists()
    if open_chunks:
        return
    if chunks.filter(status=Status.FAILED).exists():
        Replay.objects.filter(pk=replay_id).update(status=Replay.Status.INCOMPLETE, finished_at=timezone.now())
        return
    done = list(chunks.values_list("counts", "result_hash"))
    Replay.objects.filter(pk=replay_id).update(
        status=Replay.Status.DONE,
        finished_at=timezone.now(),
        counts=json.dumps(merge_counts([json.loads(counts) for counts, _hash in done]), ensure_ascii=False),
        result_digest=total_digest([found for _counts, found in done]),
    )


def _failed(chunk: ReplayChunk, attempt: int, error: str) -> bool:
    with transaction.atomic():
        Replay.objects.select_for_update().get(pk=chunk.replay_id)
        status = jobs.give_back(ReplayChunk.objects.all(), chunk.pk, attempt, error)
        if status == Status.FAILED:
            _settle(chunk.replay_id)
    return status == Status.QUEUED


def chunks_to_send_again() -> list[int]:
    """Chunks of replays that stand still, each named by one sweeper only."""
    with scopes_disabled():
        rows = ReplayChunk.objects.filter(replay__status__in=ACTIVE)
        found = list(jobs.silent(rows).values_list("pk", "heartbeat_at"))
        return [pk for pk, seen in found if jobs.touch(ReplayChunk.objects.all(), pk, seen=seen)]
