"""The first page of a tenant, and the help page."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from eleanor_site.access import public, viewer
from eleanor_site.web import Request, page
from rules.queries.overview import overview_of


@viewer
@require_safe
def overview(request: Request) -> HttpResponse:
    request.session["tenant"] = request.tenant.slug
    return page(request, "rules/overview.html", overview_of(request.tenant))


@public
@require_safe
def help_page(request: HttpRequest) -> HttpResponse:
    return render(request, "tenants/help.html")
