"""Loading whole corpora from files of this machine: chats, nudges and columns, without the detour of an upload.

What stands afterwards is what an import gives, but for the search index, which can be made later. Lines of the
exchange form are shared out to several processes; a load that is broken off can be repeated.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import IO, Any

from django.db import connections, transaction
from django.utils import timezone
from django_scopes import scope

from chats.domain import ChatRecord
from chats.domain.exchange import FORMAT
from chats.domain.formats import detect, open_source
from chats.models import ImportedChat, ImportJob
from chats.storing import Stored, new_versions, store_records
from eleanor_site.audit.services import record as record_change
from eleanor_site.jobs import Status
from eleanor_site.tenants.models import Tenant
from rules.domain.nudges import KnownPrompts
from rules.domain.tools import ToolCatalogue, ToolEntry
from rules.domain.turns import walk
from rules.models import KnownPrompt
from rules.queries.manifests import catalogue_digest, catalogue_entries
from rules.queries.segments import newest_prompt
from rules.services.ingesting import Intake, keep

BATCH_CHATS = 200
BLOCK_BYTES = 16 * 1024 * 1024
NOT_CHATS = frozenset({"manifest.json", "points.jsonl"})
"""What the corpus generator writes beside the conversations."""


@dataclass
class Loaded:
    """What came of a load so far."""

    chats: int = 0
    unchanged: int = 0
    left_out: int = 0
    messages: int = 0
    points: int = 0
    seconds: float = 0.0

    def add(self, other: Loaded) -> None:
        for name in ("chats", "unchanged", "left_out", "messages", "points"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass
class _Loader:
    """One process at work: stores batches, collects their columns."""

    tenant: Tenant
    job: int
    intake: Intake = field(default_factory=Intake)

    def __post_init__(self) -> None:
        entries = catalogue_entries()
        self.catalogue = catalogue_digest(entries)
        self.tools = ToolCatalogue([ToolEntry(**entry.model_dump()) for entry in entries])
        self.prompts = newest_prompt()
        known = KnownPrompt.objects.filter(pk__lte=self.prompts).values_list("text_hash", "code")
        self.known = KnownPrompts(dict(known))

    def load(self, stream: IO[bytes] | Path, chosen: str | None = None) -> Loaded:
        loaded = Loaded()
        source = open_source(stream, format=chosen)
        for batch in _batches(source):
            self._store(batch, loaded)
        loaded.left_out += source.report.chats_lost
        loaded.messages += source.report.messages
        return loaded

    def _store(self, batch: list[ChatRecord], loaded: Loaded) -> None:
        with transaction.atomic():
            stored = store_records(self.tenant, batch)
            records = [record for record, one in zip(batch, stored, strict=True) if one.is_new]
            walks = [walk(record, self.tools, self.known) for record in records]
            versions = new_versions(stored)
            keep(self.tenant, versions, records, walks)
            self._note(stored)
        for version, record, walked in zip(versions, records, walks, strict=True):
            self.intake.add(self.catalogue, self.prompts, version, record, walked)
        self.intake.store_full(self.tenant)
        loaded.chats += len(versions)
        loaded.unchanged += len(stored) - len(versions)
        loaded.points += sum(len(walked.points) for walked in walks)

    def _note(self, stored: list[Stored]) -> None:
        ImportedChat.objects.bulk_create(
            (
                ImportedChat(
                    tenant=self.tenant, job_id=self.job, chat=one.chat, version=one.version, outcome=one.outcome
                )
                for one in stored
            ),
            ignore_conflicts=True,
        )


def _batches(source: Any) -> Iterator[list[ChatRecord]]:
    batch: list[ChatRecord] = []
    for located in source:
        if located.record is not None:
            batch.append(located.record)
        if len(batch) == BATCH_CHATS:
            yield batch
            batch = []
    if batch:
        yield batch


def load_folder(
    tenant: Tenant, path: Path, *, processes: int, say: Callable[[str], None] = lambda line: None
) -> Loaded:
    """Load every file of the folder, or the one file, that holds chats. Raises FileNotFoundError when there is none."""
    files = [path] if path.is_file() else sorted(p for p in path.glob("**/*") if p.is_file())
    files = [file for file in files if file.name not in NOT_CHATS and not file.name.startswith(".")]
    if not files:
        raise FileNotFoundError(str(path))
    total = Loaded()
    started = time.monotonic()
    for file in files:
        loaded = _load_file(tenant, file, processes, say)
        total.add(loaded)
    total.seconds = time.monotonic() - started
    return total


def _load_file(tenant: Tenant, path: Path, processes: int, say: Callable[[str], None]) -> Loaded:
    job = _open_job(tenant, path)
    total = Loaded()
    with path.open("rb") as stream:
        found = detect(stream)
    in_lines = found.format == FORMAT and path.suffix == ".jsonl"
    if in_lines and processes > 1 and path.stat().st_size > BLOCK_BYTES:
        for loaded in _shared_out(tenant, job.pk, path, processes):
            total.add(loaded)
            say(f"{path.name}: {total.chats:,} chats, {total.points:,} points")
    else:
        loader = _Loader(tenant, job.pk)
        total.add(loader.load(path))
        loader.intake.store_all(tenant)
    _close_job(job, total)
    return total


@transaction.atomic
def _open_job(tenant: Tenant, path: Path) -> ImportJob:
    job = ImportJob.objects.create(
        tenant=tenant,
        file_name=path.name[-255:],
        file_size=path.stat().st_size,
        status=Status.RUNNING,
        heartbeat_at=timezone.now() + timedelta(days=1),  # no sweeper sends it: there is no file to read
    )
    record_change(
        tenant=tenant,
        by=None,
        action="import.load",
        object_type="import",
        object_id=job.pk,
        object_label=job.file_name,
        after={"bytes": job.file_size},
    )
    return job


def _close_job(job: ImportJob, total: Loaded) -> None:
    ImportJob.objects.filter(pk=job.pk).update(
        status=Status.DONE if total.chats or total.unchanged else Status.FAILED,
        taken=total.chats,
        unchanged=total.unchanged,
        skipped=total.left_out,
        messages=total.messages,
        bytes_read=job.file_size,
        finished_at=timezone.now(),
        heartbeat_at=timezone.now(),
    )


# --- several processes


def _shared_out(tenant: Tenant, job: int, path: Path, processes: int) -> Iterator[Loaded]:
    """Blocks of lines, each done by the next process that is free. Raises RuntimeError when one of them dies."""
    connections.close_all()  # a connection must not be used on both sides of a fork
    context = multiprocessing.get_context("fork")
    blocks: Any = context.Queue()
    results: Any = context.Queue()
    spans = list(_line_blocks(path))
    for span in spans:
        blocks.put(span)
    for _ in range(processes):
        blocks.put(None)
    children = [
        context.Process(target=_work, args=(tenant, job, path, blocks, results), daemon=True) for _ in range(processes)
    ]
    for child in children:
        child.start()
    open_ends = processes
    while open_ends:
        try:
            result = results.get(timeout=1.0)
        except Exception as error:  # queue.Empty of the context
            if all(child.is_alive() or child.exitcode == 0 for child in children):
                continue
            raise RuntimeError("a loading process died; run the command again to go on") from error
        if result is None:
            open_ends -= 1
        elif isinstance(result, str):
            raise RuntimeError(result)
        else:
            yield result
    for child in children:
        child.join()


def _work(tenant: Tenant, job: int, path: Path, blocks: Any, results: Any) -> None:
    try:
        with scope(tenant=tenant), path.open("rb") as stream:
            loader = _Loader(tenant, job)
            while (span := blocks.get()) is not None:
                start, length = span
                stream.seek(start)
                results.put(loader.load(io.BytesIO(stream.read(length)), FORMAT))
            loader.intake.store_all(tenant)
        results.put(None)
    except Exception as error:
        results.put(f"{type(error).__name__}: {error}")
    finally:
        connections.close_all()


def _line_blocks(path: Path) -> Iterator[tuple[int, int]]:
    """Stretches of whole lines, as start and length."""
    size = path.stat().st_size
    with path.open("rb") as stream:
        start = 0
        while start < size:
            stream.seek(min(start + BLOCK_BYTES, size))
            stream.readline()
            end = min(stream.tell(), size) if start + BLOCK_BYTES < size else size
            yield start, end - start
            start = end


def usual_processes() -> int:
    """One a core."""
    return len(os.sched_getaffinity(0))
