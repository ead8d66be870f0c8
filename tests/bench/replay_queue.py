"""`python -m tests.bench replay_queue [--conversations N | --corpus DIR] [--database postgres] [--chunk-points N …]`

A replay of the benchmark's twelve rules through Redis, Celery and the database, against the same chunks done one after
the other in this process. Segments are as they are stored; `--chunk-points` makes others by loading the corpus again.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from tests.bench._site import Row, configured, furnished, shown, worker
from tests.golden.corpus import COUNTED, KNOWN_FIRINGS

ROUNDS = 3
NO_OPS = 300
FULL = 900_000
WORKERS = 2


def run(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench replay_queue")
    parser.add_argument("--conversations", type=int, default=2000)
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--var", type=Path)
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="postgres")
    parser.add_argument("--chunk-points", type=int, default=0, help="points of a segment, instead of 65,536")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    with configured(options.database, options.var) as folder:
        if options.chunk_points:
            from rules.chunks import segments

            segments.SEGMENT_POINTS = options.chunk_points
            segments.MOST_SMALL = 1_000_000
        tenant = furnished(options.conversations, options.corpus)
        rows = measured(tenant, folder, options.database)
    for row in rows:
        print(json.dumps(row.as_json()) if options.json else shown(row))
    missed = [row.name for row in rows if row.missed]
    if missed:
        print("missed: " + "; ".join(missed), file=sys.stderr)
    return 1 if missed else 0


def measured(tenant: Any, folder: Path, database: str) -> list[Row]:
    from django_scopes import scope

    from rules.chunks.replays import compute, run_here
    from rules.models import ReplayChunk

    with scope(tenant=tenant):
        first = run_here(started(tenant, send=False))
        rows = [
            Row("points", first.points, "points"),
            Row(
                "chunks",
                first.chunks_total,
                "chunks",
                limit=f"{first.points // max(1, first.chunks_total):,} points each",
            ),
        ]
        rows += known_firings(first)
        chunks = list(ReplayChunk.objects.select_related("replay", "tenant").filter(replay=first))
        computing = median([timed(lambda: [compute(chunk) for chunk in chunks]) for _ in range(ROUNDS)])
        alone = []
        for _ in range(ROUNDS):
            replay = started(tenant, send=False)
            alone.append(timed(lambda replay=replay: run_here(replay)))  # type: ignore[misc]
        beginning = median([timed(lambda: started(tenant, send=False)) for _ in range(ROUNDS)])
        with worker(folder, WORKERS):
            through_queue(tenant)  # the worker's first replay loads its libraries and columns
            queued = [through_queue(tenant) for _ in range(ROUNDS)]
            no_ops = NO_OPS / no_op_seconds(chunks[0].pk)
    one, queue = median(alone), median(queued)
    full = first.points > FULL
    rows += [
        Row("computing alone, one process", computing * 1000, "ms", limit="masks, settling, counts, packing"),
        Row("one process, with every transaction", one * 1000, "ms", "computing", one / computing, limit=database),
        Row(
            f"through Redis, Celery and {database}, {WORKERS} workers",
            queue * 1000,
            "ms",
            "one process",
            queue / one,
            "<= 2,000 ms" if full else "",
            full and queue > max(2.0, 2 * one),
            "from the commit of the start to the last chunk",
        ),
        Row("starting: chats, digests and chunks written", beginning * 1000, "ms", limit="one row a chat read twice"),
        Row("tasks that find their work done", no_ops, "tasks/s", limit="a message and two queries each"),
        Row("points through the queue", first.points / queue, "points/s"),
    ]
    return rows


def started(tenant: Any, *, send: bool) -> Any:
    from rules.queries.rules import rule_set
    from rules.services.replays import start_replay

    return start_replay(tenant=tenant, by=None, rules=rule_set(tenant, drafts=False), send=send)


def through_queue(tenant: Any) -> float:
    """Seconds from the start's commit until the database says that the replay is done."""
    from rules.models import Replay

    replay = started(tenant, send=True)
    begun = time.perf_counter()
    limit = begun + 300
    while Replay.objects.values_list("status", flat=True).get(pk=replay.pk) != "done":
        if time.perf_counter() > limit:
            raise RuntimeError("the replay through the queue doesn't end")
        time.sleep(0.01)
    return time.perf_counter() - begun


def no_op_seconds(chunk: int) -> float:
    from django.conf import settings
    from redis import Redis

    from rules.tasks import run_chunk

    client = Redis.from_url(settings.BROKER.url.replace("redis+socket://", "unix://"))
    begun = time.perf_counter()
    for _ in range(NO_OPS):
        run_chunk.apply_async(args=(chunk,))
    while client.llen("replays") or client.hlen("unacked"):
        time.sleep(0.005)
    return time.perf_counter() - begun


def known_firings(replay: Any) -> list[Row]:
    """A fast replay that is wrong is of no use: the firings that no wording touches are known."""
    wanted = KNOWN_FIRINGS.get(replay.chats_total)
    if wanted is None:
        return []
    rules = json.loads(replay.counts)["rules"]
    found = tuple(rules[code]["fires"] for code in COUNTED)
    return [Row("firings of eight rules that are known", sum(found), "firings", goal=str(sum(wanted)),
                missed=found != wanted)]  # fmt: skip


def timed(action: Any) -> float:
    begun = time.perf_counter()
    action()
    return time.perf_counter() - begun


def median(times: list[float]) -> float:
    return statistics.median(times)
