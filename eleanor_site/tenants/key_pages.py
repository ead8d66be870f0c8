"""API keys in the settings: who may do what from outside, and since when nobody did."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from eleanor_site.access import admin
from eleanor_site.problems import Refused
from eleanor_site.tenants import queries, services
from eleanor_site.tenants.forms import NewKeyForm
from eleanor_site.tenants.models import APIKey
from eleanor_site.web import Request, page, posted


@admin
@require_http_methods(["GET", "HEAD", "POST"])
def keys_page(request: Request) -> HttpResponse:
    """All keys, and a form for a new one; the answer to the form is the only page that ever shows its text."""
    form = NewKeyForm(posted(request))
    made = None
    if request.method == "POST" and form.is_valid():
        try:
            key, text = services.make_api_key(
                tenant=request.tenant,
                by=request.user,
                name=form.cleaned_data["name"],
                scopes=form.cleaned_data["scopes"],
                expires_at=form.expires_at(),
            )
            made = {"key": key, "text": text.text}
            form = NewKeyForm()
        except Refused as refused:
            form.add_error(None, str(refused))
    now = timezone.now()
    keys = queries.api_keys(request.tenant)
    rows = [{"key": key, "state": key.state(now), "scopes": key.scopes.split()} for key in keys]
    context = {"form": form, "made": made, "rows": rows}
    return page(request, "tenants/keys.html", context, status=422 if form.errors else 200)


@admin
@require_POST
def revoke_key(request: Request, key: int) -> HttpResponse:
    found = APIKey.objects.filter(tenant=request.tenant, pk=key).first()
    if found is None:
        raise Http404
    services.revoke_api_key(tenant=request.tenant, key=found, by=request.user)
    messages.success(request, _("%(key)s is revoked: its next request is refused.") % {"key": found})
    return redirect("tenants:keys", request.tenant.slug)
