"""Webhooks in the settings: add, change, test, and the log of what was delivered."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from eleanor_site.access import admin
from eleanor_site.problems import Refused
from eleanor_site.web import Request, page, posted
from eleanor_site.webhooks import queries, services
from eleanor_site.webhooks.forms import ChangeWebhookForm, WebhookForm
from eleanor_site.webhooks.models import Delivery, Webhook


@admin
@require_http_methods(["GET", "HEAD", "POST"])
def webhook_list(request: Request) -> HttpResponse:
    """All webhooks, and a form for a new one."""
    form = WebhookForm(posted(request))
    if request.method == "POST" and form.is_valid():
        try:
            made = services.add_webhook(tenant=request.tenant, by=request.user, **form.cleaned_data)
            return redirect("webhooks:webhook", request.tenant.slug, made.pk)
        except Refused as refused:
            form.add_error("url", str(refused))
    context = {"form": form, "rows": queries.webhooks()}
    return page(request, "tenants/webhooks.html", context, status=422 if form.errors else 200)


@admin
@require_http_methods(["GET", "HEAD", "POST"])
def webhook_page(request: Request, webhook: int) -> HttpResponse:
    """One webhook: its settings, its secret, and its delivery log."""
    found = _webhook(webhook)
    stored = {"url": found.url, "events": found.events.split(), "active": found.active}
    form = ChangeWebhookForm(posted(request), initial=stored)
    if request.method == "POST" and form.is_valid():
        try:
            services.change_webhook(tenant=request.tenant, webhook=found, by=request.user, **form.cleaned_data)
            messages.success(request, _("Saved."))
            return redirect("webhooks:webhook", request.tenant.slug, found.pk)
        except Refused as refused:
            form.add_error("url", str(refused))
    after = request.GET.get("after", "")
    number = int(after) if after.isascii() and after.isdecimal() and len(after) < 18 else None
    rows = list(queries.deliveries(found, after=number)[: queries.PAGE + 1])
    context: dict[str, Any] = {
        "webhook": found,
        "form": form,
        "rows": rows[: queries.PAGE],
        "next_after": rows[queries.PAGE - 1].pk if len(rows) > queries.PAGE else None,
        "shows_secret": "secret" in request.GET,
    }
    return page(request, "tenants/webhook.html", context, part="rows", status=422 if form.errors else 200)


@admin
@require_POST
def webhook_action(request: Request, webhook: int) -> HttpResponse:
    """The buttons beside a webhook: test, a new secret, remove."""
    found = _webhook(webhook)
    action = request.POST.get("action", "")
    if action == "remove":
        services.remove_webhook(tenant=request.tenant, webhook=found, by=request.user)
        messages.success(request, _("The webhook is removed."))
        return redirect("webhooks:list", request.tenant.slug)
    if action == "secret":
        services.renew_secret(tenant=request.tenant, webhook=found, by=request.user)
        messages.success(request, _("From now on deliveries are signed with a new secret."))
    elif action == "test":
        services.send_test(tenant=request.tenant, webhook=found, by=request.user)
        messages.success(request, _("A test is on its way. The log below shows what came of it."))
    return redirect("webhooks:webhook", request.tenant.slug, found.pk)


@admin
@require_POST
def send_again(request: Request, delivery: int) -> HttpResponse:
    found = Delivery.objects.select_related("webhook").filter(pk=delivery).first()
    if found is None:
        raise Http404
    services.send_again(tenant=request.tenant, delivery=found, by=request.user)
    return redirect("webhooks:webhook", request.tenant.slug, found.webhook_id)


def _webhook(pk: int) -> Webhook:
    found = Webhook.objects.filter(pk=pk).first()
    if found is None:
        raise Http404
    return found
