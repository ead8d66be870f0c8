"""The beat's part in scheduled replays: start what is due, and compare what is done."""

from __future__ import annotations

from datetime import datetime

import structlog
from celery import shared_task
from django.utils import timezone
from django_scopes import scope, scopes_disabled

from rules.queries.schedules import due, unjudged
from rules.services import schedules

log = structlog.get_logger(__name__)


@shared_task(name="rules.scheduled_replays.run_due")
def run_due() -> None:
    start_due_runs(timezone.now())
    judge_done_runs()


def start_due_runs(now: datetime) -> int:
    """Start the runs whose time has come, in every tenant; how many there were."""
    with scopes_disabled():
        found = list(due(now).select_related("tenant"))
    started = 0
    for schedule in found:
        with scope(tenant=schedule.tenant):
            try:
                started += schedules.start_due(tenant=schedule.tenant, schedule=schedule.pk, now=now) is not None
            except Exception:
                # One that fails must not keep the others waiting; it is due still, and tried again.
                log.exception("scheduled_replay_failed", schedule=schedule.pk)
    return started


def judge_done_runs() -> int:
    """Compare the runs that are done with their baselines; how many there were."""
    with scopes_disabled():
        found = list(unjudged().select_related("tenant", "schedule", "replay", "baseline"))
    judged = 0
    for run in found:
        with scope(tenant=run.tenant):
            try:
                judged += schedules.judge_run(tenant=run.tenant, run=run) is not None
            except Exception:
                log.exception("scheduled_replay_not_compared", run=run.pk)
    return judged
