"""Chats that a service sends, one request at a time: the same storing as an import, without a file."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import IntegrityError, transaction

from chats import signals
from chats.domain import ChatRecord
from chats.models import Chat
from chats.storing import Stored, new_versions, store_record
from eleanor_site.audit.services import record as record_change
from eleanor_site.tenants.models import Tenant, User

_TRIES = 3


def receive_chats(*, tenant: Tenant, by: User, records: Sequence[ChatRecord]) -> list[Stored]:
    """Store each chat whole: all of them or none. A chat that is the same as before changes nothing."""
    for _ in range(_TRIES - 1):
        try:
            return _receive(tenant, by, records)
        except IntegrityError:
            # Somebody stored the same chat in the same moment; seen from now on, it is an update.
            continue
    return _receive(tenant, by, records)


@transaction.atomic
def _receive(tenant: Tenant, by: User, records: Sequence[ChatRecord]) -> list[Stored]:
    stored = [store_record(tenant, record) for record in records]
    versions = new_versions(stored)
    if not versions:
        return stored
    new = [record for record, one in zip(records, stored, strict=True) if one.is_new]
    signals.versions_stored.send(sender=Chat, tenant=tenant, versions=versions, records=new, job=None)
    first = versions[0].chat
    record_change(
        tenant=tenant,
        by=by,
        action="chats.receive",
        object_type="chat",
        object_id=first.pk,
        # Not its title, which may be the first thing that somebody wrote there.
        object_label=f"#{first.pk}" if len(versions) == 1 else f"#{first.pk} +{len(versions) - 1}",
        after={"chats": [f"{version.chat_id} v{version.number}" for version in versions]},
    )
    return stored
