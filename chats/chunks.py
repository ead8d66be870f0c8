"""An import at work: read the file as a stream, store chats in batches, each chat whole and once.

A worker that is killed loses nothing: the sweeper sends the job again, the file is read from the start, and what a
chat's row says already stands (import-formats.md section 5, rule-engine.md section 7.4).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from typing import Any

import structlog
from django.db import transaction
from django.db.models import Count
from django.utils import timezone
from django_scopes import scope, scopes_disabled

from chats import signals
from chats.domain import ChatRecord
from chats.domain.exchange import to_json
from chats.domain.formats import ImportOptions, ImportReport, Source, identity_key, open_source, state_hash
from chats.domain.formats.foreign_nudges import DEFAULT_CODES
from chats.domain.formats.problems import Noted
from chats.domain.languages import language_of
from chats.models import Chat, ChatVersion, ImportedChat, ImportJob
from eleanor_site import jobs
from eleanor_site.jobs import Status

log = structlog.get_logger(__name__)

Outcome = ImportedChat.Outcome
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
    with job.file.open("rb") as stream:
        source = open_source(stream, format=job.chosen_format or None, options=_options(job))
        for batch in _batches(source):
            with transaction.atomic():
                _store(job, batch)
            if not jobs.beat(ImportJob.objects, job.pk, attempt):
                return  # taken over by another worker
            _count(job, source)
    _close(job, attempt, source)


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


def _store(job: ImportJob, batch: list[ChatRecord]) -> None:
    """Store one batch inside the caller's transaction. A chat that this job has taken already is passed over."""
    stored: list[ChatVersion] = []
    records: list[ChatRecord] = []
    for record in batch:
        version = _store_chat(job, record)
        if version is not None:
            stored.append(version)
            records.append(record)
    if stored:
        signals.versions_stored.send(sender=ImportJob, tenant=job.tenant, versions=stored, records=records)


def _store_chat(job: ImportJob, record: ChatRecord) -> ChatVersion | None:
    """The new version of this chat, or None when nothing in it is new."""
    key = hashlib.sha256(f"{record.source_format}\n{identity_key(record)}".encode()).hexdigest()
    state = state_hash(record)
    chat = Chat.objects.select_for_update().filter(identity=key).first()
    if chat is None:
        chat = Chat(tenant=job.tenant, identity=key, format=record.source_format)
    newest = ChatVersion.objects.filter(chat=chat).order_by("-number").first() if chat.pk else None
    if newest is not None and newest.content_hash == state:
        ImportedChat.objects.get_or_create(
            job=job, chat=chat, defaults={"tenant": job.tenant, "version": newest, "outcome": Outcome.UNCHANGED}
        )
        return None
    _summarise(chat, record)
    chat.version_count = newest.number + 1 if newest else 1
    chat.save()
    version = ChatVersion.objects.create(
        tenant=job.tenant, chat=chat, number=chat.version_count, content=to_json(record), content_hash=state
    )
    outcome = Outcome.UPDATED if newest else Outcome.TAKEN
    # The same chat twice in one file counts once, as what happened to it first.
    ImportedChat.objects.update_or_create(
        job=job,
        chat=chat,
        defaults={"version": version},
        create_defaults={"tenant": job.tenant, "version": version, "outcome": outcome},
    )
    return version


def _summarise(chat: Chat, record: ChatRecord) -> None:
    messages, details = record.chat.messages, record.details
    spoken = [m.content for m in messages if m.role in (record.chat.human_role, record.chat.ai_role)]
    people = [m.content for m in messages if m.role == record.chat.human_role]
    chat.external_id = (record.external_id or "")[:300]
    chat.title = (record.title or next((t.strip() for t in people if t.strip()), "")).replace("\n", " ")[:300]
    chat.message_count = len(messages)
    chat.nudge_count = sum(d.nudge_code is not None for d in details)
    chat.language = language_of(spoken)
    chat.model = next((d.model for d in details if d.model), str(record.metadata.get("model") or ""))[:200]
    chat.started_at = next((d.created_at for d in details if d.created_at), None)


def _count(job: ImportJob, source: Source) -> None:
    """Bring the row's counts up to date: outcomes from the database, the rest from the report so far."""
    by_outcome = dict(ImportedChat.objects.filter(job=job).values_list("outcome").annotate(n=Count("pk")))
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
    _count(job, source)
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
        return {"count": found.count, "places": [str(place) for place in found.places]}

    plain: dict[str, Any] = {}
    for name in (f.name for f in dataclasses.fields(report)):
        value = getattr(report, name)
        if isinstance(value, Noted):
            plain[name] = noted(value)
        elif isinstance(value, dict):
            plain[name] = {k: noted(v) if isinstance(v, Noted) else v for k, v in value.items()}
        else:
            plain[name] = value
    return plain
