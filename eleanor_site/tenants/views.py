"""Signing in and out, choosing a tenant, and a tenant's members and defaults."""

from __future__ import annotations

import json

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import authenticate, login, logout
from django.http import Http404, HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from eleanor_site import limits, time_zones
from eleanor_site.access import admin, public, signed_in, viewer
from eleanor_site.problems import Refused
from eleanor_site.tenants import queries, services
from eleanor_site.tenants.forms import GeneralForm, NewMemberForm, RoleForm, SignInForm
from eleanor_site.tenants.models import Membership, Role, Theme, User
from eleanor_site.tenants.sign_in_pages import open_held_form
from eleanor_site.web import Request, go_to, page, posted, wants_part

SIGN_IN = "tenants/sign_in.html"


@public
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    form = SignInForm(posted(request))
    held = request.POST.get("held", "")
    target = _local(request, request.POST.get("next") or request.GET.get("next") or "/")
    context = {"form": form, "held": held, "next": target}
    if request.method != "POST":
        return render(request, SIGN_IN, context)
    if not form.is_valid():
        return page(request, SIGN_IN, context, part="dialog", status=422)
    wait = _wait_seconds(request, form.cleaned_data["email"])
    if wait:
        form.add_error(None, _("Too many tries. Wait %(n)s seconds, then try again.") % {"n": wait})
        answer = page(request, SIGN_IN, context, part="dialog", status=429)
        answer["Retry-After"] = str(wait)
        return answer
    user = authenticate(request, username=form.cleaned_data["email"].lower(), password=form.cleaned_data["password"])
    if user is None:
        # The same words for an unknown address and a wrong password.
        form.add_error(None, _("This address and password don't belong together."))
        return page(request, SIGN_IN, context, part="dialog", status=422)
    _give_back_try(request, form.cleaned_data["email"])
    login(request, user)
    if wants_part(request):
        signed = {"eleanor:signed-in": {"token": get_token(request)}}
        return HttpResponse("", headers={"HX-Trigger": json.dumps(signed)})
    kept = open_held_form(held) if held else None
    if kept:
        return render(request, "tenants/send_again.html", {"path": kept[0], "fields": kept[1]})
    return redirect(target)


def _wait_seconds(request: HttpRequest, email: str) -> int:
    address = request.META.get("REMOTE_ADDR", "")
    return max(limits.take(limits.SIGN_IN_BY_ADDRESS, address), limits.take(limits.SIGN_IN_BY_ACCOUNT, email.lower()))


def _give_back_try(request: HttpRequest, email: str) -> None:
    """Only failed tries count: somebody who knows the password may sign in as often as needed."""
    limits.give_back(limits.SIGN_IN_BY_ADDRESS, request.META.get("REMOTE_ADDR", ""))
    limits.give_back(limits.SIGN_IN_BY_ACCOUNT, email.lower())


def _local(request: HttpRequest, url: str) -> str:
    """The address if it is one of ours, else the start page: nobody is sent elsewhere by a link."""
    ours = url_has_allowed_host_and_scheme(url, {request.get_host()}, require_https=request.is_secure())
    return url if ours and url.startswith("/") else "/"


@public
@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    logout(request)
    return redirect("account:sign_in")


@public
@require_POST
def language(request: HttpRequest) -> HttpResponse:
    """Set the language for this person, and for this browser."""
    chosen = request.POST.get("language", "")
    answer = go_to(request, _back(request))
    if chosen not in dict(settings.LANGUAGES):
        return answer
    if isinstance(request.user, User):
        request.user.language = chosen
        request.user.save(update_fields=["language"])
    answer.set_cookie(settings.LANGUAGE_COOKIE_NAME, chosen, max_age=31_536_000, samesite="Lax", httponly=True)
    return answer


@public
@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    chosen = request.POST.get("theme", "")
    answer = go_to(request, _back(request))
    if chosen not in Theme.values:
        return answer
    if isinstance(request.user, User):
        request.user.theme = chosen
        request.user.save(update_fields=["theme"])
    answer.set_cookie("theme", chosen, max_age=31_536_000, samesite="Lax", httponly=True)
    return answer


