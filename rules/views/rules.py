"""The list of rules, a rule's published state, and what is done with rules from there."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from eleanor_site.access import author, publisher, viewer
from eleanor_site.problems import Refused
from eleanor_site.web import Request, page
from rules.domain.catalogue import default_rule_texts
from rules.models import ReleaseEntry, Rule, RuleDraft, RuleVersion
from rules.queries.rules import RuleRow, live_number, rule_rows
from rules.services import catalogue, drafts, publishing

MODES = {"pause": ReleaseEntry.Mode.PAUSED, "resume": ReleaseEntry.Mode.LIVE}


@viewer
@require_safe
def rule_list(request: Request) -> HttpResponse:
    wanted = request.GET
    rows = rule_rows(archived=wanted.get("state") == "archived")
    shown = [row for row in rows if _fits(row, wanted.get("q", ""), wanted.get("stage", ""), wanted.get("state", ""))]
    context = {"rows": shown, "all_count": len(rows), "live": live_number(), "language": get_language()}
    return page(request, "rules/list.html", context, part="rows")


def _fits(row: RuleRow, text: str, stage: str, state: str) -> bool:
    content = row.content
    words = f"{row.rule.code} {content.title_en} {content.title_fr} {content.expression}".lower()
    return text.lower() in words and stage in ("", content.stage) and state in ("", row.state)


@viewer
@require_safe
def rule_page(request: Request, code: str) -> HttpResponse:
    """The published state of a rule and its history; a rule that was never published shows its draft."""
    rule = find_rule(code)
    versions = list(RuleVersion.objects.filter(rule=rule).select_related("by").order_by("-number"))
    draft = RuleDraft.objects.select_related("by").filter(rule=rule).first()
    entry = publishing.live_entry(rule)
    context = {
        "rule": rule,
        "entry": entry,
        "content": entry.version if entry else versions[0] if versions else draft,
        "versions": versions,
        "draft": draft,
        "live": live_number(),
    }
    return page(request, "rules/rule.html", context)


@publisher
@require_POST
def change_mode(request: Request, code: str) -> HttpResponse:
    """Pause or resume a rule, or take it out of the release."""
    rule = find_rule(code)
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
    rule = find_rule(code)
    try:
        if "restore" in request.POST:
            drafts.restore(tenant=request.tenant, rule=rule, by=request.user)
            messages.success(request, _("%(code)s is back.") % {"code": code})
        else:
            drafts.archive(tenant=request.tenant, rule=rule, by=request.user)
            messages.success(request, _("%(code)s is archived.") % {"code": code})
    except Refused as refused:
        messages.error(request, str(refused))
    return redirect("rules:list", request.tenant.slug)


@publisher
@require_http_methods(["GET", "HEAD", "POST"])
def order(request: Request) -> HttpResponse:
    """Reorder the live rules. `order` lists rule ids; `up-ID`, `down-ID` and `to-ID` move one without script."""
    rows = [row for row in rule_rows() if row.position is not None]
    if request.method == "POST":
        ids = _order_posted(request, [row.rule.pk for row in rows])
        if "save" in request.POST:
            try:
                publishing.reorder(
                    tenant=request.tenant,
                    order=ids,
                    by=request.user,
                    seen_release=_seen(request),
                    note=request.POST.get("note", ""),
                )
                return redirect("rules:list", request.tenant.slug)
            except Refused as refused:
                messages.error(request, str(refused))
                return redirect("rules:order", request.tenant.slug)
        rank = {pk: i for i, pk in enumerate(ids)}
        rows.sort(key=lambda row: rank.get(row.rule.pk, len(rank)))
    return page(request, "rules/order.html", {"rows": rows, "live": live_number()}, part="rows")


def _order_posted(request: Request, current: list[int]) -> list[int]:
    posted = [int(v) for v in request.POST.getlist("order") if v.isdigit() and int(v) in current]
    ids = list(dict.fromkeys(posted)) or list(current)
    for name, value in request.POST.items():
        word, _dash, number = name.partition("-")
        if not number.isdigit() or int(number) not in ids:
            continue
        at = ids.index(int(number))
        to = {"up": at - 1, "down": at + 1}.get(word, at)
        if word == "to" and "move" in request.POST and request.POST["move"] == number and str(value).isdigit():
            to = int(str(value)) - 1
        ids.insert(max(0, min(to, len(ids) - 1)), ids.pop(at))
    return ids


@viewer
@require_safe
def catalogue_page(request: Request) -> HttpResponse:
    """The default rules, and which of them this tenant has."""
    have = set(Rule.objects.values_list("code", flat=True))
    french = get_language() == "fr"
    rows = [{"text": text, "installed": text.code in have, "french": french} for text in default_rule_texts()]
    return page(request, "rules/catalogue.html", {"rows": rows, "live": live_number()})


@author
@require_POST
def install(request: Request) -> HttpResponse:
    """Install the chosen catalogue rules as drafts; a publisher can publish them at once."""
    codes = request.POST.getlist("code")
    made = catalogue.install(tenant=request.tenant, by=request.user, codes=codes)
    if not made:
        messages.info(request, _("Nothing was installed: choose a rule that isn't there yet."))
        return redirect("rules:catalogue", request.tenant.slug)
    if "publish" in request.POST and request.role.includes(type(request.role).PUBLISHER):
        try:
            publishing.publish_drafts(
                tenant=request.tenant,
                rules=made,
                by=request.user,
                note=_("From the catalogue"),
                seen_release=_seen(request),
            )
        except Refused as refused:
            messages.error(request, str(refused))
    messages.success(request, _("Installed: %(codes)s") % {"codes": ", ".join(rule.code for rule in made)})
    return redirect("rules:list", request.tenant.slug)


def find_rule(code: str) -> Rule:
    rule = Rule.objects.filter(code=code).first()
    if rule is None:
        raise Http404
    return rule


def _seen(request: Request) -> int:
    posted = request.POST.get("seen_release", "")
    return int(posted) if posted.isdigit() and len(posted) < 10 else -1
