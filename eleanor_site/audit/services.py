"""Writing the change log, in the transaction of the change itself."""

from __future__ import annotations

import json
from typing import Any

import structlog
from django.db import connection, transaction
from django.utils import timezone
from django_scopes import scope

from eleanor_site.audit import chain
from eleanor_site.audit.models import Entry
from eleanor_site.tenants.models import Tenant, User


def record(
    *,
    tenant: Tenant,
    by: User | None,
    action: str,
    object_type: str,
    object_id: object,
    object_label: str,
    before: Any = None,
    after: Any = None,
    note: str = "",
) -> Entry:
    """Append one entry. Must run inside the transaction of the change, so that both stand or fall together."""
    if not connection.in_atomic_block:
        raise RuntimeError("a change is recorded inside the transaction that makes it")
    # Two changes at once would take the same number; the lock on the tenant's row makes them queue.
    Tenant.objects.select_for_update().get(pk=tenant.pk)
    with scope(tenant=tenant):
        last = Entry.objects.order_by("-number").values("number", "hash").first()
        entry = Entry(
            tenant=tenant,
            number=last["number"] + 1 if last else 1,
            at=timezone.now(),
            actor=by,
            actor_label=_actor(by),
            action=action,
            object_type=object_type,
            object_id=str(object_id)[:64],
            object_label=object_label[:200],
            before=_text(before),
            after=_text(after),
            note=note,
            request_id=_bound("request_id")[:64],
            previous_hash=last["hash"] if last else chain.FIRST,
        )
        entry.hash = hash_of(entry)
        with transaction.atomic():
            entry.save(force_insert=True)
    return entry


def _actor(by: User | None) -> str:
    """The person, and the API key with which somebody acted in that person's name."""
    who, key = by.email if by else "system", _bound("api_key")
    return f"{who[:230]} (key {key})" if key else who


def _bound(name: str) -> str:
    return str(structlog.contextvars.get_contextvars().get(name, ""))


def hash_of(entry: Entry) -> str:
    """What the hash of this row has to be."""
    return chain.entry_hash(
        previous=entry.previous_hash,
        tenant_id=entry.tenant_id,
        number=entry.number,
        at=entry.at,
        actor_id=entry.actor_id,
        actor_label=entry.actor_label,
        action=entry.action,
        object_type=entry.object_type,
        object_id=entry.object_id,
        object_label=entry.object_label,
        before=entry.before,
        after=entry.after,
        note=entry.note,
        request_id=entry.request_id,
    )


def _text(value: Any) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False, default=str)