def _back(request: HttpRequest) -> str:
    return _local(request, request.POST.get("next") or request.META.get("HTTP_REFERER") or "/")


@signed_in
@require_safe
def start(request: Request) -> HttpResponse:
    """The only tenant, or a choice of them."""
    mine = list(queries.tenants_of(request.user))
    last = request.session.get("tenant")
    if len(mine) == 1:
        return redirect("overview", mine[0].slug)
    if last in [t.slug for t in mine] and "choose" not in request.GET:
        return redirect("overview", last)
    return render(request, "tenants/choose.html", {"choices": mine})


@signed_in
@require_http_methods(["GET", "HEAD", "POST"])
def account(request: Request) -> HttpResponse:
    """A person's own page: keys, the zone of times, sessions."""
    if request.method == "POST":
        if "end_sessions" in request.POST:
            ended = services.end_sessions(request.user, keep=request.session.session_key)
            messages.success(request, _("Other sessions ended: %(n)s.") % {"n": ended})
        else:
            zone = request.POST.get("time_zone", "")
            if zone and not time_zones.is_zone(zone):
                return _account(request, problem=_("No zone has this name."), status=422)
            request.user.single_key_shortcuts = "single_key_shortcuts" in request.POST
            request.user.time_zone = zone
            request.user.save(update_fields=["single_key_shortcuts", "time_zone"])
            messages.success(request, _("Saved."))
        return redirect("account:account")
    return _account(request)


def _account(request: Request, problem: str = "", status: int = 200) -> HttpResponse:
    context = {
        "zones": time_zones.zones_by_region(),
        "browser_zone": time_zones.zone_of(None, request.COOKIES.get(time_zones.COOKIE, "")).key,
        "problem": problem,
    }
    return render(request, "tenants/account.html", context, status=status)


@viewer
@require_safe
def settings_page(request: Request) -> HttpResponse:
    return _settings(request, GeneralForm(instance=request.tenant), NewMemberForm())


def _settings(request: Request, general: GeneralForm, new_member: NewMemberForm, status: int = 200) -> HttpResponse:
    members = [(m, RoleForm(instance=m, prefix=str(m.pk))) for m in queries.members(request.tenant)]
    context = {"general": general, "new_member": new_member, "members": members, "roles": Role.choices}
    return page(request, "tenants/settings.html", context, status=status)


@admin
@require_POST
def change_general(request: Request) -> HttpResponse:
    form = GeneralForm(request.POST, instance=request.tenant)
    if not form.is_valid():
        request.tenant.refresh_from_db()
        return _settings(request, form, NewMemberForm(), status=422)
    services.change_general(tenant=request.tenant, values=form.changed_values(), by=request.user)
    messages.success(request, _("Saved. Replays that start from now on use the new defaults."))
    return redirect("tenants:settings", request.tenant.slug)


@admin
@require_POST
def add_member(request: Request) -> HttpResponse:
    form = NewMemberForm(request.POST)
    if form.is_valid():
        try:
            services.add_member(
                tenant=request.tenant,
                email=form.cleaned_data["email"],
                role=Role(form.cleaned_data["role"]),
                by=request.user,
            )
            return redirect("tenants:settings", request.tenant.slug)
        except Refused as refused:
            form.add_error("email", str(refused))
    return _settings(request, GeneralForm(instance=request.tenant), form, status=422)


@admin
@require_POST
def change_member(request: Request, member: int) -> HttpResponse:
    """Change the role, or remove the member."""
    membership = Membership.objects.select_related("user").filter(tenant=request.tenant, pk=member).first()
    if membership is None:
        raise Http404
    try:
        if "remove" in request.POST:
            services.remove_member(tenant=request.tenant, membership=membership, by=request.user)
        else:
            form = RoleForm(request.POST, prefix=str(member))
            if form.is_valid():
                role = Role(form.cleaned_data["role"])
                services.change_role(tenant=request.tenant, membership=membership, role=role, by=request.user)
    except Refused as refused:
        messages.error(request, str(refused))
    return redirect(reverse("tenants:settings", args=[request.tenant.slug]))
