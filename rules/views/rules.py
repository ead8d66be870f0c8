"""The list of rules, a rule's published state, and what is done with rules from there."""

from __future__ import annotations

from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from eleanor_site.access import author, publisher, viewer
from eleanor_site.numbers import whole_number
from eleanor_site.problems import Refused
from eleanor_site.web import Request, page
from rules.models import Proposal, ReleaseEntry, Rule, RuleDraft, RuleVersion
from rules.queries.rule_numbers import rule_numbers
from rules.queries.rule_tests import run_tests
from rules.queries.rules import RuleRow, edited_set, live_number, rule_rows
from rules.services import drafts, publishing

MODES = {
    "pause": ReleaseEntry.Mode.PAUSED,
    "resume": ReleaseEntry.Mode.LIVE,
    "observe": ReleaseEntry.Mode.OBSERVE,
}


@viewer
@require_safe
def rule_list(request: Request) -> HttpResponse:
    wanted = request.GET
    rows = rule_rows(archived=wanted.get("state") == "archived")
    shown = [row for row in rows if _fits(row, wanted.get("q", ""), wanted.get("stage", ""), wanted.get("state", ""))]
    numbers = rule_numbers([row.rule.code for row in shown])
    context = {
        "rows": [{"row": row, "numbers": numbers[row.rule.code]} for row in shown],
        "highest": max((max(n.days) for n in numbers.values()), default=0) or 1,
        "all_count": len(rows),
        "live": live_number(),
        "language": get_language(),
        "open_release": Proposal.objects.filter(status=Proposal.Status.OPEN).first(),
        "archived": Rule.objects.filter(code=wanted.get("archived", ""), archived_at__isnull=False).first(),
    }
    return page(request, "rules/list.html", context, part="rows")


def _fits(row: RuleRow, text: str, stage: str, state: str) -> bool:
    content = row.content
    words = f"{row.rule.code} {content.title_en} {content.title_fr} {content.expression}".lower()
    return text.lower() in words and stage in ("", content.stage) and state in ("", row.state)


@viewer
@require_safe
def rule_page(request: Request, code: str) -> HttpResponse:
    """The published state of a rule and its history; a rule that was never published shows its draft."""
    rule = _find_rule(code)
    versions = list(RuleVersion.objects.filter(rule=rule).select_related("by").order_by("-number"))
    draft = RuleDraft.objects.select_related("by").filter(rule=rule).first()
    entry = publishing.live_entry(rule)
    content = entry.version if entry else versions[0] if versions else draft
    tests = run_tests(request.tenant, rule, edited_set(request.tenant, code, content)) if content else []
    context = {
        "rule": rule,
        "entry": entry,
        "content": content,
        "versions": versions[:10],
        "results": tests,
        "numbers": rule_numbers([code])[code],
        "draft": draft,
        "live": live_number(),
    }
    return page(request, "rules/rule.html", context)


@publisher
@require_POST
def change_mode(request: Request, code: str) -> HttpResponse:
    """Pause or resume a rule, or take it out of the release."""
    rule = _find_rule(code)
    action = request.POST.get("action", "")
    seen = _seen(request)
    try:
        if action == "take_out":
            publishing.take_out(tenant=request.tenant, rule=rule, by=request.user, seen_release=seen)
        elif action in MODES:
            publishing.set_mode(
                tenant=request.tenant, rule=rule, mode=MODES[action], by=request.user, seen_release=seen
            )
    except Refused as refused:
        messages.error(request, str(refused))
    return redirect("rules:list", request.tenant.slug)


@author
@require_POST
def archive_rule(request: Request, code: str) -> HttpResponse:
    """Put away or bring back."""
    rule = _find_rule(code)
    try:
        if "restore" in request.POST:
            drafts.restore(tenant=request.tenant, rule=rule, by=request.user)
            messages.success(request, _("%(code)s is back.") % {"code": code})
        else:
            drafts.archive(tenant=request.tenant, rule=rule, by=request.user)
            return redirect(f"{reverse('rules:list', args=[request.tenant.slug])}?{urlencode({'archived': code})}")
    except Refused as refused:
        messages.error(request, str(refused))
    return redirect("rules:list", request.tenant.slug)


def _find_rule(code: str) -> Rule:
    rule = Rule.objects.filter(code=code).first()
    if rule is None:
        raise Http404
    return rule


def _seen(request: Request) -> int:
    posted = request.POST.get("seen_release", "")
    return whole_number(posted, otherwise=-1, most=10**9 - 1)
