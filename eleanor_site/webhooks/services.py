"""Webhooks and what is told to them. Whoever has an event calls `tell` inside the transaction that makes it true."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from eleanor_site.audit.services import record
from eleanor_site.jobs import Status
from eleanor_site.problems import Refused
from eleanor_site.sending import send_on_commit
from eleanor_site.tenants.models import Tenant, User
from eleanor_site.webhooks.models import TEST_EVENT, Delivery, Event, Webhook
from eleanor_site.webhooks.posting import address_problem
from eleanor_site.webhooks.signing import new_secret
from eleanor_site.webhooks.tasks import deliver

MOST_WEBHOOKS = 20


@transaction.atomic
def add_webhook(*, tenant: Tenant, by: User, url: str, events: Sequence[str]) -> Webhook:
    """A new webhook with a secret of its own."""
    Tenant.objects.select_for_update().get(pk=tenant.pk)
    chosen = _chosen(url, events)
    if Webhook.objects.count() >= MOST_WEBHOOKS:
        raise Refused(_("A tenant has at most %(n)s webhooks. Remove one that nobody needs.") % {"n": MOST_WEBHOOKS})
    webhook = Webhook.objects.create(tenant=tenant, url=url, events=" ".join(chosen), secret=new_secret(), by=by)
    _record(tenant, by, "webhook.add", webhook, after={"url": url, "events": chosen})
    return webhook


@transaction.atomic
def change_webhook(
    *, tenant: Tenant, webhook: Webhook, by: User, url: str, events: Sequence[str], active: bool
) -> Webhook:
    webhook = Webhook.objects.select_for_update().get(pk=webhook.pk)
    chosen = _chosen(url, events)
    before = {"url": webhook.url, "events": webhook.events.split(), "active": webhook.active}
    after = {"url": url, "events": chosen, "active": active}
    if before == after:
        return webhook
    webhook.url, webhook.events, webhook.active = url, " ".join(chosen), active
    webhook.save(update_fields=["url", "events", "active"])
    _record(tenant, by, "webhook.change", webhook, before=before, after=after)
    return webhook


@transaction.atomic
def remove_webhook(*, tenant: Tenant, webhook: Webhook, by: User) -> None:
    """Remove it with its log; what was still to be told is told no more."""
    _record(tenant, by, "webhook.remove", webhook, before={"url": webhook.url, "events": webhook.events.split()})
    webhook.delete()


@transaction.atomic
def renew_secret(*, tenant: Tenant, webhook: Webhook, by: User) -> Webhook:
    """From the next try on deliveries are signed with a new secret."""
    webhook.secret = new_secret()
    webhook.save(update_fields=["secret"])
    _record(tenant, by, "webhook.secret", webhook)
    return webhook


@transaction.atomic
def send_test(*, tenant: Tenant, webhook: Webhook, by: User) -> Delivery:
    """Tell this webhook, whatever it asked for, that somebody pressed the button."""
    _record(tenant, by, "webhook.test", webhook)
    return _queue(tenant, webhook, TEST_EVENT, {"by": str(by)})


@transaction.atomic
def send_again(*, tenant: Tenant, delivery: Delivery, by: User) -> bool:
    """Begin a failed delivery anew, with all its tries. False for one that hasn't failed."""
    again = Delivery.objects.filter(pk=delivery.pk, status=Status.FAILED)
    if not again.update(status=Status.QUEUED, attempts=0, due_at=timezone.now(), heartbeat_at=None):
        return False
    _record(tenant, by, "webhook.again", delivery.webhook, after={"delivery": delivery.name})
    send_on_commit(deliver, delivery.pk)
    return True


@transaction.atomic
def tell(tenant: Tenant, event: str, data: dict[str, Any], *, subject: str | None = None) -> list[Delivery]:
    """Queue this event for every webhook of the tenant that asked for it.

    Stands or falls with the caller's transaction. With a `subject` an event is told once about it, however often this
    is called.
    """
    assert event in Event.values, event
    told = []
    for webhook in Webhook.objects.filter(active=True):
        if not webhook.wants(event):
            continue
        if subject is not None and Delivery.objects.filter(webhook=webhook, event=event, subject=subject).exists():
            continue
        told.append(_queue(tenant, webhook, event, data, subject))
    return told


def _queue(tenant: Tenant, webhook: Webhook, event: str, data: dict[str, Any], subject: str | None = None) -> Delivery:
    now = timezone.now()
    payload = {"type": event, "timestamp": now.isoformat(), "tenant": tenant.slug, "data": data}
    delivery = Delivery.objects.create(
        tenant=tenant,
        webhook=webhook,
        name=f"msg_{uuid.uuid4().hex}",
        event=event,
        subject=subject,
        payload=json.dumps(payload, ensure_ascii=False, default=str),
        due_at=now,
    )
    send_on_commit(deliver, delivery.pk)
    return delivery


def _chosen(url: str, events: Sequence[str]) -> list[str]:
    sentences = {
        "form": _("This isn't a web address that can be posted to."),
        "https": _("The address must begin with https."),
        "credentials": _("The address must not hold a password or a fragment; deliveries are signed instead."),
    }
    problem = address_problem(url)
    if problem:
        raise Refused(sentences[problem])
    chosen = [event for event in Event.values if event in events]
    if not chosen:
        raise Refused(_("Choose at least one event."))
    return chosen


def _record(tenant: Tenant, by: User, action: str, webhook: Webhook, **rest: Any) -> None:
    record(
        tenant=tenant,
        by=by,
        action=action,
        object_type="webhook",
        object_id=webhook.pk,
        object_label=webhook.url,
        **rest,
    )
