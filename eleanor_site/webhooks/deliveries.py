"""A delivery at work: claim, post, note what came of it. A receiver may get the same delivery twice, never none.

The row decides when the next try is due; the queue only carries its id (architecture.md section 5.4).
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django_scopes import scope, scopes_disabled

from eleanor_site import jobs
from eleanor_site.jobs import Status
from eleanor_site.webhooks import posting
from eleanor_site.webhooks.models import Attempt, Delivery
from eleanor_site.webhooks.signing import headers

# How long after each failed try the next one begins; after the last of them the delivery has failed.
BACK_OFF: Final = tuple(timedelta(seconds=s) for s in (10, 60, 300, 1800, 2 * 3600, 6 * 3600, 12 * 3600))
KEPT_FOR: Final = timedelta(days=30)
# A try that was sent off a moment ago isn't sent off again by the sweeper.
_RECENTLY: Final = timedelta(seconds=25)


def deliver(delivery_id: int) -> None:
    """Try once, unless the delivery is done, not due, or somebody else's."""
    with scopes_disabled():
        delivery = Delivery.objects.select_related("tenant", "webhook").filter(pk=delivery_id).first()
    if delivery is None:
        return
    with scope(tenant=delivery.tenant):
        attempt = jobs.claim(Delivery.objects.filter(due_at__lte=timezone.now()), delivery_id)
        if attempt is None:
            return
        if not delivery.webhook.active:
            _close(delivery, attempt, posting.Outcome(None, "", 0), Status.FAILED)
            return
        body = delivery.payload.encode()
        outcome = posting.post(
            delivery.webhook.url,
            body,
            {
                "Content-Type": "application/json",
                "User-Agent": "Eleanor-Console-Webhooks/1",
                **headers(delivery.webhook.secret, delivery.name, int(time.time()), body),
            },
        )
        if outcome.is_good:
            _close(delivery, attempt, outcome, Status.DONE)
        elif attempt > len(BACK_OFF):
            _close(delivery, attempt, outcome, Status.FAILED)
        else:
            _close(delivery, attempt, outcome, Status.QUEUED, timezone.now() + BACK_OFF[attempt - 1])


def _close(
    delivery: Delivery, attempt: int, outcome: posting.Outcome, status: Status, due: datetime | None = None
) -> None:
    """Write the try and the new state together; the try is written even if somebody has taken the row over."""
    with transaction.atomic():
        Attempt.objects.create(
            tenant=delivery.tenant,
            delivery=delivery,
            number=attempt,
            milliseconds=outcome.milliseconds,
            status=outcome.status,
            trouble=outcome.trouble,
        )
        mine = Delivery.objects.filter(pk=delivery.pk, status=Status.RUNNING, attempts=attempt)
        mine.update(
            status=status,
            error=str(outcome.status or outcome.trouble),
            due_at=due or delivery.due_at,
            heartbeat_at=None if due else timezone.now(),
        )


def due(now: datetime) -> QuerySet[Delivery]:
    """The deliveries whose next try may begin, and those whose owner has gone silent. Runs without a tenant."""
    waiting = Q(status=Status.QUEUED, due_at__lte=now) & (
        Q(heartbeat_at__isnull=True) | Q(heartbeat_at__lt=now - _RECENTLY)
    )
    lost = Q(status=Status.RUNNING, heartbeat_at__lt=now - jobs.STALE_AFTER)
    return Delivery.objects.filter(waiting | lost)


def deliveries_to_send() -> list[int]:
    """Those to hand to the queue now, each named by one sweeper only."""
    with scopes_disabled():
        found = list(due(timezone.now()).values_list("pk", "heartbeat_at"))
        return [pk for pk, seen in found if _take(pk, seen)]


def _take(pk: int, seen: datetime | None) -> bool:
    rows = Delivery.objects.all()
    # A running row keeps its old heartbeat, or nobody could claim it.
    running = rows.filter(pk=pk, status=Status.RUNNING).exists()
    return running or jobs.touch(rows, pk, seen=seen)


def forget_old_deliveries() -> int:
    with scopes_disabled():
        old = Delivery.objects.filter(created_at__lt=timezone.now() - KEPT_FOR)
        return old.exclude(status__in=(Status.QUEUED, Status.RUNNING)).delete()[0]
