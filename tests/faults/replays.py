"""Replays under faults: workers killed, the broker emptied, the database restarted, messages twice, the disk full.

One process runs this for one database. Every chunk is compared with the same chunk of a run that nothing disturbed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import redis

from tests import redis_server
from tests.faults.postgres import restart

LIMIT_SECONDS = float(os.environ.get("FAULT_LIMIT", "300"))
STEP = 0.05


@dataclass
class Tally:
    """What happened, and what became of it."""

    kills: int = 0
    workers_restarted: int = 0
    resumed: int = 0
    chunks: int = 0
    lost: int = 0
    doubled: int = 0
    notes: list[str] = field(default_factory=list)


class Workers:
    """A Celery worker with its sweeper, started again whenever it dies."""

    def __init__(self, orders: Path, tally: Tally, **environment: str) -> None:
        self.orders, self.tally = orders, tally
        self.environment = {**os.environ, "FAULT_ORDERS": str(orders), **environment}
        self.process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        command = [
            *(sys.executable, "-m", "celery", "--quiet", "--app", "tests.faults.worker", "worker"),
            *("--pool", "prefork", "--concurrency", "2", "--queues", "interactive,imports,replays"),
            *("--beat", "--schedule", str(self.orders / f"beat-{time.monotonic_ns()}")),
            *("--loglevel", os.environ.get("FAULT_LOG", "CRITICAL"), "--without-gossip", "--without-mingle"),
        ]
        with open(self.orders / "worker.log", "ab") as log:
            return subprocess.Popen(command, env=self.environment, stdout=log, stderr=log, start_new_session=True)

    def look_after(self) -> None:
        """Start the worker again if it was killed."""
        if self.process.poll() is not None:
            self._end_children()
            self.tally.workers_restarted += 1
            self.process = self._start()

    def stop(self) -> None:
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(20)
        self._end_children()

    def _end_children(self) -> None:
        # Children of a worker that was killed outright are left in its process group.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@dataclass
class Scene:
    """A tenant with chats in many small segments, and live rules."""

    tenant: Any
    broker: redis.Redis
    database: str
    folder: Path
    tally: Tally

    @property
    def orders(self) -> Path:
        return self.folder / "orders"

    def order(self, *names: str) -> None:
        for number, name in enumerate(names):
            (self.orders / f"{name}.{time.monotonic_ns()}{number}").touch()

    def carried_out(self) -> int:
        return sum(1 for done in (self.orders / "done").iterdir() if ".slow." not in done.name)

    def open_orders(self) -> int:
        return sum(1 for order in self.orders.iterdir() if order.name.count(".") == 2)


def furnish(folder: Path, broker: redis.Redis, database: str, chats: int) -> Scene:
    """Make the tables, a tenant with the default rules live, and chats in segments of few points."""
    from django.core.management import call_command
    from django_scopes import scope

    from eleanor_site.tenants.models import Tenant
    from rules.chunks import segments
    from rules.domain.catalogue import default_rule_texts
    from rules.services.catalogue import install
    from tests.factories import import_text, publish, some_author
    from tests.rules.random_chats import random_lines

    call_command("migrate", verbosity=0)
    tenant = Tenant.objects.create(slug="faults", name="Faults")
    scene = Scene(tenant, broker, database, folder, Tally())
    (scene.orders / "done").mkdir(parents=True)
    with scope(tenant=tenant):
        codes = [text.code for text in default_rule_texts()]
        publish(tenant, *install(tenant=tenant, by=some_author(tenant), codes=codes))
        whole, segments.SEGMENT_POINTS = segments.SEGMENT_POINTS, 50
        import_text(tenant, random_lines(99, chats))
        segments.SEGMENT_POINTS = whole
    return scene


# --- running and recounting


def start(scene: Scene, *, send: bool = True) -> Any:
    from rules.queries.rules import rule_set
    from rules.services.replays import start_replay

    rules = rule_set(scene.tenant, drafts=False)
    return start_replay(tenant=scene.tenant, by=None, rules=rules, send=send)


def wait(scene: Scene, workers: Workers, done: Callable[[], bool], what: str) -> None:
    """Until it is so, with workers started again and incomplete replays resumed. Raises after the limit."""
    limit = time.monotonic() + LIMIT_SECONDS
    while not _quietly(done):
        workers.look_after()
        if time.monotonic() > limit:
            log = (scene.orders / "worker.log").read_text(errors="replace")[-4000:]
            raise RuntimeError(f"{what} didn't come true in {LIMIT_SECONDS:g} s\n{_standing()}\n{log}")
        time.sleep(STEP)


def _standing() -> str:
    """The chunks that are not done, for whoever reads why a run hangs."""
    from rules.models import Replay, ReplayChunk

    replays = list(Replay.objects.values_list("pk", "status", "chunks_done", "chunks_total"))
    chunks = ReplayChunk.objects.exclude(status="done").values_list("replay", "number", "status", "attempts", "error")
    return f"{replays} {list(chunks)}"


def _quietly(done: Callable[[], bool]) -> bool:
    """A database that is just being restarted says nothing yet."""
    from django.db import DatabaseError, connection

    try:
        return done()
    except (DatabaseError, psycopg.Error):
        connection.close()
        return False


def finish(scene: Scene, workers: Workers, replays: list[Any]) -> None:
    """Until all replays are done; one that is incomplete is resumed, as a person would."""
    from rules.models import Replay
    from rules.services.replays import resume_replay
    from tests.factories import some_author

    def all_done() -> bool:
        rows = Replay.objects.filter(pk__in=[replay.pk for replay in replays])
        for row in rows.filter(status="incomplete"):
            scene.tally.resumed += 1
            resume_replay(tenant=scene.tenant, replay=row, by=some_author(scene.tenant))
        return rows.filter(status="done").count() == len(replays)

    wait(scene, workers, all_done, "the end of the replays")


def recount(scene: Scene, replay: Any, expected: Any) -> None:
    """Each chunk against the same chunk of the undisturbed run, and the sums of the replay against its chunks."""
    from rules.models import Replay, ReplayChunk
    from rules.queries.replay_findings import flaws

    tally = scene.tally
    found = Replay.objects.get(pk=replay.pk)
    mine = {c.number: c for c in ReplayChunk.objects.filter(replay=found)}
    theirs = {c.number: c for c in ReplayChunk.objects.filter(replay=expected)}
    tally.chunks += len(theirs)
    for number, chunk in theirs.items():
        own = mine.get(number)
        if own is None or own.status != "done" or _result(own) != _result(chunk):
            tally.lost += 1
    sums = (found.chunks_done, found.points, found.fires)
    fires = sum(n["fires"] for c in mine.values() for n in json.loads(c.counts).get("rules", {}).values())
    wanted = (len(theirs), sum(c.points for c in mine.values()), fires)
    tally.doubled += sum(max(0, has - wants) for has, wants in zip(sums, wanted, strict=True))
    tally.lost += sum(max(0, wants - has) for has, wants in zip(sums, wanted, strict=True))
    if found.result_digest != expected.result_digest:
        tally.notes.append(f"replay {found.pk}: another digest")
    tally.notes += [f"replay {found.pk}: {flaw}" for flaw in flaws(found)]


def _result(chunk: Any) -> tuple[str, bytes, Any]:
    return chunk.result_hash, bytes(chunk.result or b""), json.loads(chunk.counts)


# --- scenes


def killed(scene: Scene, *, short: bool) -> None:
    """Children and whole workers killed at each place of a chunk; Redis emptied, and PostgreSQL restarted."""
    from rules.chunks.replays import run_here

    expected = run_here(start(scene, send=False))
    who = ("child", "worker") if short else ("child", "child", "child", "worker", "worker")
    scene.order(*(f"{place}.{action}" for action in who for place in ("before", "inside", "after")))
    workers = Workers(scene.orders, scene.tally)
    try:
        replays = [start(scene), start(scene)]
        half = len(who) * 3 // 2
        wait(scene, workers, lambda: scene.carried_out() >= half, "the first half of the kills")
        scene.broker.flushall()
        if scene.database == "postgres":
            restart(os.environ["DATABASE_URL"])
        # Orders that nobody came by before the replays were done would be left: then there is one more replay.
        finish(scene, workers, replays)
        while scene.open_orders():
            more = start(scene)
            finish(scene, workers, [more])
            replays.append(more)
    finally:
        workers.stop()
    for replay in replays:
        recount(scene, replay, expected)


def delivered_twice(scene: Scene) -> None:
    """A visibility timeout of a second, and tasks that take longer: every slow message comes again while it is done."""
    from rules.chunks.replays import run_here

    expected = run_here(start(scene, send=False))
    scene.order("before.slow", "before.slow", "inside.slow", "after.slow")
    workers = Workers(scene.orders, scene.tally, FAULT_VISIBILITY="1")
    try:
        replays = [start(scene), start(scene)]
        finish(scene, workers, replays)
    finally:
        workers.stop()
    for replay in replays:
        recount(scene, replay, expected)


def disk_full(scene: Scene) -> None:
    """No room for text files while a replay makes the columns that another tool catalogue needs; then there is."""
    from rules.chunks.replays import run_here
    from rules.models import Replay, Segment
    from rules.services import replays as services
    from rules.services.tools import add_entry
    from tests.factories import some_author

    services.DERIVED_CHATS = 10
    add_entry(tenant=scene.tenant, values={"pattern": "get_rows", "kind": "other"}, by=some_author(scene.tenant))
    full = scene.orders / "disk-full"
    full.touch()
    scene.order("segment.child", "segment.worker")
    workers = Workers(scene.orders, scene.tally)
    try:
        replay = start(scene)

        def gave_up() -> bool:
            return Replay.objects.filter(pk=replay.pk, status="incomplete").exists()

        wait(scene, workers, gave_up, "the replay on a full disk ending as incomplete")
        half = [s.pk for s in Segment.objects.filter(chats__isnull=True)]
        scene.tally.notes += [f"segment {pk} is half written" for pk in half]
        full.unlink()
        finish(scene, workers, [replay])
    finally:
        workers.stop()
    again = run_here(start(scene, send=False))
    if Replay.objects.get(pk=replay.pk).result_digest != again.result_digest:
        scene.tally.notes.append("the replay on a full disk has another digest")
    scene.tally.chunks += replay.chunks_total


# --- the whole run


@contextlib.contextmanager
def site(database: str) -> Iterator[tuple[Path, redis.Redis]]:
    """A folder, a Redis and Django, configured for this process and those that it starts."""
    folder = Path(tempfile.mkdtemp(prefix="eleanor-faults-"))
    try:
        with redis_server.running() as url:
            os.environ.update(
                ELEANOR_VAR=str(folder / "var"), REDIS_URL=url, DJANGO_SETTINGS_MODULE="tests.faults.settings"
            )
            if database == "sqlite":
                os.environ.pop("DATABASE_URL", None)
            import django

            django.setup()
            yield folder, redis.Redis.from_url(url.replace("redis+socket://", "unix://"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(argv: list[str]) -> int:
    """`replays DATABASE [--short]`: prints kills, chunks, lost and doubled; 0 only when nothing was lost or doubled."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults replays")
    parser.add_argument("database", choices=["sqlite", "postgres"])
    parser.add_argument("--short", action="store_true", help="fewer kills, and the kills only")
    options = parser.parse_args(argv)
    with site(options.database) as (folder, broker):
        from django_scopes import scope

        scene = furnish(folder, broker, options.database, 40 if options.short else 120)
        with scope(tenant=scene.tenant):
            killed(scene, short=options.short)
            if not options.short:
                delivered_twice(scene)
                disk_full(scene)
        tally = scene.tally
        tally.kills = scene.carried_out()
        print(
            f"{options.database}: {tally.kills} kills, {tally.workers_restarted} workers started again, "
            f"{tally.resumed} resumed, {tally.chunks} chunks, {tally.lost} lost, {tally.doubled} doubled"
        )
        for note in tally.notes:
            print(f"  {note}")
        return 1 if tally.lost or tally.doubled or tally.notes else 0
