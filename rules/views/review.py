"""Review: queues, one item a page judged by single keys, agreement, and what verdicts say of rules."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from chats.models import ChatVersion, SavedSearch
from chats.queries.chats import chats_of_search, saved_searches
from eleanor_site.access import reviewer, viewer
from eleanor_site.numbers import whole_number
from eleanor_site.problems import Refused
from eleanor_site.web import Request, page
from rules.models import ReviewQueue, Verdict
from rules.queries import reviews as queries
from rules.queries.manifests import manifest_of
from rules.queries.replay_history import chosen_replay
from rules.queries.replays import manifest
from rules.queries.rules import rule_set
from rules.services import reviewing as services

LIMITS = (50, 100, 200, 500)


@viewer
@require_safe
def review_page(request: Request) -> HttpResponse:
    """Without `?queue=` the queues; with it the item at `?item=`, the next one to judge, or `?show=agreement`."""
    if "queue" not in request.GET:
        return _overview(request)
    queue = _queue(request.GET["queue"])
    if request.GET.get("show") == "agreement":
        context = {"queue": queue, "agreement": queries.agreement_of(queue)}
        return page(request, "rules/review_agreement.html", context)
    given = request.GET.get("item", "")
    if given.isdecimal() and len(given) < 9:
        return _item(request, queue, int(given))
    following = queries.next_item(queue, request.user)
    if following is None:
        return page(request, "rules/review_done.html", {"queue": queue, "agreement": queries.agreement_of(queue)})
    return _item(request, queue, following.position)


def _overview(request: Request, *, status: int = 200, **more: Any) -> HttpResponse:
    replay = chosen_replay()
    context = {
        "rows": queries.queue_rows(request.user),
        "quality": queries.quality(),
        "target": request.tenant.precision_target,
        "searches": saved_searches()[:100],
        "codes": [spec.code for spec in manifest(replay).rules] if replay else [],
        "replay": replay,
        "limits": LIMITS,
        **more,
    }
    return page(request, "rules/review.html", context, status=status)


def _item(request: Request, queue: ReviewQueue, position: int) -> HttpResponse:
    item = queries.item_at(queue, position)
    if item is None:
        raise Http404
    context = {
        "queue": queue,
        "item": item,
        "view": queries.item_view(request.tenant, item, request.user),
        "previous": position - 1 if position > 1 else None,
        "following": position + 1 if position < queue.item_count else None,
        "codes": [spec.code for spec in queries.rules_of(request.tenant, item).rules if spec.stage == item.stage],
    }
    return page(request, "rules/review_item.html", context)


@reviewer
@require_POST
def new_queue(request: Request) -> HttpResponse:
    """A queue from a saved search, or from firings of a rule in the newest replay."""
    given = request.POST
    limit = int(given["limit"]) if given.get("limit", "") in map(str, LIMITS) else LIMITS[1]
    name = given.get("name", "").strip()
    try:
        if given.get("kind") == ReviewQueue.Kind.SEARCH:
            queue = _queue_of_search(request, name, limit)
        else:
            queue = _queue_of_firings(request, name, limit)
    except Refused as refused:
        return _overview(request, status=422, problem=str(refused), typed=given)
    return redirect(f"{reverse('rules:review', args=[request.tenant.slug])}?queue={queue.pk}")


def _queue_of_search(request: Request, name: str, limit: int) -> ReviewQueue:
    given = request.POST.get("search", "")
    search = SavedSearch.objects.filter(pk=given).first() if given.isdecimal() and len(given) < 18 else None
    if search is None:
        raise Refused(_("Choose a saved search."))
    return services.queue_of_chats(
        tenant=request.tenant,
        by=request.user,
        name=name or search.name,
        chats=chats_of_search(search),
        query=search.query,
        rules=manifest_of(request.tenant, rule_set(request.tenant, drafts=False), []),
        limit=limit,
        silent=request.POST.get("silent") == "1",
    )


def _queue_of_firings(request: Request, name: str, limit: int) -> ReviewQueue:
    replay, code = chosen_replay(request.POST.get("replay", "")), request.POST.get("code", "")
    if replay is None:
        raise Refused(_("There is no finished replay. Run one first; its firings can be reviewed."))
    if code not in {spec.code for spec in manifest(replay).rules}:
        raise Refused(_("Choose a rule of the replay."))
    return services.queue_of_firings(
        tenant=request.tenant,
        by=request.user,
        name=name or _("New firings of %(code)s") % {"code": code},
        replay=replay,
        code=code,
        limit=limit,
        only_new=request.POST.get("all") != "1",
    )


@reviewer
@require_POST
def judge(request: Request) -> HttpResponse:
    """Take a verdict on a point. Comes back to `next`, or goes to the next open item of `queue`."""
    point = _point(request)
    try:
        services.judge(
            tenant=request.tenant,
            by=request.user,
            point=point,
            value=request.POST.get("value", ""),
            note=request.POST.get("note", "").strip()[:2000].replace("\x00", ""),
        )
    except Refused as refused:
        messages.error(request, str(refused))
        return _back(request)
    if "queue" not in request.POST:
        messages.success(request, _("Your verdict is saved."))
        return _back(request)
    queue = _queue(request.POST["queue"])
    at = request.POST.get("item", "")
    following = queries.next_item(queue, request.user, whole_number(at, otherwise=0, most=10**8 - 1))
    address = f"{reverse('rules:review', args=[request.tenant.slug])}?queue={queue.pk}"
    return redirect(f"{address}&item={following.position}" if following else address)


@reviewer
@require_POST
def undo(request: Request) -> HttpResponse:
    """Take back one's last verdict; in a queue, go back to its item."""
    verdict = _verdict(request)
    if verdict is None:
        messages.info(request, _("There is no verdict of yours to take back."))
        return _back(request)
    key = (verdict.chat_version_id, verdict.message, verdict.stage)
    services.undo(tenant=request.tenant, by=request.user, verdict=verdict)
    messages.success(request, _("Your last verdict is taken back."))
    if "queue" not in request.POST:
        return _back(request)
    queue = _queue(request.POST["queue"])
    item = queue.items.filter(chat_version=key[0], message=key[1], stage=key[2]).first()
    address = f"{reverse('rules:review', args=[request.tenant.slug])}?queue={queue.pk}"
    return redirect(f"{address}&item={item.position}" if item else address)


