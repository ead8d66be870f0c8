"""The open release, which collects changes, and requests for approval."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from eleanor_site.access import author
from eleanor_site.numbers import whole_number
from eleanor_site.problems import Refused
from eleanor_site.tenants.models import Role
from eleanor_site.web import Request, page
from rules.differences import differences
from rules.models import Proposal, ProposalItem, ReleaseEntry, Rule, RuleDraft
from rules.models.rules import RuleContent
from rules.queries import effects
from rules.queries.gates import gates
from rules.queries.proposed import proposal_order, proposed_figures, proposed_rules
from rules.queries.rules import live_entries, live_number
from rules.services import proposals
from rules.services.proposals import authors_of

PUBLISHER_ACTIONS = ("approve", "refuse", "publish")


@author
@require_safe
def open_release(request: Request) -> HttpResponse:
    """What the open release holds; an empty state when there is none."""
    found = Proposal.objects.filter(status=Proposal.Status.OPEN).first()
    if found is not None:
        return _page(request, found)
    waiting = Proposal.objects.filter(status__in=("requested", "approved")).select_related("by").order_by("-pk")
    return page(request, "rules/open_release.html", {"waiting": waiting})


@author
@require_safe
def proposal_page(request: Request, proposal: int) -> HttpResponse:
    return _page(request, _find(proposal))


@author
@require_POST
def decide(request: Request, proposal: int) -> HttpResponse:
    """`action`: request, withdraw, remove (with `rule`, or `order`); approve, refuse and publish take a publisher."""
    found = _find(proposal)
    action = request.POST.get("action", "")
    if action in PUBLISHER_ACTIONS and not request.role.includes(Role.PUBLISHER):
        raise PermissionDenied
    note = str(request.POST.get("note", "")).strip()
    try:
        return _done(request, found, action, note)
    except Refused as refused:
        messages.error(request, str(refused))
        return _page(request, Proposal.objects.get(pk=found.pk), note=note, status=refused.status)


def _done(request: Request, found: Proposal, action: str, note: str) -> HttpResponse:
    tenant, by, slug = request.tenant, request.user, request.tenant.slug
    match action:
        case "request":
            proposals.request_approval(tenant=tenant, by=by, proposal=found, note=note)
            messages.success(request, _("Approval is requested."))
        case "approve":
            proposals.approve(tenant=tenant, by=by, proposal=found, note=note)
            messages.success(request, _("Approved. It can be published now."))
        case "refuse":
            proposals.refuse(tenant=tenant, by=by, proposal=found, note=note)
        case "withdraw":
            proposals.withdraw(tenant=tenant, by=by, proposal=found)
        case "remove":
            rule = Rule.objects.filter(code=request.POST.get("rule", "")).first()
            proposals.remove_from(tenant=tenant, by=by, proposal=found, rule=rule)
            return redirect("rules:open_release", slug)
        case "publish":
            seen = request.POST.get("seen_release", "")
            release = proposals.publish(
                tenant=tenant,
                by=by,
                proposal=found,
                note=note or found.note,
                seen_release=whole_number(seen, otherwise=-1, most=10**9 - 1),
                figures=proposed_figures(tenant, found),
            )
            messages.success(request, _("Release %(n)s is live.") % {"n": release.number})
            return redirect("rules:release", slug, release.number)
    return redirect("rules:proposal", slug, found.pk)


@author
@require_POST
def add_drafts(request: Request) -> HttpResponse:
    """Put the chosen rules of the list into the open release."""
    codes = [code.replace("\x00", "") for code in request.POST.getlist("code")[:200]]
    rules = list(Rule.objects.filter(code__in=codes, draft__isnull=False))
    if not rules:
        messages.info(request, _("Choose at least one rule that has a draft."))
        return redirect("rules:list", request.tenant.slug)
    proposals.add_to_open(tenant=request.tenant, by=request.user, rules=rules)
    return redirect("rules:open_release", request.tenant.slug)


def _ends(entry: ReleaseEntry, item: ProposalItem) -> bool:
    """Whether the rule nudges now and would only be observed."""
    return entry.mode == ReleaseEntry.Mode.LIVE and item.mode == ReleaseEntry.Mode.OBSERVE


def _page(request: Request, found: Proposal, note: str = "", status: int = 200) -> HttpResponse:
    """Each rule of it with its text difference and gates, and what all of them together do."""
    items = list(found.items.select_related("rule"))
    entries = {e.version.rule_id: e for e in live_entries()}
    is_over = found.status in ("published", "refused", "withdrawn")
    rows: list[dict[str, Any]] = []
    for item in items:
        draft = RuleDraft.objects.select_related("by").filter(rule=item.rule).first()
        entry = entries.get(item.rule_id)
        base: RuleContent | None = entry.version if entry else None
        rows.append(
            {
                "item": item,
                "draft": draft,
                "differences": differences(base, draft) if draft else [],
                "gates": [] if is_over else gates(request.tenant, item.rule),
                "ends": entry.version.number if entry and not is_over and _ends(entry, item) else 0,
            }
        )
    specs = None if is_over else proposed_rules(request.tenant, found)
    context = {
        "proposal": found,
        "rows": rows,
        "order": proposal_order(found),
        "answer": effects.order_effect(request.tenant, specs) if specs else None,
        "live": live_number(),
        "is_over": is_over,
        "is_author": request.user.pk in authors_of(found),
        "note": note or found.note,
    }
    return page(request, "rules/proposal.html", context, status=status)


def _find(proposal: int) -> Proposal:
    found = Proposal.objects.select_related("by", "decided_by", "release").filter(pk=proposal).first()
    if found is None:
        raise Http404
    return found
