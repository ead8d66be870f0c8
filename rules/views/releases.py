"""Releases: what is live, what was, publishing and rolling back."""

from __future__ import annotations

import difflib
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from eleanor_site.access import publisher, viewer
from eleanor_site.problems import Refused
from eleanor_site.web import Request, page, posted
from rules.forms import NoteForm
from rules.models import Release, RuleDraft, RuleVersion
from rules.models.rules import CONTENT_FIELDS
from rules.queries.rules import live_number
from rules.services import drafts, publishing
from rules.services.publishing import ReleaseConflict
from rules.views.rules import find_rule


@viewer
@require_safe
def release_list(request: Request) -> HttpResponse:
    rows = Release.objects.select_related("by").order_by("-number")[:200]
    return page(request, "rules/releases.html", {"rows": rows})


@viewer
@require_safe
def release_page(request: Request, number: int) -> HttpResponse:
    release = _release(number)
    entries = release.entries.select_related("version__rule").order_by("position")
    context = {"release": release, "entries": entries, "live": live_number(), "form": NoteForm()}
    return page(request, "rules/release.html", context)


@publisher
@require_POST
def roll_back(request: Request, number: int) -> HttpResponse:
    """Make an older release's rules live again, as a new release."""
    release = _release(number)
    form = NoteForm(request.POST)
    if not form.is_valid():
        return redirect("rules:release", request.tenant.slug, number)
    try:
        made = publishing.roll_back(
            tenant=request.tenant,
            to=release,
            by=request.user,
            seen_release=form.cleaned_data["seen_release"],
            note=form.cleaned_data["note"],
        )
    except Refused as refused:
        messages.error(request, str(refused))
        return redirect("rules:release", request.tenant.slug, number)
    messages.success(request, _("Release %(n)s is live.") % {"n": made.number})
    return redirect("rules:release", request.tenant.slug, made.number)


@publisher
@require_http_methods(["GET", "HEAD", "POST"])
def publish(request: Request, code: str) -> HttpResponse:
    """Review a draft against what is live, then publish it as part of a new release."""
    rule = find_rule(code)
    draft = RuleDraft.objects.filter(rule=rule).first()
    live = live_number()
    form = NoteForm(posted(request), initial={"seen_release": live})
    conflict = None
    if request.method == "POST" and form.is_valid():
        try:
            made = publishing.publish_drafts(
                tenant=request.tenant,
                rules=[rule],
                by=request.user,
                note=form.cleaned_data["note"],
                seen_release=form.cleaned_data["seen_release"],
            )
            messages.success(request, _("Release %(n)s is live.") % {"n": made.number})
            return redirect("rules:rule", request.tenant.slug, rule.code)
        except ReleaseConflict as found:
            conflict = found
            form = NoteForm(initial={"seen_release": live, "note": form.cleaned_data["note"]})
        except Refused as refused:
            form.add_error(None, str(refused))
    entry = publishing.live_entry(rule)
    base = entry.version if entry else drafts.newest_version(rule)
    context = {
        "rule": rule,
        "draft": draft,
        "entry": entry,
        "form": form,
        "live": live,
        "conflict": conflict,
        "differences": _differences(base, draft),
    }
    status = 409 if conflict else 422 if form.errors else 200
    return page(request, "rules/publish.html", context, status=status)


def _differences(base: RuleVersion | None, draft: RuleDraft | None) -> list[dict[str, Any]]:
    """Each changed field with its lines, as the diff component takes them."""
    if draft is None:
        return []
    found = []
    for name in CONTENT_FIELDS:
        old, new = str(getattr(base, name)) if base else "", str(getattr(draft, name))
        if old == new:
            continue
        lines = difflib.ndiff(old.splitlines(), new.splitlines())
        kinds = {"+": "added", "-": "gone"}
        rows = [{"kind": kinds.get(line[0], "same"), "text": line[2:]} for line in lines if line[0] != "?"]
        found.append({"label": RuleDraft._meta.get_field(name).name, "rows": rows})
    return found


def _release(number: int) -> Release:
    release = Release.objects.select_related("by").filter(number=number).first()
    if release is None:
        raise Http404
    return release
