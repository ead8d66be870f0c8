"""Searching the texts of chats (product.md goal C6): the same hits on SQLite and on PostgreSQL."""

from __future__ import annotations

from django.db import connection
from django.db.models import QuerySet
from django.db.models.expressions import RawSQL

from chats.domain.search_terms import parse
from chats.models import Chat, ChatText
from eleanor_site.tenants.models import Tenant

SQLITE = "SELECT rowid FROM chats_search WHERE chats_search MATCH %s"
POSTGRESQL = "SELECT chat_id FROM chats_chattext WHERE array_to_tsvector(string_to_array(stems, ' ')) @@ %s::tsquery"


def found_by(chats: QuerySet[Chat], query: str, tenant: Tenant) -> QuerySet[Chat]:
    """Those of the chats that hold every word (in any inflection) and every quoted phrase of the query."""
    terms = parse(query)
    if terms.impossible:
        return chats.none()
    if not terms.groups:
        return chats
    groups = ((tenant_token(tenant),), *terms.groups)
    if connection.vendor == "postgresql":
        wanted = " & ".join("(" + " | ".join(f"'{stem}'" for stem in group) + ")" for group in groups)
        hits = RawSQL(POSTGRESQL, (wanted,))
    else:
        wanted = " AND ".join("(" + " OR ".join(f'"{stem}"' for stem in group) + ")" for group in groups)
        hits = RawSQL(SQLITE, (wanted,))
    if not terms.phrases:
        return chats.filter(pk__in=hits)
    texts = ChatText.objects.filter(chat__in=hits)
    for phrase in terms.phrases:
        texts = texts.filter(words__contains=phrase)
    return chats.filter(pk__in=texts.values("chat"))


def tenant_token(tenant: Tenant) -> str:
    """Stands among the stems of each chat, so that an index over all tenants looks at one of them only."""
    return f"t{tenant.pk}"
