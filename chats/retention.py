"""Chats are kept for as many days as the tenant says, and no longer (product.md section 5.10)."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

import structlog
from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone
from django_scopes import scope

from chats.models import Chat, ChatVersion, ImportJob
from chats.removing import busy_imports, delete_file, remove_versions
from eleanor_site.audit.services import record
from eleanor_site.jobs import Status
from eleanor_site.tenants.models import Tenant

log = structlog.get_logger(__name__)

# Each batch writes the segments anew that it takes a part of.
BATCH = 1_000
RUN_SECONDS = 240.0


def limit_of(days: int, now: datetime | None = None) -> datetime:
    """What came in before this is older than so many days."""
    return (now or timezone.now()) - timedelta(days=days)


def kept_until(tenant: Tenant, chat: Chat) -> datetime | None:
    """When the chat is deleted, unless it goes on; None: never."""
    if tenant.keep_chats_days is None:
        return None
    newest = ChatVersion.objects.filter(chat=chat, number=chat.version_count).values_list("created_at", flat=True)
    return newest.get() + timedelta(days=tenant.keep_chats_days)


def older_than(before: datetime) -> QuerySet[Chat]:
    """Chats whose newest version came in before this moment: a chat that goes on is kept as long as it does."""
    return Chat.objects.filter(versions__number=F("version_count"), versions__created_at__lt=before).order_by("pk")


def delete_old_chats(*, now: datetime | None = None, seconds: float = RUN_SECONDS) -> int:
    """Delete what is older than each tenant keeps, in batches, each with its entry in the change log; how many chats.

    What time doesn't suffice for is left to the next run.
    """
    until = time.monotonic() + seconds
    count = 0
    for tenant in Tenant.objects.filter(keep_chats_days__isnull=False).order_by("pk"):
        with scope(tenant=tenant):
            before = limit_of(tenant.keep_chats_days or 0, now)
            passed = 0
            while time.monotonic() < until:
                batch = list(older_than(before).filter(pk__gt=passed).values_list("pk", flat=True)[:BATCH])
                if not batch:
                    break
                passed = batch[-1]
                count += _delete_batch(tenant, batch, before)
            _delete_old_uploads(tenant, before)
    return count


@transaction.atomic
def _delete_batch(tenant: Tenant, chats: list[int], before: datetime) -> int:
    # Asked again under the lock: a chat that went on meanwhile stays.
    locked = Chat.objects.select_for_update().filter(pk__in=chats).order_by("pk").values_list("pk", flat=True)
    old = list(older_than(before).filter(pk__in=list(locked)).values_list("pk", flat=True))
    versions = list(ChatVersion.objects.filter(chat__in=old).values_list("pk", flat=True))
    if not versions or busy_imports(versions):
        return 0
    removed = remove_versions(tenant, versions, keep_counts=True)
    record(
        tenant=tenant,
        by=None,
        action="chats.expire",
        object_type="retention",
        object_id=tenant.pk,
        object_label=tenant.name,
        after={"chats": removed.chats, "files": removed.files, "kept_days": tenant.keep_chats_days},
    )
    log.info("chats_expired", tenant=tenant.slug, chats=removed.chats)
    return removed.chats


def _delete_old_uploads(tenant: Tenant, before: datetime) -> None:
    """Uploads that came in before, whatever became of them: a file that was only checked holds chats too."""
    found = ImportJob.objects.filter(created_at__lt=before, status__in=(Status.DONE, Status.FAILED)).exclude(file="")
    with transaction.atomic():
        jobs = dict(found.values_list("pk", "file"))
        if not jobs:
            return
        for name in jobs.values():
            delete_file(name)
        ImportJob.objects.filter(pk__in=list(jobs)).update(file="")
        record(
            tenant=tenant,
            by=None,
            action="uploads.expire",
            object_type="retention",
            object_id=tenant.pk,
            object_label=tenant.name,
            after={"files": len(jobs), "kept_days": tenant.keep_chats_days},
        )
