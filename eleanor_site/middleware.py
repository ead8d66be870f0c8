"""What happens around every view."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponseBase
from django.utils import timezone, translation
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext as _

from eleanor_site import time_zones
from eleanor_site.errors import page_not_found, problem_page

Handler = Callable[[HttpRequest], HttpResponseBase]


def upload_ceiling(get_response: Handler) -> Handler:
    """Refuse a body that announces more than the limit before a byte of it is read.

    Bodies without an announced length are counted by the upload handler while they come in.
    """

    def handle(request: HttpRequest) -> HttpResponseBase:
        announced = request.META.get("CONTENT_LENGTH") or "0"
        # The form around a file takes some bytes of its own.
        if announced.isdecimal() and int(announced) > settings.UPLOAD_LIMIT + 1024 * 1024:
            megabytes = settings.UPLOAD_LIMIT // (1024 * 1024)
            return problem_page(request, 413, _("The upload is larger than %(n)s MB.") % {"n": megabytes})
        return get_response(request)

    return handle


def storable_address(get_response: Handler) -> Handler:
    """Nothing is at an address with a NUL in its path: PostgreSQL takes none in a text, so no view could look it up."""

    def handle(request: HttpRequest) -> HttpResponseBase:
        if "\x00" in request.path_info:
            return page_not_found(request, Http404())
        return get_response(request)

    return handle


def person_language(get_response: Handler) -> Handler:
    """The person's own language, else the browser's."""

    def handle(request: HttpRequest) -> HttpResponseBase:
        chosen = getattr(request.user, "language", "") or request.COOKIES.get(settings.LANGUAGE_COOKIE_NAME, "")
        if chosen not in dict(settings.LANGUAGES):
            chosen = translation.get_language_from_request(request)
        translation.activate(chosen)
        request.LANGUAGE_CODE = chosen
        response = get_response(request)
        response.headers.setdefault("Content-Language", chosen)
        patch_vary_headers(response, ("Accept-Language", "Cookie"))
        return response

    return handle


def person_zone(get_response: Handler) -> Handler:
    """Times of the page are written in the person's zone (`eleanor_site.time_zones`)."""

    def handle(request: HttpRequest) -> HttpResponseBase:
        with timezone.override(time_zones.zone_of(request.user, request.COOKIES.get(time_zones.COOKIE, ""))):
            return get_response(request)

    return handle


def private_pages(get_response: Handler) -> Handler:
    """A page and its part share a URL, so a cache must never mix them; and what is private isn't stored."""

    def handle(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        patch_vary_headers(response, ("HX-Request",))
        if not request.path.startswith(settings.STATIC_URL):
            response.headers.setdefault("Cache-Control", "no-store")
        return response

    return handle
