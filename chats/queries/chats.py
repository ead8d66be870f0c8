"""Reading chats for lists and pages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import date

from django.db import connection
from django.db.models import F, QuerySet
from django.db.models.expressions import RawSQL
from django.http import QueryDict
from django_scopes import get_scope

from chats.domain import ChatRecord
from chats.domain.exchange import from_json
from chats.models import Chat, ChatVersion, Corpus, ImportJob, SavedSearch
from chats.queries.narrowing import narrowings
from chats.queries.search import found_by
from eleanor_site.days import day_from, within
from eleanor_site.numbers import whole_number

PAGE = 50
KNOWN_VALUES = 100
# What an address or form holds beside the filters.
_NO_FILTERS = ("after", "csrfmiddlewaretoken", "name")


@dataclass(frozen=True)
class ChatFilter:
    """Filters of the chat list, as they stand in the URL. `narrowed` are those of the apps above, as key and value."""

    text: str = ""
    language: str = ""
    model: str = ""
    format: str = ""
    nudged: bool = False
    job: int | None = None
    start: date | None = None
    end: date | None = None
    narrowed: tuple[tuple[str, str], ...] = ()

    def value(self, key: str) -> str:
        """The value of a filter that an app above added; empty when it isn't set."""
        return dict(self.narrowed).get(key, "")

    @property
    def is_empty(self) -> bool:
        return all(getattr(self, field.name) == field.default for field in fields(self))


def filter_of(given: QueryDict) -> ChatFilter:
    """The filter that the parameters of an address name; what they can't mean is left out."""
    job = given.get("import", "")
    narrowed = ((n.key, given.get(n.key, "").replace("\x00", "")) for n in narrowings())
    return ChatFilter(
        text=given.get("q", "").strip().replace("\x00", ""),
        language=given.get("lang", "").replace("\x00", ""),
        model=given.get("model", "").replace("\x00", ""),
        format=given.get("format", "").replace("\x00", ""),
        nudged=given.get("nudged", "") == "1",
        job=whole_number(job, otherwise=None, most=10**17 - 1),
        start=day_from(given.get("from", "")),
        end=day_from(given.get("to", "")),
        narrowed=tuple((key, value) for key, value in narrowed if value),
    )


def query_of(given: QueryDict) -> str:
    """The filters of an address, without what is empty and without the place in the list."""
    query = QueryDict(mutable=True)
    for key in sorted(given):
        value = given.get(key, "")
        if key not in _NO_FILTERS and value:
            query[key] = value.replace("\x00", "")
    return query.urlencode()


def chats(wanted: ChatFilter, *, after: int | None = None) -> QuerySet[Chat]:
    """The newest first; `after` is the id that the page before ended with."""
    found: QuerySet[Chat] = Chat.objects.order_by("-id")
    if wanted.text:
        found = found_by(found, wanted.text, get_scope()["tenant"])
    if wanted.language:
        found = found.filter(language="" if wanted.language == "none" else wanted.language)
    if wanted.model:
        found = found.filter(model=wanted.model)
    if wanted.format:
        found = found.filter(format=wanted.format)
    if wanted.nudged:
        found = found.filter(nudge_count__gt=0)
    if wanted.job is not None:
        found = found.filter(imports__job=wanted.job)
    found = found.filter(**within("started_at", wanted.start, wanted.end))
    for narrowing in narrowings():
        if wanted.value(narrowing.key):
            found = narrowing.apply(found, wanted.value(narrowing.key))
    return found.filter(pk__lt=after) if after else found


def chats_of_search(search: SavedSearch) -> QuerySet[Chat]:
    """The chats that a saved search finds now."""
    return chats(filter_of(QueryDict(search.query)))


def newest_versions(found: QuerySet[Chat]) -> QuerySet[ChatVersion]:
    """The newest version of each of these chats, in the order in which chats came in."""
    newest = ChatVersion.objects.filter(chat__in=found.order_by(), number=F("chat__version_count"))
    return newest.order_by("chat_id")


def with_ids(found: QuerySet[Chat], ids: Iterable[int]) -> QuerySet[Chat]:
    """Those of the chats with one of these ids, however many ids there are."""
    listed = ",".join(str(pk) for pk in ids)
    if connection.vendor == "postgresql":
        return found.filter(pk__in=RawSQL("SELECT unnest(%s::bigint[])", ("{" + listed + "}",)))
    return found.filter(pk__in=RawSQL("SELECT value FROM json_each(%s)", (f"[{listed}]",)))


def stored_version(chat: int, number: int | None = None) -> ChatVersion | None:
    """The chat's version of that number, or its newest one; None where there is none."""
    row = Chat.objects.filter(pk=chat).first()
    if row is None:
        return None
    wanted = row.version_count if number is None else number
    return ChatVersion.objects.select_related("chat").filter(chat=row, number=wanted).first()


def record_of(version: ChatVersion) -> ChatRecord:
    """The stored chat as it was imported, details included."""
    record = from_json(version.content)
    record.source_format = version.chat.format
    return record


def imports() -> QuerySet[ImportJob]:
    return ImportJob.objects.select_related("by", "deletion").order_by("-id")


def corpora() -> QuerySet[Corpus]:
    return Corpus.objects.select_related("by").defer("members").order_by("-id")


def saved_searches() -> QuerySet[SavedSearch]:
    return SavedSearch.objects.select_related("by").order_by("name")


def known_models() -> list[str]:
    """The models of the tenant's chats, by name; the first hundred."""
    return _values("model")


def known_formats() -> list[str]:
    return _values("format")


def _values(field: str) -> list[str]:
    found = Chat.objects.exclude(**{field: ""}).order_by(field).values_list(field, flat=True).distinct()
    return list(found[:KNOWN_VALUES])
