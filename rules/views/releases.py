"""Releases: what is live, what was, publishing and rolling back."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from eleanor_site.access import publisher, viewer
from eleanor_site.problems import Refused
from eleanor_site.web import Request, page
from rules.forms.rules import NoteForm
from rules.models import Proposal, Release
from rules.queries.rules import live_number
from rules.services import publishing


@viewer
@require_safe
def release_list(request: Request) -> HttpResponse:
    rows = Release.objects.select_related("by", "approved_by").order_by("-number")[:200]
    waiting = Proposal.objects.filter(status__in=("open", "requested", "approved")).select_related("by")
    return page(request, "rules/releases.html", {"rows": rows, "waiting": waiting.order_by("-pk")})


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


def _release(number: int) -> Release:
    release = Release.objects.select_related("by").filter(number=number).first()
    if release is None:
        raise Http404
    return release
