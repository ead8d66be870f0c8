"""Who may call a view. Every view carries exactly one of these marks; a system check and a test see to it.

A view marked with a role gets `request.tenant` and `request.role`, and runs inside that tenant's scope, so that no
query can leave the tenant. Somebody who isn't a member sees the same 404 as for a tenant that doesn't exist.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import structlog
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, resolve_url
from django.utils.http import urlencode
from django_scopes import scope

from eleanor_site.tenants.models import Membership, Role

View = Callable[..., HttpResponseBase]

PUBLIC = "public"
SIGNED_IN = "signed_in"


def public(view: View) -> View:
    """Anybody, signed in or not."""
    view.access = PUBLIC  # type: ignore[attr-defined]
    return view


def signed_in(view: View) -> View:
    """Anybody who has signed in; no tenant is in scope."""

    @wraps(view)
    def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return ask_to_sign_in(request)
        return view(request, *args, **kwargs)

    checked.access = SIGNED_IN  # type: ignore[attr-defined]
    return checked


def _member(role: Role) -> Callable[[View], View]:
    def mark(view: View) -> View:
        @wraps(view)
        def checked(request: HttpRequest, *args: Any, tenant: str, **kwargs: Any) -> HttpResponseBase:
            if not request.user.is_authenticated:
                return ask_to_sign_in(request)
            membership = (
                Membership.objects.select_related("tenant").filter(tenant__slug=tenant, user=request.user).first()
            )
            if membership is None:
                raise Http404
            request.tenant = membership.tenant  # type: ignore[attr-defined]
            request.role = Role(membership.role)  # type: ignore[attr-defined]
            structlog.contextvars.bind_contextvars(tenant=membership.tenant.slug)
            if not Role(membership.role).includes(role):
                raise PermissionDenied
            with scope(tenant=membership.tenant):
                response = view(request, *args, **kwargs)
                if hasattr(response, "render"):
                    response = response.render()
            return response

        checked.access = role.value  # type: ignore[attr-defined]
        return checked

    return mark


viewer = _member(Role.VIEWER)
reviewer = _member(Role.REVIEWER)
author = _member(Role.AUTHOR)
publisher = _member(Role.PUBLISHER)
admin = _member(Role.ADMIN)


def ask_to_sign_in(request: HttpRequest) -> HttpResponse:
    """Ask for a sign-in without losing what was typed.

    A page asked for by GET comes back after the sign-in. A posted form is kept in the sign-in page and offered again
    afterwards. A fragment's request gets the sign-in dialog in place: the page and its fields stay as they are.
    """
    from eleanor_site.tenants.sign_in_pages import hold_posted_form, sign_in_dialog

    if getattr(request, "htmx", False) and not request.htmx.boosted:  # type: ignore[attr-defined]
        return sign_in_dialog(request)
    if request.method == "POST":
        return hold_posted_form(request)
    query = urlencode({REDIRECT_FIELD_NAME: request.get_full_path()})
    return redirect(f"{resolve_url('account:sign_in')}?{query}")
