"""Taking texts out of chats: of one chat by message or pattern, of many by pattern. Each is shown before it is done.

What is looked for may itself be personal, so it travels in forms only, never in an address.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods

from chats.models import Chat, ChatVersion
from chats.queries.chats import chats, filter_of, query_of
from chats.queries.removal import uploads_of
from chats.services.redacting import Redacted
from eleanor_site.access import admin
from eleanor_site.numbers import whole_number
from eleanor_site.problems import Refused
from eleanor_site.web import Request, page
from rules.queries.timeline import record_of_version
from rules.services import redacting as services

MESSAGES_SHOWN = 200
_OWN_FIELDS = ("pattern", "step", "seen", "after")


@admin
@require_http_methods(["GET", "HEAD", "POST"])
def redact_chat(request: Request, chat: int) -> HttpResponse:
    """Choose messages or write a pattern, see what would go, and do it."""
    version = _newest(chat)
    chosen = sorted({int(n) for n in request.POST.getlist("message") if n.isdecimal() and len(n) < 9})
    pattern = request.POST.get("pattern", "").replace("\x00", "")
    context: dict[str, Any] = {"pattern": pattern, "chosen": chosen}
    status = 200
    if request.method == "POST":
        try:
            if request.POST.get("step") == "redact":
                done = _redact_one(request, version, pattern, chosen)
                messages.success(request, _told(done))
                return redirect("rules:chat", request.tenant.slug, chat)
            redactor = services.redactor_of(pattern, chosen)
            context["preview"] = services.preview(Chat.objects.filter(pk=chat), redactor)
        except Refused as refused:
            context["problem"] = str(refused)
            status = refused.status
    record = record_of_version(version)
    start = request.GET.get("message", "")
    first = whole_number(start, otherwise=0, most=10**8 - 1)
    first = min(first, max(0, len(record.chat.messages) - 1))
    context |= {
        "chat": version.chat,
        "version": version,
        "rows": [
            {"index": index, "role": message.role, "text": message.content, "calls": len(details.tool_calls)}
            for index, (message, details) in enumerate(zip(record.chat.messages, record.details, strict=True))
        ][first : first + MESSAGES_SHOWN],
        "earlier": max(0, first - MESSAGES_SHOWN) if first else None,
        "later": first + MESSAGES_SHOWN if first + MESSAGES_SHOWN < len(record.chat.messages) else None,
        "uploads": uploads_of(list(version.chat.versions.values_list("pk", flat=True))),
    }
    return page(request, "rules/redact_chat.html", context, status=status)


def _redact_one(request: Request, version: ChatVersion, pattern: str, chosen: list[int]) -> Redacted:
    given = request.POST.get("version", "")
    seen = {version.chat_id: whole_number(given, otherwise=0, most=10**8 - 1)}
    return services.redact_chats(tenant=request.tenant, by=request.user, seen=seen, pattern=pattern, chosen=chosen)


@admin
@require_http_methods(["GET", "HEAD", "POST"])
def redact_chats(request: Request) -> HttpResponse:
    """A pattern over the chats that the filters of the list leave; without filters over all of them."""
    given = request.POST if request.method == "POST" else request.GET
    query = _filters(given)
    pattern = request.POST.get("pattern", "").replace("\x00", "")
    context: dict[str, Any] = {
        "pattern": pattern,
        "query": query,
        "filters": list(QueryDict(query).items()),
        "chat_count": chats(filter_of(QueryDict(query))).count(),
    }
    status = 200
    if request.method == "POST":
        try:
            if request.POST.get("step") == "redact":
                seen = _seen(request.POST.get("seen", ""))
                done = services.redact_chats(tenant=request.tenant, by=request.user, seen=seen, pattern=pattern)
                messages.success(request, _told(done))
                return redirect("chats:retention", request.tenant.slug)
            after = request.POST.get("after", "") if request.POST.get("step") == "next" else ""
            found = services.preview(
                chats(filter_of(QueryDict(query))).order_by("pk"),
                services.redactor_of(pattern),
                after=whole_number(after, otherwise=0, most=10**17 - 1),
            )
            context |= {"preview": found, "seen": json.dumps(list(found.seen.items()))}
        except Refused as refused:
            context["problem"] = str(refused)
            status = refused.status
    return page(request, "rules/redact_chats.html", context, status=status)


def _filters(given: QueryDict) -> str:
    kept = given.copy()
    for name in _OWN_FIELDS:
        kept.pop(name, None)
    return query_of(kept)


def _seen(text: str) -> Mapping[int, int]:
    """The chats of a preview with their versions, as the form brings them back."""
    try:
        pairs = json.loads(text)
        return {int(chat): int(number) for chat, number in pairs if 0 < int(chat) < 1 << 62}
    except (ValueError, TypeError, RecursionError):
        raise Refused(_("Look first at what would be replaced.")) from None


def _told(done: Redacted) -> str:
    places = ngettext("One text is replaced", "%(n)s texts are replaced", done.places) % {"n": done.places}
    if not done.files:
        return f"{places}."
    files = ngettext("an uploaded file that held them is deleted", "%(n)s uploaded files that held them are deleted",
                     done.files) % {"n": done.files}  # fmt: skip
    return f"{places}; {files}."


def _newest(chat: int) -> ChatVersion:
    row = Chat.objects.filter(pk=chat).first()
    found = None
    if row is not None:
        versions = ChatVersion.objects.select_related("chat").defer("content")
        found = versions.filter(chat=row, number=row.version_count).first()
    if found is None:
        raise Http404
    return found
