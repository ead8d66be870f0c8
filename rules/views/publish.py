"""The publish page: what changes in words and in behaviour, the gates, and where the draft goes from here."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from eleanor_site.access import author
from eleanor_site.problems import Refused
from eleanor_site.tenants.models import Role
from eleanor_site.web import Request, page, posted
from rules.differences import FIELD_LABELS, differences
from rules.forms.rules import CONFLICT_PREFIX, PublishForm
from rules.models import Proposal, Rule, RuleDraft, RuleVersion
from rules.models.rules import CONTENT_FIELDS
from rules.queries.gates import failed, gates
from rules.queries.proposed import effect_of_content, figures_of_draft
from rules.queries.rules import live_number
from rules.services import proposals, publishing
from rules.services.drafts import content_of, newest_version
from rules.services.publishing import ReleaseConflict, VersionConflict


@author
@require_http_methods(["GET", "HEAD", "POST"])
def publish(request: Request, code: str) -> HttpResponse:
    """Publish or observe now, add to the open release, or ask a second person: `action` says which."""
    rule = Rule.objects.filter(code=code).first()
    if rule is None:
        raise Http404
    form = PublishForm(
        posted(request), initial={"seen_release": live_number(), "mode": request.GET.get("mode", "live")}
    )
    if request.method != "POST":
        return _page(request, rule, form)
    if not form.is_valid():
        return _page(request, rule, form, status=422)
    try:
        return _done(request, rule, form.cleaned_data)
    except VersionConflict as conflict:
        return _conflict(request, rule, conflict)
    except ReleaseConflict:
        # What was written stays; the differences are against the release that is live now.
        kept = {**form.cleaned_data, "seen_release": live_number()}
        return _page(request, rule, PublishForm(initial=kept), status=409)
    except Refused as refused:
        form.add_error(None, str(refused))
        return _page(request, rule, form, status=422)


def _done(request: Request, rule: Rule, given: dict[str, Any]) -> HttpResponse:
    tenant, by, slug = request.tenant, request.user, request.tenant.slug
    was_live = _nudges_now(rule) is not None
    match request.POST.get("action", "now"):
        case "add":
            proposals.add_to_open(tenant=tenant, by=by, rules=[rule], mode=given["mode"])
            messages.success(request, _("%(code)s is part of the open release.") % {"code": rule.code})
            return redirect("rules:open_release", slug)
        case "request":
            asked = proposals.request_for(tenant=tenant, by=by, rule=rule, mode=given["mode"], note=given["note"])
            messages.success(request, _("Approval is requested."))
            return redirect("rules:proposal", slug, asked.pk)
        case _:
            if not request.role.includes(Role.PUBLISHER):
                raise PermissionDenied
            made = publishing.publish_drafts(
                tenant=tenant,
                rules=[rule],
                by=by,
                note=given["note"],
                seen_release=given["seen_release"],
                mode=given["mode"],
                figures=figures_of_draft(tenant, rule),
            )
            if was_live and given["mode"] == "observe":
                return redirect(f"{reverse('rules:rule', args=[slug, rule.code])}?release={made.number}")
            messages.success(request, _("Release %(n)s is live.") % {"n": made.number})
            return redirect("rules:rule", slug, rule.code)


def _nudges_now(rule: Rule) -> RuleVersion | None:
    """The version that nudges now, which observing another one would end: a rule has one place in a release."""
    entry = publishing.live_entry(rule)
    return entry.version if entry and entry.mode == publishing.Mode.LIVE else None


def _page(request: Request, rule: Rule, form: PublishForm, status: int = 200) -> HttpResponse:
    draft = RuleDraft.objects.select_related("by").filter(rule=rule).first()
    entry = publishing.live_entry(rule)
    base = entry.version if entry else newest_version(rule)
    found = gates(request.tenant, rule) if draft else []
    waiting = Proposal.objects.filter(items__rule=rule, status__in=("open", "requested", "approved")).order_by("-pk")
    answer = effect_of_content(request.tenant, rule, draft)
    nudging = _nudges_now(rule)
    if nudging is not None:
        form.name_what_ends(nudging.number)
    context = {
        "rule": rule,
        "draft": draft,
        "entry": entry,
        "nudging": nudging,
        "form": form,
        "live": live_number(),
        "conflict": status == 409,
        "differences": differences(base, draft) if draft else [],
        "gates": found,
        "closed": bool(failed(found)),
        "answer": answer,
        "effect": answer.effect if answer else None,
        "waiting": waiting.first(),
        "moved": bool(draft and entry and entry.version.number != draft.based_on),
    }
    return page(request, "rules/publish.html", context, status=status)


def _conflict(request: Request, rule: Rule, conflict: VersionConflict) -> HttpResponse:
    """Base, theirs and mine, when what is live isn't what the draft was made from. Saving goes on from theirs."""
    draft = conflict.draft
    began = RuleVersion.objects.filter(rule=rule, number=draft.based_on).first()
    base = content_of(began) if began else dict.fromkeys(CONTENT_FIELDS, "")
    theirs, mine = content_of(conflict.theirs), content_of(draft)
    rows = [
        {
            "name": name,
            "prefix": CONFLICT_PREFIX,
            "label": FIELD_LABELS[name],
            "base": base[name],
            "theirs": theirs[name],
            "mine": mine[name],
            "chosen": "mine" if mine[name] != base[name] else "theirs",
            "both": theirs[name] != base[name] and mine[name] != base[name],
        }
        for name in CONTENT_FIELDS
        if theirs[name] != mine[name]
    ]
    sides = [
        {"label": label, "effect": effect_of_content(request.tenant, rule, content)}
        for label, content in ((_("Theirs"), conflict.theirs), (_("Mine"), draft))
    ]
    context = {
        "rule": rule,
        "rows": rows,
        "theirs": conflict.theirs,
        "mine": mine,
        "revision": draft.revision,
        "based_on": conflict.theirs.number,
        "sides": sides,
    }
    return page(request, "rules/conflict.html", context, status=409)
