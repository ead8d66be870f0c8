"""The rows by which work on columns is claimed."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from eleanor_site.jobs import Status
from eleanor_site.tenants.models import Tenant
from rules.models import Preparation

RETRY_AFTER = timedelta(minutes=5)


def wanted(tenant: Tenant, kind: str) -> int | None:
    """Note that there is work of this kind; the row's number when a task should be sent for it, else None."""
    row, made = Preparation.objects.get_or_create(tenant=tenant, kind=kind, defaults={"heartbeat_at": timezone.now()})
    if made:
        return row.pk
    done = Preparation.objects.filter(pk=row.pk, status=Status.DONE)
    failed = Preparation.objects.filter(pk=row.pk, status=Status.FAILED, heartbeat_at__lt=timezone.now() - RETRY_AFTER)
    fresh = {"status": Status.QUEUED, "attempts": 0, "heartbeat_at": timezone.now()}
    return row.pk if done.update(**fresh) or failed.update(**fresh) else None
