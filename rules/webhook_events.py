"""Events of the deciding side that webhooks are told of."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from celery import shared_task
from django.db import connection, transaction
from django.utils import timezone
from django_scopes import scope, scopes_disabled

from eleanor_site.tenants.models import Tenant
from eleanor_site.webhooks.models import Event, Webhook
from eleanor_site.webhooks.services import tell
from rules.models import Release, ReleaseEntry, Replay, Rule
from rules.queries.gates import Gate

EXPIRES_WITHIN: Final = timedelta(days=3)
# Replays that finished longer ago are old news for a webhook that was made since.
_FINISHED_WITHIN: Final = timedelta(hours=6)

_refused = threading.local()


def release_published(sender: Any, *, tenant: Tenant, release: Release, **rest: Any) -> None:
    """Receiver; runs inside the transaction that makes the release live."""
    data = {
        "release": release.number,
        "based_on": release.based_on,
        "note": release.note,
        "by": release.by.email if release.by else None,
    }
    tell(tenant, Event.RELEASE_PUBLISHED, data, subject=f"release:{release.pk}")


def gate_failed(sender: Any, *, tenant: Tenant, rule: Rule, gates: Sequence[Gate], **rest: Any) -> None:
    """Receiver. The refusal undoes the transaction that it is sent in, so the event waits for the request's end."""
    data = {"rule": rule.code, "gates": [{"key": gate.key, "sentence": str(gate.sentence)} for gate in gates]}
    if not connection.in_atomic_block:
        tell(tenant, Event.GATE_FAILED, data)
        return
    waiting: list[tuple[Tenant, dict[str, Any]]] = _refused.__dict__.setdefault("events", [])
    waiting.append((tenant, data))


def tell_refusals(sender: Any = None, **rest: Any) -> None:
    """Receiver of the end of a request: tell of the gates that stopped it."""
    waiting, _refused.events = getattr(_refused, "events", []), []
    for tenant, data in waiting:
        with scope(tenant=tenant), transaction.atomic():
            tell(tenant, Event.GATE_FAILED, data)


@shared_task(name="rules.webhook_events.tell_due")
def tell_due() -> None:
    """Tell of what nobody's request brings about: replays that finished, observations that are about to end."""
    with scopes_disabled():
        tenants = list(Tenant.objects.filter(pk__in=Webhook.objects.filter(active=True).values("tenant")))
    for tenant in tenants:
        with scope(tenant=tenant):
            _finished_replays(tenant, timezone.now())
            _ending_observations(tenant, timezone.now())


def _finished_replays(tenant: Tenant, now: datetime) -> None:
    ended = (Replay.Status.DONE, Replay.Status.INCOMPLETE)
    for replay in Replay.objects.filter(finished_at__gte=now - _FINISHED_WITHIN, status__in=ended):
        data = {
            "replay": replay.pk,
            "title": replay.title,
            "status": replay.status,
            "points": replay.points,
            "fires": replay.fires,
            "result_digest": replay.result_digest,
            "baseline": replay.baseline,
        }
        # An incomplete one that is resumed finishes once more.
        subject = f"replay:{replay.pk}:{replay.finished_at.isoformat() if replay.finished_at else ''}"
        tell(tenant, Event.REPLAY_FINISHED, data, subject=subject)


def _ending_observations(tenant: Tenant, now: datetime) -> None:
    rows = ReleaseEntry.objects.filter(
        release__status=Release.Status.LIVE,
        mode=ReleaseEntry.Mode.OBSERVE,
        observe_until__gt=now,
        observe_until__lte=now + EXPIRES_WITHIN,
    )
    for row in rows.select_related("version__rule"):
        until = row.observe_until.isoformat() if row.observe_until else ""
        data = {"rule": row.version.rule.code, "version": row.version.number, "observe_until": until}
        # The same observation goes on from release to release.
        tell(tenant, Event.OBSERVE_EXPIRING, data, subject=f"observe:{row.version_id}:{until}")
