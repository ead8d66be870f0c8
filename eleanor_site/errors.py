"""Error pages. The same words for a thing that doesn't exist and one that belongs to somebody else."""

from __future__ import annotations

import uuid

import structlog
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

log = structlog.get_logger(__name__)


def problem_page(request: HttpRequest, status: int, sentence: str, *, reference: str = "") -> HttpResponse:
    """A page that says what went wrong and what to do. Fragments get the same sentence as a notice."""
    context = {"status": status, "sentence": sentence, "reference": reference, "tenant": None}
    htmx = getattr(request, "htmx", None)
    name = "errors/problem.html"
    if htmx and not htmx.boosted:
        name += "#notice"
    response = render(request, name, context, status=status)
    if htmx and not htmx.boosted:
        response["HX-Retarget"] = "#alert"
        response["HX-Reswap"] = "innerHTML"
    return response


def too_many(request: HttpRequest, wait: int) -> HttpResponse:
    """429, with the seconds until the allowance has room again."""
    answer = problem_page(request, 429, _("Too many requests of this kind. Try again in %(n)s seconds.") % {"n": wait})
    answer["Retry-After"] = str(wait)
    return answer


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return problem_page(request, 400, _("The request can't be read. Go back, reload the page and try again."))


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    return problem_page(request, 403, _("Your role doesn't allow this. Ask an admin of this tenant for a higher one."))


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return problem_page(request, 404, _("There is nothing at this address, or it isn't yours to see."))


def server_error(request: HttpRequest) -> HttpResponse:
    reference = uuid.uuid4().hex[:12]
    log.error("server_error", reference=reference, path=request.path)
    sentence = _("Something failed on our side. If it happens again, tell your admin this reference:")
    return problem_page(request, 500, sentence, reference=reference)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    return problem_page(
        request, 403, _("This page was open for too long or comes from elsewhere. Reload it and send it again.")
    )
