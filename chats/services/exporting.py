"""Exporting chats as JSON Lines in the exchange form, so that an import of the file gives the same chats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.db.models import QuerySet
from django_scopes import scope

from chats.models import Chat, ChatVersion
from eleanor_site.exports import json_lines
from eleanor_site.tenants.models import Tenant

BATCH = 100


def export_chats(*, tenant: Tenant, chats: QuerySet[Chat]) -> Iterator[bytes]:
    """Lines of the newest versions of these chats, then a trailer with their number and digest.

    Streams: a hundred chats are in memory at a time. Which chats belong to it is settled by the first line.
    """
    with scope(tenant=tenant):
        ids = list(chats.order_by("id").values_list("id", flat=True))
    return json_lines(_contents(tenant, ids))


def export_versions(*, tenant: Tenant, versions: Sequence[int]) -> Iterator[bytes]:
    """The same for chat versions by id, in this order: what a corpus holds."""
    return json_lines(_contents(tenant, versions, of_versions=True))


def _contents(tenant: Tenant, ids: Sequence[int], *, of_versions: bool = False) -> Iterator[str]:
    """The scope is open while rows are read, and never while somebody else has the line."""
    for at in range(0, len(ids), BATCH):
        wanted = ids[at : at + BATCH]
        with scope(tenant=tenant):
            if of_versions:
                rows = dict(ChatVersion.objects.filter(pk__in=wanted).values_list("pk", "content"))
            else:
                rows = _newest(wanted)
        for pk in wanted:
            if pk in rows:
                yield rows[pk]


def _newest(chat_ids: Sequence[int]) -> dict[int, str]:
    rows = ChatVersion.objects.filter(chat__in=chat_ids).order_by("chat_id", "number")
    # Of each chat the last one stays, which is the newest.
    return dict(rows.values_list("chat_id", "content"))
