"""An import at work: read the file as a stream, store chats in batches, each chat whole and once.

A worker that is killed loses nothing: the sweeper sends the job again, the file is read from the start, and what a
chat's row says already stands (import-formats.md section 5, rule-engine.md section 7.4).
"""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import structlog
from django.db import transaction
from django.db.models import Count
from django.utils import timezone
from django_scopes import scope, scopes_disabled

from chats import signals
from chats.domain import ChatRecord
from chats.domain.formats import ImportOptions, ImportReport, Source, open_source
from chats.domain.formats.foreign_nudges import DEFAULT_CODES
from chats.domain.formats.problems import Noted
from chats.domain.titles import Preambles
from chats.models import ImportedChat, ImportJob
from chats.storing import Outcome, Stored, expected_outcome, store_records
from eleanor_site import jobs
from eleanor_site.jobs import Status

log = structlog.get_logger(__name__)

BATCH_CHATS = 100
BATCH_MESSAGES = 2_000


def run_import(job_id: int) -> None:
    """Do the whole import, unless somebody else is doing it. Never raises for what a file holds."""
    with scopes_disabled():
        job = ImportJob.objects.select_related("tenant").filter(pk=job_id).first()
    if job is None:
        return
    with scope(tenant=job.tenant):
        attempt = jobs.claim(ImportJob.objects, job_id)
        if attempt is None:
            return
        try:
            _import(job, attempt)
        except Exception as error:
            log.exception("import_failed", job=job_id, attempt=attempt)
            jobs.give_back(ImportJob.objects, job_id, attempt, type(error).__name__)


def imports_to_send_again() -> list[int]:
    """Jobs without a sign of life, each named by one sweeper only."""
    with scopes_disabled():
        rows = ImportJob.objects
        found = list(jobs.silent(rows.all()).values_list("pk", "heartbeat_at"))
        return [pk for pk, seen in found if jobs.touch(rows.all(), pk, seen=seen)]


def _import(job: ImportJob, attempt: int) -> None:
    try:
        source = _read(job, attempt)
    finally:
        signals.import_read.send(sender=ImportJob, tenant=job.tenant, job=job)
    if source is not None:
        _close(job, attempt, source)


def _read(job: ImportJob, attempt: int) -> Source | None:
    """Store all that the file holds; None when another worker has taken the job over meanwhile."""
    with job.file.open("rb") as stream:
        source = open_source(stream, format=job.chosen_format or None, options=_options(job))
        preambles = Preambles()
        counts = Counter[str]() if job.check_only else _counted(job)
        for batch in _batches(source):
            if job.check_only:
                counts.update(expected_outcome(record) for record in batch)
            else:
                with transaction.atomic():
                    added = _store(job, batch, preambles.titles(batch))
                counts.update(added)
            if not jobs.beat(ImportJob.objects, job.pk, attempt):
                return None
            _count(job, source, counts)
    return source


def _options(job: ImportJob) -> ImportOptions:
    given = json.loads(job.options)
    off = frozenset(job.tenant.ignored_foreign_nudges.split())
    return ImportOptions(
        encoding=given.get("encoding") or None,
        all_branches=bool(given.get("all_branches")),
        text_protocol=given.get("text_protocol") or None,
        nudge_codes=DEFAULT_CODES - off if off else None,
    )


def _batches(source: Source) -> Iterator[list[ChatRecord]]:
    batch: list[ChatRecord] = []
    size = 0
    for located in source:
        if located.record is None:
            continue
        batch.append(located.record)
        size += len(located.record.chat.messages)
        if len(batch) >= BATCH_CHATS or size >= BATCH_MESSAGES:
            yield batch
            batch, size = [], 0
    yield batch


def _store(job: ImportJob, batch: list[ChatRecord], titles: list[str]) -> list[str]:
    """Store one batch inside the caller's transaction; the outcomes of chats that the job hadn't met before."""
    stored = store_records(job.tenant, batch, titles)
    fresh = [(one.version, record) for one, record in zip(stored, batch, strict=True) if one.is_new]
    added = _note_outcomes(job, stored)
    if fresh:
        versions = [version for version, _record in fresh]
        records = [record for _version, record in fresh]
        signals.versions_stored.send(sender=ImportJob, tenant=job.tenant, versions=versions, records=records, job=job)
    return added


def _note_outcomes(job: ImportJob, stored: Sequence[Stored]) -> list[str]:
    """A row for each chat. The same chat twice in one file counts once, as what happened to it first."""
    chats = {one.chat.pk for one in stored}
    known = {row.chat_id: row for row in ImportedChat.objects.filter(job=job, chat__in=chats)}
    added: dict[int, ImportedChat] = {}
    for one in stored:
        row = known.get(one.chat.pk) or added.get(one.chat.pk)
        if row is None:
            added[one.chat.pk] = ImportedChat(
                tenant=job.tenant, job=job, chat=one.chat, version=one.version, outcome=one.outcome
            )
        elif one.is_new:
            row.version = one.version
            if row.pk:
                row.save(update_fields=["version"])
    ImportedChat.objects.bulk_create(added.values())
    return [row.outcome for row in added.values()]


def _counted(job: ImportJob) -> Counter[str]:
    """What the job has done to how many chats, from the database."""
    rows = ImportedChat.objects.filter(job=job).order_by().values_list("outcome").annotate(n=Count("pk"))
    return Counter(dict(rows))


def _count(job: ImportJob, source: Source, by_outcome: Mapping[str, int]) -> None:
    """Bring the row's counts up to date."""
    ImportJob.objects.filter(pk=job.pk).update(
        format=source.format or "",
        taken=by_outcome.get(Outcome.TAKEN, 0),
        updated=by_outcome.get(Outcome.UPDATED, 0),
        unchanged=by_outcome.get(Outcome.UNCHANGED, 0),
        skipped=source.report.chats_lost,
        messages=source.report.messages,
    )


def _close(job: ImportJob, attempt: int, source: Source) -> None:
    """Finish: done, or failed when nothing could be taken."""
    if not job.check_only:
        _count(job, source, _counted(job))
    nothing = source.report.chats == 0
    mine = ImportJob.objects.filter(pk=job.pk, status=Status.RUNNING, attempts=attempt)
    mine.update(
        status=Status.FAILED if nothing else Status.DONE,
        report=json.dumps(report_as_json(source.report), ensure_ascii=False),
        finished_at=timezone.now(),
    )


def report_as_json(report: ImportReport) -> dict[str, Any]:
    """The report as plain values: counts, and for each problem its first places as text."""

    def noted(found: Noted) -> dict[str, Any]:
        places = [
            {**dataclasses.asdict(place), "details": {key: str(value)[:200] for key, value in details.items()}}
            for place, details in zip(found.places, found.details, strict=True)
        ]
        return {"count": found.count, "places": places}

    plain: dict[str, Any] = {"offered_protocol": report.offered_protocol}
    for name in (f.name for f in dataclasses.fields(report)):
        value = getattr(report, name)
        if isinstance(value, Noted):
            plain[name] = noted(value)
        elif isinstance(value, dict):
            plain[name] = {k: noted(v) if isinstance(v, Noted) else v for k, v in value.items()}
        else:
            plain[name] = value
    return plain
