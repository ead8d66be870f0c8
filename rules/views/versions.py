"""The versions of a rule: a list, one of them, two side by side, and going back to one."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from eleanor_site.access import publisher, viewer
from eleanor_site.numbers import whole_number
from eleanor_site.problems import Refused
from eleanor_site.web import Request, page
from rules.differences import differences
from rules.domain.language import check
from rules.domain.rule_set import rule_set_digest
from rules.models import Rule, RuleVersion
from rules.queries import effects
from rules.queries.rules import edited_set, live_number
from rules.services import publishing
from rules.services.publishing import ReleaseConflict


@viewer
@require_safe
def version_list(request: Request, code: str) -> HttpResponse:
    """All versions, with note, people, digest, and what the rule came to when it was published."""
    rule = _rule(code)
    versions = _versions(rule)
    rows = [{"version": v, "digest": _digest(request, v, code)} for v in versions]
    live = publishing.live_entry(rule)
    context = {"rule": rule, "rows": rows, "live_version": live.version.number if live else 0, "live": live_number()}
    return page(request, "rules/versions.html", context)


@viewer
@require_safe
def version_page(request: Request, code: str, number: int) -> HttpResponse:
    """One version, and how it differs from what is live, in words and in what it does."""
    rule = _rule(code)
    version = _version(rule, number)
    live = publishing.live_entry(rule)
    is_other = live is not None and live.version.pk != version.pk
    context = {
        "rule": rule,
        "version": version,
        "digest": _digest(request, version, code),
        "entry": live,
        "live": live_number(),
        "differences": differences(version, live.version) if live and is_other else [],
        "answer": _effect(request, rule, version) if is_other else None,
    }
    return page(request, "rules/version.html", context)


@viewer
@require_safe
def compare(request: Request, code: str) -> HttpResponse:
    """`?a=&b=`: two versions in words and in what they do, each against the live release."""
    rule = _rule(code)
    numbers = [request.GET.get(name, "") for name in ("a", "b")]
    versions = _versions(rule)
    newest = [v.number for v in versions[:2]]
    chosen = [whole_number(n, otherwise=0, most=10**8 - 1) for n in numbers]
    if not all(chosen) and newest:
        chosen = [newest[-1], newest[0]]
    if not all(chosen):
        raise Http404
    old, new = (_version(rule, number) for number in chosen)
    sides = [{"version": v, "answer": _effect(request, rule, v)} for v in (old, new)]
    context = {
        "rule": rule,
        "versions": versions,
        "old": old,
        "new": new,
        "sides": sides,
        "differences": differences(old, new),
        "live": live_number(),
    }
    return page(request, "rules/compare_versions.html", context)


@publisher
@require_POST
def roll_back_rule(request: Request, code: str, number: int) -> HttpResponse:
    """This version's content again, as a new version in a new release."""
    rule = _rule(code)
    version = _version(rule, number)
    seen = request.POST.get("seen_release", "")
    try:
        publishing.roll_back_rule(
            tenant=request.tenant,
            rule=rule,
            to=version,
            by=request.user,
            seen_release=whole_number(seen, otherwise=-1, most=10**9 - 1),
            note=request.POST.get("note", "").strip() or _("Back to version %(n)s") % {"n": number},
        )
    except ReleaseConflict as conflict:
        messages.error(request, str(conflict))
        return redirect("rules:version", request.tenant.slug, code, number)
    except Refused as refused:
        messages.error(request, str(refused))
        return redirect("rules:version", request.tenant.slug, code, number)
    messages.success(request, _("%(code)s is back at version %(n)s.") % {"code": code, "n": number})
    return redirect("rules:rule", request.tenant.slug, code)


def _effect(request: Request, rule: Rule, version: RuleVersion) -> effects.EffectAnswer | None:
    if check(version.expression).errors:
        return None
    return effects.effect(request.tenant, edited_set(request.tenant, rule.code, version), rule.code)


def _digest(request: Request, version: RuleVersion, code: str) -> str:
    """Over what decides: code, stage, cap and expression."""
    mine = [spec for spec in edited_set(request.tenant, code, version) if spec.code == code]
    return rule_set_digest(mine)


def _versions(rule: Rule) -> list[RuleVersion]:
    return list(RuleVersion.objects.filter(rule=rule).select_related("by", "approved_by").order_by("-number"))


def _rule(code: str) -> Rule:
    rule = Rule.objects.filter(code=code).first()
    if rule is None:
        raise Http404
    return rule


def _version(rule: Rule, number: int) -> RuleVersion:
    version = RuleVersion.objects.select_related("by", "approved_by").filter(rule=rule, number=number).first()
    if version is None:
        raise Http404
    return version
