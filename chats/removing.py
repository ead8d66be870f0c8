"""Deleting stored chats with everything that was made from them (import-formats.md section 7, product.md goal C7).

Pages, the API and the retention task take the same path. What only the deciding side knows of (segments, nudges,
verdicts, tests) goes in the same transaction, by the signal `versions_removing`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

import structlog
from django.core.files.storage import default_storage
from django.db import connection, transaction
from django.db.models import Max
from django.utils import timezone
from django_scopes import scopes_disabled

from chats import signals
from chats.models import Chat, ChatText, ChatVersion, Corpus, ImportedChat, ImportJob
from chats.queries.chats import record_of
from chats.storing import summarise
from eleanor_site.jobs import STALE_AFTER, Status
from eleanor_site.tenants.models import Tenant

log = structlog.get_logger(__name__)

BATCH = 500
# A file that no row names may be one that is being uploaded.
ORPHANED_AFTER = timedelta(hours=6)


@dataclass(frozen=True)
class Removed:
    """How many chats went whole, how many versions went, and how many uploaded files that held them."""

    chats: int
    versions: int
    files: int


def remove_versions(
    tenant: Tenant,
    versions: Collection[int],
    *,
    keep_counts: bool = False,
    successors: Mapping[int, int] | None = None,
    clean: bool = True,
) -> Removed:
    """Delete these versions and all that was derived from them, inside the caller's transaction.

    A chat that keeps no version goes whole; one that loses its newest shows the newest that stays. The uploaded files
    that brought the versions are deleted once the transaction stands. `successors` name the version that takes the
    place of another (a redaction): what was said of points moves there. With `keep_counts` nudges and verdicts stay as
    numbers, without their chat. `clean=False` is for a caller that cleans the search index itself, after many batches.
    """
    followed = dict(successors or {})
    wanted = sorted(versions)
    _overwrite_what_is_deleted()
    by_chat = _lock_chats(wanted)
    whole = _chats_that_go(by_chat)
    signals.versions_removing.send(
        sender=ChatVersion,
        tenant=tenant,
        versions=frozenset(wanted),
        chats=frozenset(whole),
        successors=followed,
        keep_counts=keep_counts,
    )
    files = _drop_uploads(wanted)
    chat_of = {pk: chat for chat, gone in by_chat.items() for pk in gone}
    for old, new in followed.items():
        # Deleting the import later has to find the redacted chat.
        ImportedChat.objects.filter(version__in=by_chat[chat_of[old]]).update(version=new)
    _note_in_corpora(set(wanted))
    for part in _parts(wanted):
        ImportedChat.objects.filter(version__in=part).delete()
        ChatVersion.objects.filter(pk__in=part).defer("content").delete()
    for part in _parts(whole):
        ChatText.objects.filter(chat__in=part).delete()
        Chat.objects.filter(pk__in=part).delete()
    _show_what_stays(tenant, sorted(set(by_chat) - set(whole)))
    if clean:
        clean_search_index()
    return Removed(len(whole), len(wanted), files)


def busy_imports(versions: Collection[int]) -> bool:
    """Whether an import that brought one of these versions is at work."""
    alive = timezone.now() - STALE_AFTER
    return any(
        ImportJob.objects.filter(chats__version__in=part, status=Status.RUNNING, heartbeat_at__gte=alive).exists()
        for part in _parts(sorted(versions))
    )


def delete_file(name: str) -> None:
    """Delete an uploaded file as soon as the transaction stands. A file that is gone already is no problem."""
    if name:
        transaction.on_commit(lambda: default_storage.delete(name))


def delete_orphaned_uploads() -> int:
    """Delete uploaded files that no import names: what a process left that was killed between commit and deletion."""
    with scopes_disabled():
        named = set(ImportJob.objects.exclude(file="").values_list("file", flat=True))
    before = timezone.now() - ORPHANED_AFTER
    count = 0
    for name in list(_files_under("imports")):
        if name not in named and default_storage.get_modified_time(name) < before:
            default_storage.delete(name)
            count += 1
    if count:
        log.info("orphaned_uploads_deleted", files=count)
    return count


def _files_under(folder: str) -> Iterator[str]:
    if not default_storage.exists(folder):
        return
    folders, files = default_storage.listdir(folder)
    for name in files:
        yield f"{folder}/{name}"
    for name in folders:
        yield from _files_under(f"{folder}/{name}")


# --- steps


def _parts(ids: Iterable[int]) -> Iterator[list[int]]:
    wanted = list(ids)
    for at in range(0, len(wanted), BATCH):
        yield wanted[at : at + BATCH]


def _lock_chats(versions: list[int]) -> dict[int, list[int]]:
    """The chats of these versions, each with those of its versions that go, locked in the order of their ids."""
    by_chat: dict[int, list[int]] = {}
    for part in _parts(versions):
        for pk, chat in ChatVersion.objects.filter(pk__in=part).values_list("pk", "chat_id"):
            by_chat.setdefault(chat, []).append(pk)
    for part in _parts(sorted(by_chat)):
        list(Chat.objects.select_for_update().filter(pk__in=part).order_by("pk").values_list("pk"))
    return by_chat


def _chats_that_go(by_chat: Mapping[int, list[int]]) -> list[int]:
    kept: set[int] = set()
    for part in _parts(sorted(by_chat)):
        for pk, chat in ChatVersion.objects.filter(chat__in=part).values_list("pk", "chat_id"):
            if pk not in by_chat[chat]:
                kept.add(chat)
    return sorted(set(by_chat) - kept)


def _drop_uploads(versions: list[int]) -> int:
    """The files that brought these versions hold them still, with everything else that was in them."""
    jobs: dict[int, str] = {}
    for part in _parts(versions):
        found = ImportJob.objects.filter(chats__version__in=part).exclude(file="")
        jobs.update(found.values_list("pk", "file"))
    for name in jobs.values():
        delete_file(name)
    ImportJob.objects.filter(pk__in=list(jobs)).update(file="")
    return len(jobs)


def _note_in_corpora(versions: set[int]) -> None:
    for corpus in Corpus.objects.select_for_update():
        gone = len(versions.intersection(json.loads(corpus.members)))
        if gone:
            Corpus.objects.filter(pk=corpus.pk).update(missing=corpus.missing + gone)


def _show_what_stays(tenant: Tenant, chats: list[int]) -> None:
    """Chats that lost their newest version show the newest that stays: in lists, in the search, and to rules."""
    for part in _parts(chats):
        newest = dict(ChatVersion.objects.filter(chat__in=part).values_list("chat").annotate(top=Max("number")))
        behind = [chat for chat in Chat.objects.filter(pk__in=part) if chat.version_count != newest[chat.pk]]
        versions = []
        for chat in behind:
            version = ChatVersion.objects.select_related("chat").get(chat=chat, number=newest[chat.pk])
            version.chat.version_count = version.number
            summarise(version.chat, record_of(version))
            version.chat.save()
            versions.append(version)
        if versions:
            records = [record_of(version) for version in versions]
            signals.versions_stored.send(sender=Chat, tenant=tenant, versions=versions, records=records, job=None)


# --- SQLite keeps deleted text in its file unless it is told not to


def _overwrite_what_is_deleted() -> None:
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA secure_delete = ON")


def clean_search_index() -> None:
    """The full-text index only marks what is deleted, until its parts are merged. PostgreSQL's vacuum does it there."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO chats_search(chats_search) VALUES ('optimize')")
