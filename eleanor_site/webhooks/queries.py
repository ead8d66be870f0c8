"""Reading webhooks and their delivery log."""

from __future__ import annotations

from django.db.models import Prefetch, QuerySet

from eleanor_site.webhooks.models import Attempt, Delivery, Webhook

PAGE = 50


def webhooks() -> QuerySet[Webhook]:
    return Webhook.objects.select_related("by").order_by("id")


def deliveries(webhook: Webhook, *, after: int | None = None) -> QuerySet[Delivery]:
    """The newest first, with their tries; `after` is the id that the page before ended with."""
    tries = Prefetch("tries", queryset=Attempt.objects.order_by("pk"))
    found = Delivery.objects.filter(webhook=webhook).prefetch_related(tries).order_by("-id")
    return found.filter(pk__lt=after) if after else found
