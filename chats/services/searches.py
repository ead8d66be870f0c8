"""Keeping the search index, and searches that people saved."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from chats.domain import ChatRecord
from chats.domain.search_terms import indexed
from chats.models import Chat, ChatText, ChatVersion, SavedSearch
from chats.queries.chats import newest_versions, record_of
from chats.queries.search import tenant_token
from eleanor_site.audit.services import record as record_change
from eleanor_site.problems import Refused
from eleanor_site.tenants.models import Tenant, User

BATCH = 200


def index_versions(
    sender: Any, *, tenant: Tenant, versions: list[ChatVersion], records: list[ChatRecord], **rest: Any
) -> None:
    """Receiver of `versions_stored`; runs inside the import's transaction, so that what is stored can be found."""
    # Twice the same chat in a batch: the later version is the newest one.
    rows = {
        version.chat_id: _chat_text(tenant, version.chat_id, record)
        for version, record in zip(versions, records, strict=True)
    }
    ChatText.objects.bulk_create(
        rows.values(),
        update_conflicts=True,
        unique_fields=["chat"],
        update_fields=["stems", "words"],
        batch_size=BATCH,
    )


def index_missing(tenant: Tenant) -> int:
    """Index the chats that aren't yet. Gives how many there were."""
    done = 0
    while True:
        chats = Chat.objects.filter(text__isnull=True).order_by("pk")[:BATCH]
        versions = list(newest_versions(Chat.objects.filter(pk__in=[c.pk for c in chats])).select_related("chat"))
        if not versions:
            return done
        with transaction.atomic():
            index_versions(None, tenant=tenant, versions=versions, records=[record_of(v) for v in versions])
        done += len(versions)


def _chat_text(tenant: Tenant, chat_id: int, record: ChatRecord) -> ChatText:
    found = indexed(_texts(record))
    return ChatText(
        tenant=tenant, chat_id=chat_id, stems=f"{tenant_token(tenant)} {found.stems}".strip(), words=found.words
    )


def _texts(record: ChatRecord) -> Iterator[str]:
    """What a person can look for: title, id, what was said, and which tools were called with what."""
    yield record.title or ""
    yield record.external_id or ""
    for message, details in zip(record.chat.messages, record.details, strict=True):
        yield message.content
        for call in details.tool_calls:
            yield call.name
            yield from _values(call.arguments if call.arguments is not None else call.arguments_raw)


def _values(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        return (value,)
    return (json.dumps(value, ensure_ascii=False),) if value else ()


@transaction.atomic
def save_search(*, tenant: Tenant, by: User, name: str, query: str) -> SavedSearch:
    """Keep the filters under a name that is unique in the tenant."""
    if not name:
        raise Refused(_("A saved search needs a name."))
    try:
        with transaction.atomic():
            search = SavedSearch.objects.create(tenant=tenant, by=by, name=name[:120], query=query)
    except IntegrityError as error:
        raise Refused(_("A saved search has this name already. Choose another one.")) from error
    record_change(
        tenant=tenant,
        by=by,
        action="search.save",
        object_type="search",
        object_id=search.pk,
        object_label=search.name,
        after={"query": query},
    )
    return search


@transaction.atomic
def delete_search(*, tenant: Tenant, by: User, search: SavedSearch) -> None:
    record_change(
        tenant=tenant,
        by=by,
        action="search.delete",
        object_type="search",
        object_id=search.pk,
        object_label=search.name,
        before={"query": search.query},
    )
    search.delete()
