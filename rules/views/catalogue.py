"""The default rules, and what each of them would do to this tenant's own chats before it is installed."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from eleanor_site.access import author, viewer
from eleanor_site.numbers import whole_number
from eleanor_site.problems import Refused
from eleanor_site.tenants.models import Role
from eleanor_site.web import Request, page
from rules.domain.catalogue import RuleText, default_rule_texts
from rules.models import Rule, RuleDraft
from rules.queries import effects
from rules.queries.rules import edited_set, live_number
from rules.services import catalogue, publishing
from rules.services.effects import prepare


@viewer
@require_safe
def catalogue_page(request: Request) -> HttpResponse:
    """`part=effect` with HTMX, or `effect=1`, adds what each rule comes to on the tenant's chats."""
    have = set(Rule.objects.values_list("code", flat=True))
    wants = bool(request.htmx and request.GET.get("part") == "effect") or "effect" in request.GET
    answers = {text.code: _effect(request, text) for text in default_rule_texts()} if wants else {}
    rows = [
        {"text": text, "installed": text.code in have, "answer": answers.get(text.code)}
        for text in default_rule_texts()
    ]
    found = [answer for answer in answers.values() if answer]
    unfinished = any(a.effect is None or not a.effect.exact for a in found) and all(a.state != "empty" for a in found)
    if any(answer.state == "preparing" for answer in found):
        prepare(request.tenant)
    context: dict[str, Any] = {
        "rows": rows,
        "live": live_number(),
        "french": get_language() == "fr",
        "with_effect": wants,
        "unfinished": unfinished,
    }
    return page(request, "rules/catalogue.html", context, part="effects")


def _effect(request: Request, text: RuleText) -> effects.EffectAnswer:
    """The rule by itself added to what is live, or in its place there."""
    content = RuleDraft(stage=text.stage, max_nudges=text.max_nudges, expression=text.expression)
    return effects.effect(request.tenant, edited_set(request.tenant, text.code, content), text.code, seconds=0.02)


@author
@require_POST
def install(request: Request) -> HttpResponse:
    """Install the chosen catalogue rules as drafts; a publisher can publish them at once."""
    codes = request.POST.getlist("code")
    made = catalogue.install(tenant=request.tenant, by=request.user, codes=codes)
    if not made:
        messages.info(request, _("Nothing was installed: choose a rule that isn't there yet."))
        return redirect("rules:catalogue", request.tenant.slug)
    if "publish" in request.POST and request.role.includes(Role.PUBLISHER):
        seen = request.POST.get("seen_release", "")
        try:
            publishing.publish_drafts(
                tenant=request.tenant,
                rules=made,
                by=request.user,
                note=_("From the catalogue"),
                seen_release=whole_number(seen, otherwise=-1, most=10**9 - 1),
            )
        except Refused as refused:
            messages.error(request, str(refused))
    messages.success(request, _("Installed: %(codes)s") % {"codes": ", ".join(rule.code for rule in made)})
    return redirect("rules:list", request.tenant.slug)
