"""The list of chats."""

from __future__ import annotations

from datetime import date

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from chats.models import Chat
from chats.queries.chats import PAGE, ChatFilter, chats
from eleanor_site.access import viewer
from eleanor_site.web import Request, page

KNOWN_LISTS = 100


@viewer
@require_safe
def chat_list(request: Request) -> HttpResponse:
    """Newest first, with filters in the URL; pages by key."""
    wanted = filter_of(request)
    after = request.GET.get("after", "")
    rows = list(chats(wanted, after=int(after) if after.isdigit() else None)[: PAGE + 1])
    context = {
        "rows": rows[:PAGE],
        "next_after": rows[PAGE - 1].pk if len(rows) > PAGE else None,
        "wanted": wanted,
        "filtered": wanted != ChatFilter(),
        "models": _values("model"),
        "formats": _values("format"),
        "anything": bool(rows) or Chat.objects.exists(),
    }
    return page(request, "chats/list.html", context, part="rows" if after else "results")


def filter_of(request: Request) -> ChatFilter:
    """The filter that the address names; what it can't mean is left out."""
    given = request.GET
    job = given.get("import", "")
    return ChatFilter(
        text=given.get("q", "").strip().replace("\x00", ""),
        language=given.get("lang", ""),
        model=given.get("model", "").replace("\x00", ""),
        format=given.get("format", "").replace("\x00", ""),
        nudged=given.get("nudged", "") == "1",
        job=int(job) if job.isdigit() and len(job) < 18 else None,
        start=_day(given.get("from", "")),
        end=_day(given.get("to", "")),
    )


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _values(field: str) -> list[str]:
    found = Chat.objects.exclude(**{field: ""}).order_by(field).values_list(field, flat=True).distinct()
    return list(found[:KNOWN_LISTS])
