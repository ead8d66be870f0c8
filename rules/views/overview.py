"""The first page of a tenant, and the help page."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from eleanor_site.access import public, viewer
from eleanor_site.web import Request, page
from rules.queries.overview import overview_of


@viewer
@require_safe
def overview(request: Request) -> HttpResponse:
    request.session["tenant"] = request.tenant.slug
    found = overview_of(request.tenant, request.user, request.role)
    slug = request.tenant.slug
    steps = [
        {
            "label": _("Import chats"),
            "text": _("Conversations of your agents, from a file of any known format."),
            "url": reverse("chats:import", args=[slug]),
            "done": found["chat_count"] > 0,
        },
        {
            "label": _("Add a rule of the catalogue"),
            "text": _("See what each default rule would do on your chats before you take it."),
            "url": reverse("rules:catalogue", args=[slug]),
            "done": found["rule_count"] > 0,
        },
        {
            "label": _("Run a replay"),
            "text": _("Which nudges would fire in the stored chats, and which were recorded there?"),
            "url": reverse("rules:new_replay", args=[slug]),
            "done": found["replay_count"] > 0,
        },
    ]
    return page(request, "rules/overview.html", {**found, "steps": steps, "broker": settings.BROKER.name})


@public
@require_safe
def help_page(request: HttpRequest) -> HttpResponse:
    return render(request, "tenants/help.html")
