"""Scheduled replays: keeping the schedules, starting what is due once, and telling of what differs (goal E5)."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Final

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from eleanor_site.audit.services import record
from eleanor_site.problems import Refused
from eleanor_site.tenants.models import Tenant, User
from eleanor_site.webhooks.models import Event
from eleanor_site.webhooks.services import tell
from rules.domain.due_times import next_due
from rules.domain.rule_set import RuleSpec
from rules.models import Replay, ReplaySchedule, ScheduledRun
from rules.queries import schedules as queries
from rules.queries.replays import manifest
from rules.queries.rules import rule_set
from rules.queries.segments import Scope
from rules.services.replays import start_replay

Rules = ReplaySchedule.Rules
Outcome = ScheduledRun.Outcome
MOST_SCHEDULES: Final = 20


@transaction.atomic
def add_schedule(
    *, tenant: Tenant, by: User, replay: Replay, name: str, rules: Rules, hour: int, weekday: int | None = None
) -> ReplaySchedule:
    """Run the inputs of a replay again and again; the replay is the baseline.

    Refused for a replay that isn't done, for the chats of a manifest, and beyond so many schedules of a tenant.
    """
    scope = queries.scope_of(replay)
    if replay.status != Replay.Status.DONE:
        raise Refused(_("Only a replay that is done can be a baseline."))
    if scope is None:
        raise Refused(_("The chats of a manifest can't be replayed on a schedule. Freeze them as a corpus first."))
    if ReplaySchedule.objects.count() >= MOST_SCHEDULES:
        raise Refused(_("There can be %(n)s schedules. Remove one first.") % {"n": MOST_SCHEDULES})
    schedule = ReplaySchedule.objects.create(
        tenant=tenant,
        name=name[:200],
        scope=str(scope),
        rules=rules,
        weekday=weekday,
        hour=hour,
        baseline=replay,
        due_at=next_due(timezone.now(), hour=hour, weekday=weekday),
        by=by,
    )
    _record(tenant, by, "schedule.add", schedule, after=_summary(schedule))
    return schedule


@transaction.atomic
def switch_schedule(*, tenant: Tenant, schedule: ReplaySchedule, by: User, on: bool) -> ReplaySchedule:
    """Pause or resume. Times that passed while it was paused are not made up for."""
    schedule = ReplaySchedule.objects.select_for_update().get(pk=schedule.pk)
    if schedule.active == on:
        return schedule
    schedule.active = on
    if on:
        schedule.due_at = next_due(timezone.now(), hour=schedule.hour, weekday=schedule.weekday)
    schedule.save(update_fields=["active", "due_at"])
    _record(tenant, by, "schedule.resume" if on else "schedule.pause", schedule, after=_summary(schedule))
    return schedule


@transaction.atomic
def remove_schedule(*, tenant: Tenant, schedule: ReplaySchedule, by: User) -> None:
    """The replays that it started stay."""
    _record(tenant, by, "schedule.remove", schedule, before=_summary(schedule))
    schedule.delete()


@transaction.atomic
def take_as_baseline(*, tenant: Tenant, run: ScheduledRun, by: User) -> ReplaySchedule:
    """What the run found is what is expected from now on. Refused when its replay isn't done."""
    schedule = ReplaySchedule.objects.select_for_update().get(pk=run.schedule_id)
    if run.replay is None or run.replay.status != Replay.Status.DONE:
        raise Refused(_("Only a replay that is done can be a baseline."))
    before = _summary(schedule)
    schedule.baseline = run.replay
    schedule.save(update_fields=["baseline"])
    _record(tenant, by, "schedule.baseline", schedule, before=before, after=_summary(schedule))
    return schedule


# --- what nobody's request brings about


@transaction.atomic
def start_due(*, tenant: Tenant, schedule: int, now: datetime) -> ScheduledRun | None:
    """Start the run of the time that has come, once: the schedule's row decides, however many ask.

    Times that were missed are made up for by one run. While a run is at work the next one waits. A run that can't be
    started is kept as such.
    """
    found = queries.due(now).select_for_update().filter(pk=schedule).first()
    if found is None or queries.is_running(found):
        return None
    following = next_due(now, hour=found.hour, weekday=found.weekday)
    if not ReplaySchedule.objects.filter(pk=found.pk, due_at=found.due_at).update(due_at=following):
        return None
    run = ScheduledRun(tenant=tenant, schedule=found, due_at=found.due_at, baseline=found.baseline)
    try:
        run.replay = _started(tenant, found)
    except Refused:
        run.outcome = Outcome.REFUSED
    run.save()
    return run


@transaction.atomic
def _started(tenant: Tenant, schedule: ReplaySchedule) -> Replay:
    scope = Scope.parse(schedule.scope)
    if not scope.exists():
        raise Refused(_("The chats of this scope are gone."))
    return start_replay(
        tenant=tenant,
        by=None,
        scope=scope,
        rules=_rules(tenant, schedule),
        defaults=manifest(schedule.baseline).defaults,
        title=schedule.name,
    )


def _rules(tenant: Tenant, schedule: ReplaySchedule) -> list[RuleSpec]:
    if schedule.rules == Rules.BASELINE:
        return list(manifest(schedule.baseline).rules)
    return rule_set(tenant, drafts=schedule.rules == Rules.DRAFTS)


def judge_run(*, tenant: Tenant, run: ScheduledRun) -> Outcome | None:
    """Compare a run that is done with its baseline, once, and tell webhooks where it differs."""
    if run.replay is None:
        return None
    found = queries.judge(run.baseline, run.replay)
    with transaction.atomic():
        mine = ScheduledRun.objects.filter(pk=run.pk, outcome="")
        if not mine.update(outcome=found.outcome, shared_chats=found.shared_chats, changed=json.dumps(found.rules)):
            return None
        if found.outcome == Outcome.DIFFERS:
            data = {
                "schedule": run.schedule_id,
                "name": run.schedule.name,
                "due": run.due_at.isoformat(),
                "replay": run.replay.pk,
                "baseline": run.baseline.pk,
                "result_digest": run.replay.result_digest,
                "baseline_digest": run.baseline.result_digest,
                "shared_chats": found.shared_chats,
                "rules": found.rules,
            }
            tell(tenant, Event.REPLAY_REGRESSED, data, subject=f"scheduled:{run.pk}")
    return found.outcome


def _summary(schedule: ReplaySchedule) -> dict[str, Any]:
    return {
        "scope": schedule.scope,
        "rules": schedule.rules,
        "weekday": schedule.weekday,
        "hour": schedule.hour,
        "baseline": schedule.baseline_id,
        "active": schedule.active,
    }


def _record(tenant: Tenant, by: User, action: str, schedule: ReplaySchedule, **rest: Any) -> None:
    record(
        tenant=tenant,
        by=by,
        action=action,
        object_type="schedule",
        object_id=schedule.pk,
        object_label=schedule.name,
        **rest,
    )
