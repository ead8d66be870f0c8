"""One chat: its timeline with the points of the engine, the inspector of a point, and its rendered prompt."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_safe

from chats.models import Chat, ChatVersion
from chats.queries.chats import record_of
from chats.queries.previews import rendered
from chats.queries.wrappers import DEFAULT_BUILT_IN, choice_labels
from eleanor_site.access import viewer
from eleanor_site.web import Request, page
from rules.models import Replay
from rules.queries.manifests import manifest_of
from rules.queries.replays import manifest as manifest_of_replay
from rules.queries.rules import rule_set
from rules.queries.timeline import context_rows, find_decision, stories, timeline

VIEWS = ("canonical", "rendered", "split")


@viewer
@require_safe
def chat_page(request: Request, chat: int) -> HttpResponse:
    """`?point=MESSAGE-STAGE` opens the inspector, `?replay=` takes that replay's rules, `?view=` and `?m=` render."""
    given = request.GET
    found = _version(chat, given.get("version", ""))
    record = record_of(found)
    replay = _replay(given.get("replay", ""))
    if replay is not None:
        manifest = manifest_of_replay(replay)
    else:
        manifest = manifest_of(request.tenant, rule_set(request.tenant, drafts=False), [found.pk])
    shown = timeline(record, manifest)
    view = given.get("view", "") if given.get("view", "") in VIEWS else "canonical"
    context: dict[str, Any] = {
        "chat": found.chat,
        "version": found,
        "record": record,
        "timeline": shown,
        "replay": replay,
        "manifest": manifest,
        "view": view,
        "views": VIEWS,
        "query": _kept_query(request),
    }
    decision = find_decision(shown.decisions, given.get("point", ""))
    if decision is not None:
        names = [f"{d.point.message}-{d.point.stage}" for d in shown.decisions]
        at = names.index(f"{decision.point.message}-{decision.point.stage}")
        context |= {
            "decision": decision,
            "point": names[at],
            "previous_point": names[at - 1] if at else "",
            "next_point": names[at + 1] if at + 1 < len(names) else "",
            "fields": context_rows(decision, shown.walked, manifest),
            "stories": stories(decision, manifest),
        }
    if view != "canonical":
        wrapper = given.get("m", "") or DEFAULT_BUILT_IN
        context |= {"wrapper": wrapper, "wrappers": choice_labels(), "preview": rendered(record, wrapper)}
    return page(request, "rules/chat.html", context, part="inspector" if "point" in given else None)


def _version(chat: int, number: str) -> ChatVersion:
    row = Chat.objects.filter(pk=chat).first()
    if row is None:
        raise Http404
    wanted = int(number) if number.isdigit() and len(number) < 9 else row.version_count
    found = ChatVersion.objects.select_related("chat").filter(chat=row, number=wanted).first()
    if found is None:
        raise Http404
    return found


def _replay(given: str) -> Replay | None:
    return Replay.objects.filter(pk=given).first() if given.isdigit() and len(given) < 18 else None


def _kept_query(request: Request) -> str:
    """What of the address goes on from point to point."""
    query = request.GET.copy()
    query.pop("point", None)
    text = query.urlencode()
    return f"&{text}" if text else ""
