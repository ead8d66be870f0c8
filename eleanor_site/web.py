"""What views share: the typed request, and the answer as a whole page or as one of its named parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.datastructures import MultiValueDict
from django_htmx.middleware import HtmxDetails

from eleanor_site.tenants.models import Role, Tenant, User


class Request(HttpRequest):
    """A request of somebody who has signed in; `tenant` and `role` are there behind a role mark."""

    htmx: HtmxDetails
    user: User
    tenant: Tenant
    role: Role


def page(
    request: HttpRequest,
    template: str,
    context: Mapping[str, Any] | None = None,
    *,
    part: str | None = None,
    status: int = 200,
) -> HttpResponse:
    """The whole page, or its part of that name when HTMX asks for a fragment.

    `part` names a partial of the template. Boosted navigation gets the whole page.
    """
    name = template
    if part and wants_part(request):
        name = f"{template}#{part}"
    return render(request, name, dict(context or {}), status=status)


def wants_part(request: HttpRequest) -> bool:
    """True when HTMX asks for a fragment, and not for a page by boosted navigation."""
    htmx = getattr(request, "htmx", None)
    return bool(htmx) and not htmx.boosted and not htmx.history_restore_request  # type: ignore[union-attr]


def go_to(request: HttpRequest, to: Any, *args: Any, **kwargs: Any) -> HttpResponse:
    """Redirect, in the way that HTMX follows as a page change when it was HTMX that asked."""
    answer: HttpResponse = redirect(to, *args, **kwargs)
    if not wants_part(request):
        return answer
    return HttpResponse(status=204, headers={"HX-Redirect": answer["Location"]})


def posted(request: HttpRequest) -> QueryDict | None:
    """What binds a form: the posted fields, even when there are none, and None for a page that is only shown."""
    return request.POST if request.method == "POST" else None


def posted_files(request: HttpRequest) -> MultiValueDict[str, UploadedFile[Any]] | None:
    return request.FILES if request.method == "POST" else None
