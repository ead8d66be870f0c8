"""Reading chats for lists and pages."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from django.db.models import F, Q, QuerySet

from chats.domain import ChatRecord
from chats.domain.exchange import from_json
from chats.models import Chat, ChatVersion, ImportJob

PAGE = 50


@dataclass(frozen=True)
class ChatFilter:
    """Filters of the chat list, as they stand in the URL."""

    text: str = ""
    language: str = ""
    model: str = ""
    format: str = ""
    nudged: bool = False
    job: int | None = None
    start: date | None = None
    end: date | None = None


def chats(wanted: ChatFilter, *, after: int | None = None) -> QuerySet[Chat]:
    """The newest first; `after` is the id that the page before ended with."""
    found: QuerySet[Chat] = Chat.objects.order_by("-id")
    if wanted.text:
        found = found.filter(Q(title__icontains=wanted.text) | Q(external_id__icontains=wanted.text))
    if wanted.language:
        found = found.filter(language=wanted.language)
    if wanted.model:
        found = found.filter(model=wanted.model)
    if wanted.format:
        found = found.filter(format=wanted.format)
    if wanted.nudged:
        found = found.filter(nudge_count__gt=0)
    if wanted.job is not None:
        found = found.filter(imports__job=wanted.job)
    if wanted.start:
        found = found.filter(started_at__date__gte=wanted.start)
    if wanted.end:
        found = found.filter(started_at__date__lte=wanted.end)
    return found.filter(pk__lt=after) if after else found


def newest_versions(found: QuerySet[Chat]) -> QuerySet[ChatVersion]:
    """The newest version of each of these chats, in the order in which chats came in."""
    newest = ChatVersion.objects.filter(chat__in=found.order_by(), number=F("chat__version_count"))
    return newest.order_by("chat_id")


def record_of(version: ChatVersion) -> ChatRecord:
    """The stored chat as it was imported, details included."""
    record = from_json(version.content)
    record.source_format = version.chat.format
    return record


def imports() -> QuerySet[ImportJob]:
    return ImportJob.objects.select_related("by").order_by("-id")