def _verdict(request: Request) -> Verdict | None:
    given = request.POST.get("verdict", "")
    if given.isdecimal() and len(given) < 18:
        return Verdict.objects.filter(pk=given, by=request.user).first()
    return queries.last_verdict(request.user)


def _point(request: Request) -> services.JudgedPoint:
    given = request.POST
    version = _number(given.get("chat_version", ""))
    found = ChatVersion.objects.select_related("chat").defer("content").filter(pk=version).first()
    if found is None:
        raise Http404
    code, number = given.get("code", "").replace("\x00", "")[:64], max(0, _number(given.get("version", "")))
    if code and not number and given.get("value") == Verdict.Value.MISSED:
        number = queries.live_version(code)
    return services.JudgedPoint(
        version=found,
        message=_number(given.get("message", "")),
        stage=given.get("stage", ""),
        turn=max(0, _number(given.get("turn", ""))),
        code=code,
        rule_version=number,
    )


def _number(text: str) -> int:
    return whole_number(text, otherwise=-1, most=10**9 - 1)


def _queue(given: str) -> ReviewQueue:
    found = ReviewQueue.objects.filter(pk=given).first() if given.isdecimal() and len(given) < 18 else None
    if found is None:
        raise Http404
    return found


def _back(request: Request) -> HttpResponseRedirect:
    """To where the form says that it stands, if that is a page of ours."""
    to = request.POST.get("next", "")
    if url_has_allowed_host_and_scheme(to, allowed_hosts=None) and to.startswith(f"/t/{request.tenant.slug}/"):
        return HttpResponseRedirect(to)
    return HttpResponseRedirect(reverse("rules:review", args=[request.tenant.slug]))
