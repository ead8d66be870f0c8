"""The list of rules, a rule's published state, and what is done with rules from there."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from eleanor_site.access import author, publisher, viewer
from eleanor_site.numbers import whole_number
from eleanor_site.problems import Refused
from eleanor_site.web import Request, page, wants_part
from rules.models import Proposal, ReleaseEntry, Rule, RuleDraft, RuleVersion
from rules.queries.rule_list import SORTS, RuleFilter, filter_of, listed_rules
from rules.queries.rule_numbers import rule_numbers
from rules.queries.rule_tests import run_tests
from rules.queries.rules import edited_set, live_number
from rules.services import drafts, publishing

MODES = {
    "pause": ReleaseEntry.Mode.PAUSED,
    "resume": ReleaseEntry.Mode.LIVE,
    "observe": ReleaseEntry.Mode.OBSERVE,
}
FILTERS = tuple(field.name for field in fields(RuleFilter))


@viewer
@require_safe
def rule_list(request: Request) -> HttpResponse:
    """`?q=&stage=&state=&lang=&fired=&sort=`; `changed=CODE` tells what was just done to a rule, with a way back."""
    given = request.GET
    wanted = filter_of(given)
    own = f"{request.path}?{wanted.query}".removesuffix("?")
    # A form sends its empty fields too; an address names only what differs from the defaults.
    if not wants_part(request) and any(given.get(name) == "" for name in FILTERS):
        return redirect(own)
    rows = listed_rules(wanted)
    live = live_number()
    context = {
        "rows": rows,
        "wanted": wanted,
        "any_rules": bool(rows) or Rule.objects.exists(),
        "highest": max((max(listed.numbers.days) for listed in rows), default=0) or 1,
        "sort_urls": {key: f"?{replace(wanted, sort=key).query}" for key in SORTS}
        | {"": f"{request.path}?{replace(wanted, sort='').query}".removesuffix("?")},
        "live": live,
        "language": get_language(),
        "any_drafts": RuleDraft.objects.exists(),
        "open_release": Proposal.objects.filter(status=Proposal.Status.OPEN).first(),
        "changed": _changed(given.get("changed", ""), given.get("release", "") == str(live)),
    }
    answer = page(request, "rules/list.html", context, part="rows")
    answer["HX-Replace-Url"] = own
    return answer


def _changed(code: str, is_live: bool) -> dict[str, Any] | None:
    """What the rule that was just changed is now. Undoing is offered while the release that did it is live."""
    rule = Rule.objects.filter(code=code.replace("\x00", "")).first() if code else None
    if rule is None:
        return None
    if rule.archived_at is not None:
        return {"rule": rule, "state": "archived"}
    if not is_live:
        return None
    entry = publishing.live_entry(rule)
    return {"rule": rule, "state": entry.mode if entry else "out", "until": entry.observe_until if entry else None}


@viewer
@require_safe
def rule_page(request: Request, code: str) -> HttpResponse:
    """The published state of a rule and its history; a rule that was never published shows its draft.

    `release=N` tells what that release, which was just made, is for this rule, with a way back.
    """
    rule = _find_rule(code)
    versions = list(RuleVersion.objects.filter(rule=rule).select_related("by").order_by("-number"))
    draft = RuleDraft.objects.select_related("by").filter(rule=rule).first()
    entry = publishing.live_entry(rule)
    content = entry.version if entry else versions[0] if versions else draft
    tests = run_tests(request.tenant, rule, edited_set(request.tenant, code, content)) if content else []
    live = live_number()
    context = {
        "rule": rule,
        "entry": entry,
        "content": content,
        "versions": versions[:10],
        "results": tests,
        "numbers": rule_numbers([code])[code],
        "draft": draft,
        "live": live,
        "language": get_language(),
        "changed": _changed(code if "release" in request.GET else "", request.GET.get("release", "") == str(live)),
    }
    return page(request, "rules/rule.html", context)


@publisher
@require_POST
def change_mode(request: Request, code: str) -> HttpResponse:
    """Pause, resume or observe a rule, take it out of the release, or undo that."""
    rule = _find_rule(code)
    tenant, by, seen = request.tenant, request.user, _seen(request)
    try:
        match request.POST.get("action", ""):
            case "undo":
                publishing.undo(tenant=tenant, by=by, seen_release=seen)
                messages.success(request, _("Undone: %(code)s is as it was.") % {"code": code})
            case "take_out":
                made = publishing.take_out(tenant=tenant, rule=rule, by=by, seen_release=seen)
                return _back(request, changed=code, release=str(made.number))
            case action if action in MODES:
                made = publishing.set_mode(tenant=tenant, rule=rule, mode=MODES[action], by=by, seen_release=seen)
                return _back(request, changed=code, release=str(made.number))
    except Refused as refused:
        messages.error(request, str(refused))
    return _back(request)


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
            return _back(request, changed=code)
    except Refused as refused:
        messages.error(request, str(refused))
    return _back(request)


def _back(request: Request, **more: str) -> HttpResponse:
    """To the list, filtered as it was."""
    query = filter_of(QueryDict(request.POST.get("list", "")[:1000])).query
    asked = "&".join(part for part in (query, urlencode(more)) if part)
    return redirect(f"{reverse('rules:list', args=[request.tenant.slug])}?{asked}".removesuffix("?"))


def _find_rule(code: str) -> Rule:
    rule = Rule.objects.filter(code=code).first()
    if rule is None:
        raise Http404
    return rule


def _seen(request: Request) -> int:
    posted = request.POST.get("seen_release", "")
    return whole_number(posted, otherwise=-1, most=10**9 - 1)
