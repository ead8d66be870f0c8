"""One chat: its timeline with the points of the engine, the inspector of a point, and its rendered prompt."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_safe

from chats.domain import ChatRecord
from chats.models import Chat, ChatVersion
from chats.queries.previews import rendered
from chats.queries.wrappers import DEFAULT_BUILT_IN, choice_labels
from chats.retention import kept_until
from eleanor_site.access import viewer
from eleanor_site.web import Request, page
from rules.domain.manifest import Manifest
from rules.models import Replay
from rules.queries.manifests import manifest_of
from rules.queries.replay_history import finished_replays
from rules.queries.replays import manifest as manifest_of_replay
from rules.queries.reviews import verdicts_at
from rules.queries.rules import rule_set
from rules.queries.timeline import (
    Timeline,
    context_rows,
    find_decision,
    first_message_of_turn,
    name_of,
    next_nudge,
    record_of_version,
    stories,
    timeline,
)

VIEWS = ("canonical", "rendered", "split")


@viewer
@require_safe
def chat_page(request: Request, chat: int) -> HttpResponse:
    """One page of the chat. `?point=MESSAGE-STAGE` opens the inspector; `?message=` and `?turn=` choose the page.

    `?replay=` takes that replay's rules, `?rules=drafts` the drafts; `?view=` and `?m=` render.
    """
    given = request.GET
    found = _version(chat, given.get("version", ""))
    record = record_of_version(found)
    replay = _replay(given.get("replay", ""))
    manifest = _rules(request, replay, found)
    shown = timeline(record, manifest, around=_around(request, record, manifest))
    view = given.get("view", "") if given.get("view", "") in VIEWS else "canonical"
    context: dict[str, Any] = {
        "chat": found.chat,
        "version": found,
        "record": record,
        "timeline": shown,
        "replay": replay,
        "replays": finished_replays(),
        "drafts": replay is None and given.get("rules") == "drafts",
        "manifest": manifest,
        "view": view,
        "next_view": VIEWS[(VIEWS.index(view) + 1) % len(VIEWS)],
        "query": _kept_query(request),
        "kept_until": kept_until(request.tenant, found.chat),
        **_inspected(shown, manifest, found, given.get("point", "")),
    }
    if view != "canonical":
        wrapper = given.get("m", "") or DEFAULT_BUILT_IN
        context |= {"wrapper": wrapper, "wrappers": choice_labels(), "preview": rendered(record, wrapper)}
    return page(request, "rules/chat.html", context, part="chat")


def _inspected(shown: Timeline, manifest: Manifest, version: ChatVersion, name: str) -> dict[str, Any]:
    """The chosen point, and the names of the points around it. Without one the keys lead into the page."""
    decision = find_decision(shown.decisions, name)
    if decision is None:
        here = [d.point.message for d in shown.decisions]
        return {
            "next_point": f"{shown.decisions[0].point.message}-{shown.decisions[0].point.stage}" if here else "",
            "next_nudge": next_nudge(shown, manifest, shown.first - 1),
        }
    at = shown.points.index(name_of(decision.point))
    return {
        "decision": decision,
        "point": shown.points[at],
        "previous_point": shown.points[at - 1] if at else "",
        "next_point": shown.points[at + 1] if at + 1 < len(shown.points) else "",
        "next_nudge": next_nudge(shown, manifest, decision.point.message),
        "fields": context_rows(decision, shown.walked, manifest),
        "stories": stories(decision, manifest),
        "judged_code": decision.fired or decision.recorded or "",
        "judged_version": next((s.version for s in manifest.rules if s.code == (decision.fired or "")), 0),
        "codes": [s.code for s in manifest.rules if s.stage == decision.point.stage],
        "verdicts": verdicts_at(version.pk, decision.point.message, decision.point.stage),
    }


def _rules(request: Request, replay: Replay | None, version: ChatVersion) -> Manifest:
    if replay is not None:
        return manifest_of_replay(replay)
    drafts = request.GET.get("rules") == "drafts"
    return manifest_of(request.tenant, rule_set(request.tenant, drafts=drafts), [version.pk])


def _around(request: Request, record: ChatRecord, manifest: Manifest) -> int:
    """The message that the address asks for."""
    message = (request.GET.get("point", "").partition("-")[0]) or request.GET.get("message", "")
    if message.isdecimal() and len(message) < 9:
        return int(message)
    turn = request.GET.get("turn", "")
    if turn.isdecimal() and len(turn) < 9:
        return first_message_of_turn(record, manifest, int(turn))
    return 0


def _version(chat: int, number: str) -> ChatVersion:
    row = Chat.objects.filter(pk=chat).first()
    if row is None:
        raise Http404
    wanted = int(number) if number.isdecimal() and len(number) < 9 else row.version_count
    found = ChatVersion.objects.select_related("chat").defer("content").filter(chat=row, number=wanted).first()
    if found is None:
        raise Http404
    return found


def _replay(given: str) -> Replay | None:
    return Replay.objects.filter(pk=given).first() if given.isdecimal() and len(given) < 18 else None


def _kept_query(request: Request) -> str:
    """What of the address goes on from point to point."""
    query = request.GET.copy()
    for place in ("point", "message", "turn"):
        query.pop(place, None)
    text = query.urlencode()
    return f"&{text}" if text else ""
