"""Deleting an import or a chat on request, and saying for how long chats are kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from chats.models import Chat, ChatVersion, ImportedChat, ImportJob
from chats.removing import Removed, busy_imports, delete_file, remove_versions
from eleanor_site.audit.services import record
from eleanor_site.jobs import STALE_AFTER, Status
from eleanor_site.problems import Refused
from eleanor_site.tenants.models import Tenant, User

BATCH = 500
Outcome = ImportedChat.Outcome


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


def contents_of(job: ImportJob) -> ImportContents:
    """Which versions came with this import and with no other.

    A version that was there before, from another import or over the API, isn't the import's. Of a chat that the file
    held in several states, or that it brought as new, the earlier ones are.
    """
    own: dict[int, int] = {}
    outcomes: dict[int, str] = {}
    touched: set[int] = set()
    for rows in _rows_of(job):
        touched.update(chat for chat, *_rest in rows)
        brought = {chat: (version, number) for chat, version, number, outcome in rows if outcome != Outcome.UNCHANGED}
        outcomes.update({version: outcome for _chat, version, _number, outcome in rows if outcome != Outcome.UNCHANGED})
        earlier = ChatVersion.objects.filter(chat__in=list(brought), created_at__gte=job.created_at)
        for pk, chat, number in earlier.values_list("pk", "chat_id", "number"):
            if number <= brought[chat][1]:
                own[pk] = chat
        own.update({version: chat for chat, (version, _number) in brought.items()})
    others, handed_on = _other_rows(job, own, outcomes)
    versions = frozenset(own.keys() - others)
    left = _chats_left(versions, {own[pk] for pk in versions})
    whole = frozenset(own[pk] for pk in versions) - left
    cut = len({own[pk] for pk in versions} & left)
    return ImportContents(versions, whole, cut, len(touched) - len(whole) - cut, handed_on)


def _rows_of(job: ImportJob) -> Iterator[list[tuple[int, int, int, str]]]:
    last = 0
    while True:
        rows = list(
            ImportedChat.objects.filter(job=job, pk__gt=last)
            .order_by("pk")
            .values_list("pk", "chat_id", "version_id", "version__number", "outcome")[:BATCH]
        )
        if not rows:
            return
        last = rows[-1][0]
        yield [(chat, version, number, outcome) for _pk, chat, version, number, outcome in rows]


def _other_rows(job: ImportJob, own: dict[int, int], outcomes: dict[int, str]) -> tuple[set[int], dict[int, str]]:
    """Versions that other imports brought too, and for each the first such row, which brings it from now on."""
    others: set[int] = set()
    handed_on: dict[int, str] = {}
    wanted = sorted(own)
    for at in range(0, len(wanted), BATCH):
        rows = ImportedChat.objects.filter(version__in=wanted[at : at + BATCH]).exclude(job=job).order_by("pk")
        for pk, version in rows.values_list("pk", "version_id"):
            if version not in others and version in outcomes:
                handed_on[pk] = outcomes[version]
            others.add(version)
    return others, handed_on


def _chats_left(versions: frozenset[int], chats: set[int]) -> set[int]:
    """Those of the chats that have another version."""
    left: set[int] = set()
    wanted = sorted(chats)
    for at in range(0, len(wanted), BATCH):
        rows = ChatVersion.objects.filter(chat__in=wanted[at : at + BATCH])
        left.update(chat for pk, chat in rows.values_list("pk", "chat_id") if pk not in versions)
    return left


@transaction.atomic
def delete_import(*, tenant: Tenant, by: User, job: ImportJob) -> Removed:
    """Delete the import, its file, and every chat that no other import and no service brought, with all that was made
    from them. Refused while the import is at work."""
    job = ImportJob.objects.select_for_update().get(pk=job.pk)
    if _is_at_work(job):
        raise Refused(_("This import is still at work. Delete it when it is done."))
    contents = contents_of(job)
    if busy_imports(contents.versions):
        raise Refused(_("Another import is reading the same chats. Try again when it is done."))
    for pk, outcome in contents.handed_on.items():
        ImportedChat.objects.filter(pk=pk, outcome=Outcome.UNCHANGED).update(outcome=outcome)
    removed = remove_versions(tenant, contents.versions)
    delete_file(job.file.name or "")
    record(
        tenant=tenant,
        by=by,
        action="import.delete",
        object_type="import",
        object_id=job.pk,
        object_label=job.file_name,
        before={"bytes": job.file_size, "format": job.format},
        after={"chats_deleted": removed.chats, "chats_kept": contents.kept + contents.cut},
    )
    job.delete()
    return removed


def _is_at_work(job: ImportJob) -> bool:
    seen = job.heartbeat_at
    return job.status == Status.RUNNING and seen is not None and seen > timezone.now() - STALE_AFTER


@transaction.atomic
def delete_chat(*, tenant: Tenant, by: User, chat: Chat) -> Removed:
    """Delete one chat with all its versions, what was made from them, and the uploaded files that hold it."""
    versions = list(ChatVersion.objects.filter(chat=chat).values_list("pk", flat=True))
    if busy_imports(versions):
        raise Refused(_("An import is reading this chat. Try again when it is done."))
    removed = remove_versions(tenant, versions)
    record(
        tenant=tenant,
        by=by,
        action="chat.delete",
        object_type="chat",
        object_id=chat.pk,
        # Its title may be the first thing that somebody wrote there.
        object_label=f"#{chat.pk}",
        before={"format": chat.format, "versions": removed.versions, "messages": chat.message_count},
        after={"files_deleted": removed.files},
    )
    return removed


@transaction.atomic
def keep_chats_for(*, tenant: Tenant, by: User, days: int | None) -> Tenant:
    """From now on chats are deleted after so many days; None: they are kept for ever."""
    stored = Tenant.objects.select_for_update().get(pk=tenant.pk)
    before = stored.keep_chats_days
    if before == days:
        return stored
    stored.keep_chats_days = days
    stored.save(update_fields=["keep_chats_days"])
    record(
        tenant=stored,
        by=by,
        action="retention.change",
        object_type="retention",
        object_id=stored.pk,
        object_label=stored.name,
        before={"days": before},
        after={"days": days},
    )
    return stored
