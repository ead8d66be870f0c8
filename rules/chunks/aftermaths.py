"""What came after the firings of replays whose chunks don't tell it: older ones, or over older segments.

A chunk's counts are a function of its stored outcome and of its segment, so they may be worked out any number of times.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import structlog

from rules import kept_columns, text_files
from rules.chunks import replays, segments
from rules.domain.replaying import matches_of, unpack_outcome
from rules.models import Replay, ReplayChunk, Segment
from rules.queries import replays as queries
from rules.queries.replay_aftermath import untold_chunks
from rules.queries.segments import Part

log = structlog.get_logger(__name__)

UNKNOWN = "{}"
"""Of a chunk whose chats can't be walked to the same points any more."""


def count_wanted(*, seconds: float, beat: Callable[[], bool]) -> bool:
    """Go through the replays that somebody asked about, the newest first. True when there is more to do."""
    until = time.monotonic() + seconds
    for replay in Replay.objects.filter(aftermath_wanted=True).order_by("-id"):
        for pk in untold_chunks(replay).order_by("number").values_list("pk", flat=True):
            count_chunk(pk)
            if not beat():
                return False
            if time.monotonic() > until:
                return True
        Replay.objects.filter(pk=replay.pk).update(aftermath_wanted=False)
    return False


def count_chunk(pk: int) -> None:
    """Work it out for a chunk that is done, and write it unless somebody did, or its segment lost chats meanwhile."""
    rows = ReplayChunk.objects.select_related("tenant", "replay", "segment")
    rows = rows.defer("segment__scalars", "segment__people", "segment__tools")
    chunk = rows.filter(pk=pk, aftermath="", segment__isnull=False).first()
    if chunk is None or chunk.segment is None:
        return
    try:
        found = _counted(chunk, chunk.segment)
    except text_files.TextsGone as error:
        log.warning("aftermath_unknown", chunk=pk, why=str(error))
        found = UNKNOWN
    ReplayChunk.objects.filter(pk=pk, segment=chunk.segment_id, aftermath="").update(aftermath=found)


def _counted(chunk: ReplayChunk, segment: Segment) -> str:
    manifest = queries.manifest(chunk.replay)
    if not segment.sequels:
        segments.add_sequels(segment, manifest.catalogue)
    part = Part(segment.pk, segment.digest, None if chunk.scope is None else bytes(chunk.scope), 0, 0)
    [points] = kept_columns.views_of(chunk.tenant, [part], manifest.defaults)
    rules = kept_columns.engine_rules(manifest.rules)
    replays.find_bits(chunk, segment, manifest, points, part, rules)
    outcome = unpack_outcome(bytes(chunk.result or b""))
    return replays.aftermath_of(chunk, segment, points, rules, outcome, matches_of(points, rules, outcome))
