"""Replays: start one, watch it, read its report."""

from __future__ import annotations

import json

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from chats.models import Chat, ImportJob
from eleanor_site import limits
from eleanor_site.access import author, viewer
from eleanor_site.errors import too_many
from eleanor_site.health import broker_answers
from eleanor_site.problems import Refused
from eleanor_site.web import Request, page, wants_part
from rules.domain.results import STATUSES
from rules.models import Replay
from rules.queries import replays as queries
from rules.queries.rules import live_number, rule_set
from rules.services import replays as services

RUNNING = (Replay.Status.QUEUED, Replay.Status.RUNNING)


@viewer
@require_safe
def replay_list(request: Request) -> HttpResponse:
    after = request.GET.get("after", "")
    found = queries.replays()
    if after.isdigit():
        found = found.filter(pk__lt=int(after))
    rows = list(found[: queries.PAGE + 1])
    next_after = rows[queries.PAGE - 1].pk if len(rows) > queries.PAGE else None
    context = {"rows": rows[: queries.PAGE], "next_after": next_after}
    return page(request, "rules/replays.html", context, part="rows")


@author
@require_http_methods(["GET", "HEAD", "POST"])
def new_replay(request: Request) -> HttpResponse:
    """Choose chats and rules, and start."""
    jobs = ImportJob.objects.filter(status="done").order_by("-id")[:50]
    chosen = (request.POST if request.method == "POST" else request.GET).get("import", "")
    job = ImportJob.objects.filter(pk=chosen).first() if chosen.isdigit() and len(chosen) < 18 else None
    drafts = request.POST.get("rules") == "drafts"
    problem = ""
    if request.method == "POST":
        wait = limits.take(limits.REPLAYS, request.tenant.slug)
        if wait:
            return too_many(request, wait)
        try:
            replay = services.start_replay(
                tenant=request.tenant,
                by=request.user,
                scope=services.Scope("import", job.pk) if job else services.Scope(),
                rules=rule_set(request.tenant, drafts=drafts),
                title=request.POST.get("title", "").strip(),
            )
            return redirect("rules:replay", request.tenant.slug, replay.pk)
        except Refused as refused:
            problem = str(refused)
    context = {
        "jobs": jobs,
        "job": job,
        "problem": problem,
        "chat_count": Chat.objects.count(),
        "live": live_number(),
        "live_rules": rule_set(request.tenant, drafts=False),
        "draft_rules": rule_set(request.tenant, drafts=True),
    }
    return page(request, "rules/new_replay.html", context, status=422 if problem else 200)


@viewer
@require_safe
def replay_page(request: Request, replay: int) -> HttpResponse:
    """Progress and the report. HTMX polls the same address, and asks it for more findings."""
    found = _replay(replay)
    running = found.status in RUNNING
    rows, other_codes = queries.rule_rows(found)
    code, status = request.GET.get("rule", ""), request.GET.get("status", "")
    items, next_after = queries.finding_page(
        found, code=code, status=status if status in STATUSES else "", after=request.GET.get("after", "")
    )
    context = {
        "replay": found,
        "running": running,
        "progress": queries.progress(found),
        "rows": rows,
        "other_codes": other_codes,
        "items": items,
        "next_after": next_after,
        "code": code,
        "status": status,
        "statuses": STATUSES,
        "scope": json.loads(found.scope),
        "broker_missing": found.status == Replay.Status.QUEUED and not broker_answers(),
    }
    part = "items" if "after" in request.GET else "progress"
    answer = page(request, "rules/replay.html", context, part=part)
    if wants_part(request) and part == "progress" and not running:
        answer.status_code = 286
    return answer


@author
@require_POST
def stop_replay(request: Request, replay: int) -> HttpResponse:
    services.stop_replay(tenant=request.tenant, replay=_replay(replay), by=request.user)
    messages.info(request, _("Stopped. What is done stays; you can resume the rest."))
    return redirect("rules:replay", request.tenant.slug, replay)


@author
@require_POST
def resume_replay(request: Request, replay: int) -> HttpResponse:
    services.resume_replay(tenant=request.tenant, replay=_replay(replay), by=request.user)
    return redirect("rules:replay", request.tenant.slug, replay)


def _replay(pk: int) -> Replay:
    replay = Replay.objects.select_related("by").filter(pk=pk).first()
    if replay is None:
        raise Http404
    return replay
