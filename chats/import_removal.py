"""Deleting an import: at once when it is small, else in batches by a worker.

Each batch goes whole or not at all, in one transaction with its counts. What is left to do is what the import still
names, so that another worker goes on where a killed one stopped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import structlog
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django_scopes import scope, scopes_disabled

from chats.models import ChatVersion, ImportDeletion, ImportedChat, ImportJob
from chats.removing import busy_imports, clean_search_index, delete_file, remove_versions
from eleanor_site import jobs
from eleanor_site.audit.services import record
from eleanor_site.jobs import Status
from eleanor_site.tenants.models import Tenant

log = structlog.get_logger(__name__)

# Chats of one transaction: a good part of a segment, since each batch writes the segments anew that it takes a part of.
BATCH = 1_000
READ = 500
Outcome = ImportedChat.Outcome


class Busy(Exception):
    """Another import is reading chats that would go."""


@dataclass(frozen=True)
class ImportContents:
    """What deleting an import would take: `versions` by id, `chats` that go whole, and how many stay in part.

    `kept` chats stay as they are, because another import or a service brought the same. `handed_on` are rows of other
    imports that brought a version too, and the outcome that they take over.
    """

    versions: frozenset[int]
    chats: frozenset[int]
    cut: int
    kept: int
    handed_on: dict[int, str]


# --- what would go


def contents_of(job: ImportJob) -> ImportContents:
    """Which versions came with this import and with no other.

    A version that was there before, from another import or over the API, isn't the import's. Of a chat that the file
    held in several states, or that it brought as new, the earlier ones are.
    """
    return _contents(job, _all_rows(job))


def _contents(job: ImportJob, parts: Iterator[Sequence[ImportedChat]]) -> ImportContents:
    own: dict[int, int] = {}
    outcomes: dict[int, str] = {}
    touched = 0
    for rows in parts:
        touched += len(rows)
        brought = {row.chat_id: row for row in rows if row.outcome != Outcome.UNCHANGED}
        outcomes.update({row.version_id: row.outcome for row in brought.values()})
        earlier = ChatVersion.objects.filter(chat__in=list(brought), created_at__gte=job.created_at)
        for pk, chat, number in earlier.values_list("pk", "chat_id", "number"):
            if number <= brought[chat].version.number:
                own[pk] = chat
        own.update({row.version_id: chat for chat, row in brought.items()})
    others, handed_on = _other_rows(job, own, outcomes)
    versions = frozenset(own.keys() - others)
    left = _chats_left(versions, {own[pk] for pk in versions})
    whole = frozenset(own[pk] for pk in versions) - left
    cut = len({own[pk] for pk in versions} & left)
    return ImportContents(versions, whole, cut, touched - len(whole) - cut, handed_on)


def _all_rows(job: ImportJob) -> Iterator[Sequence[ImportedChat]]:
    last = 0
    while rows := _rows_after(job, last, READ):
        last = rows[-1].pk
        yield rows


def _rows_after(job: ImportJob, last: int, count: int) -> list[ImportedChat]:
    rows = ImportedChat.objects.filter(job=job, pk__gt=last).select_related("version").order_by("pk")
    return list(rows.only("job", "chat", "outcome", "version__number")[:count])


def _other_rows(job: ImportJob, own: dict[int, int], outcomes: dict[int, str]) -> tuple[set[int], dict[int, str]]:
    """Versions that other imports brought too, and for each the first such row, which brings it from now on."""
    others: set[int] = set()
    handed_on: dict[int, str] = {}
    wanted = sorted(own)
    for at in range(0, len(wanted), READ):
        rows = ImportedChat.objects.filter(version__in=wanted[at : at + READ]).exclude(job=job).order_by("pk")
        for pk, version in rows.values_list("pk", "version_id"):
            if version not in others and version in outcomes:
                handed_on[pk] = outcomes[version]
            others.add(version)
    return others, handed_on


def _chats_left(versions: frozenset[int], chats: set[int]) -> set[int]:
    """Those of the chats that have another version."""
    left: set[int] = set()
    wanted = sorted(chats)
    for at in range(0, len(wanted), READ):
        rows = ChatVersion.objects.filter(chat__in=wanted[at : at + READ])
        left.update(chat for pk, chat in rows.values_list("pk", "chat_id") if pk not in versions)
    return left


# --- deleting it


def run_deletion(pk: int) -> None:
    """Delete all that is left of the import, unless somebody else is doing it."""
    with scopes_disabled():
        deletion = ImportDeletion.objects.select_related("tenant").filter(pk=pk).first()
    if deletion is None:
        return
    with scope(tenant=deletion.tenant):
        attempt = jobs.claim(ImportDeletion.objects, pk)
        if attempt is None:
            return
        try:
            while jobs.beat(ImportDeletion.objects, pk, attempt) and _delete_batch(deletion.tenant, pk, attempt):
                pass
        except Busy:
            # Queued with a fresh sign of life: the sweeper sends it when that is old.
            mine = ImportDeletion.objects.filter(pk=pk, status=Status.RUNNING, attempts=attempt)
            mine.update(status=Status.QUEUED, attempts=F("attempts") - 1, heartbeat_at=timezone.now())
        except Exception as error:
            log.exception("import_deletion_failed", deletion=pk, attempt=attempt)
            jobs.give_back(ImportDeletion.objects, pk, attempt, type(error).__name__)


def deletions_to_send_again() -> list[int]:
    """Deletions without a sign of life, each named by one sweeper only."""
    with scopes_disabled():
        rows = ImportDeletion.objects
        found = list(jobs.silent(rows.all()).values_list("pk", "heartbeat_at"))
        return [pk for pk, seen in found if jobs.touch(rows.all(), pk, seen=seen)]


@transaction.atomic
def _delete_batch(tenant: Tenant, pk: int, attempt: int) -> bool:
    """Whether there is more to do."""
    mine = ImportDeletion.objects.select_for_update().filter(pk=pk, status=Status.RUNNING, attempts=attempt)
    deletion = mine.first()
    if deletion is None or deletion.job_id is None:
        return False
    job = ImportJob.objects.select_for_update().get(pk=deletion.job_id)
    if delete_part(tenant, deletion, job):
        return True
    finish(tenant, deletion, job)
    return False


def delete_part(tenant: Tenant, deletion: ImportDeletion, job: ImportJob) -> bool:
    """Delete the next chats inside the caller's transaction, and count them; False when none is left. May be Busy."""
    rows = _rows_after(job, 0, BATCH)
    if not rows:
        return False
    contents = _contents(job, iter([rows]))
    if busy_imports(contents.versions):
        raise Busy
    for pk, outcome in contents.handed_on.items():
        ImportedChat.objects.filter(pk=pk, outcome=Outcome.UNCHANGED).update(outcome=outcome)
    removed = remove_versions(tenant, contents.versions, clean=False)
    ImportedChat.objects.filter(pk__in=[row.pk for row in rows]).delete()
    deletion.chats += removed.chats
    deletion.kept += contents.kept + contents.cut
    deletion.save(update_fields=["chats", "kept"])
    return True


def finish(tenant: Tenant, deletion: ImportDeletion, job: ImportJob) -> None:
    """Delete the emptied import and its file inside the caller's transaction, with the entry in the change log."""
    clean_search_index()
    delete_file(job.file.name or "")
    record(
        tenant=tenant,
        by=deletion.by,
        action="import.delete",
        object_type="import",
        object_id=job.pk,
        object_label=job.file_name,
        before={"bytes": job.file_size, "format": job.format},
        after={"chats_deleted": deletion.chats, "chats_kept": deletion.kept},
    )
    job.delete()
    deletion.job = None
    deletion.status, deletion.finished_at = Status.DONE, timezone.now()
    deletion.save(update_fields=["job", "status", "finished_at"])
