"""Reading scheduled replays: the list, what is due, and how a run compares with its baseline."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from django.db.models import OuterRef, QuerySet, Subquery

from rules.domain.results import COUNTS
from rules.models import Replay, ReplaySchedule, ScheduledRun
from rules.queries.replays import Comparison, comparison, counts
from rules.queries.segments import Scope

Outcome = ScheduledRun.Outcome
RUNS_SHOWN: Final = 50
_UNFINISHED: Final = (Replay.Status.QUEUED, Replay.Status.RUNNING)
# What a rule did by itself; newly and gone are against some other rule set.
_OWN_COUNTS: Final = tuple(name for name in COUNTS if name not in ("newly", "gone"))


@dataclass(frozen=True)
class ScheduleRow:
    """A schedule with its last run, if it ever ran."""

    schedule: ReplaySchedule
    scope: str
    last: ScheduledRun | None


@dataclass(frozen=True)
class Judged:
    """How a run compares with its baseline: the rules that differ, over so many chats that both have."""

    outcome: Outcome
    shared_chats: int
    rules: list[dict[str, Any]] = field(default_factory=list)


def schedule_rows() -> list[ScheduleRow]:
    """All schedules, by name."""
    schedules = list(_schedules().order_by("name", "pk"))
    newest = _runs().filter(schedule=OuterRef("pk")).order_by("-pk").values("pk")[:1]
    last = ReplaySchedule.objects.annotate(last=Subquery(newest)).values_list("last", flat=True)
    runs = {run.schedule_id: run for run in _runs().filter(pk__in=[pk for pk in last if pk])}
    return [ScheduleRow(one, Scope.parse(one.scope).name(), runs.get(one.pk)) for one in schedules]


def schedule(pk: int) -> ReplaySchedule | None:
    return _schedules().filter(pk=pk).first()


def runs_of(schedule: ReplaySchedule) -> list[ScheduledRun]:
    """The newest runs first."""
    return list(_runs().filter(schedule=schedule).order_by("-pk")[:RUNS_SHOWN])


def _schedules() -> QuerySet[ReplaySchedule]:
    found = ReplaySchedule.objects.select_related("baseline", "by")
    return found.defer("baseline__manifest", "baseline__counts", "baseline__compared_with")


def _runs() -> QuerySet[ScheduledRun]:
    found = ScheduledRun.objects.select_related("replay", "baseline", "schedule")
    large = ("manifest", "counts", "compared_with")
    return found.defer(*(f"{replay}__{name}" for replay in ("replay", "baseline") for name in large))


def due(now: datetime) -> QuerySet[ReplaySchedule]:
    """The schedules whose time has come. Runs without a tenant."""
    return ReplaySchedule.objects.filter(active=True, due_at__lte=now).order_by("due_at")


def unjudged() -> QuerySet[ScheduledRun]:
    """Runs whose replay is done and that nobody has compared yet. Runs without a tenant."""
    return ScheduledRun.objects.filter(outcome="", replay__status=Replay.Status.DONE).order_by("pk")


def is_running(schedule: ReplaySchedule) -> bool:
    """Whether a run of it is still at work: then the next one waits."""
    return ScheduledRun.objects.filter(schedule=schedule, replay__status__in=_UNFINISHED).exists()


def last_regressions() -> list[ScheduledRun]:
    """Of each schedule that is on the last run, where it differs from what is the baseline now."""
    return [
        run for run in _last_runs() if run.outcome == Outcome.DIFFERS and run.baseline_id == run.schedule.baseline_id
    ]


def last_refusals() -> list[ScheduledRun]:
    return [run for run in _last_runs() if run.outcome == Outcome.REFUSED]


def _last_runs() -> list[ScheduledRun]:
    rows = [row.last for row in schedule_rows() if row.schedule.active]
    return [run for run in rows if run is not None]


def scope_of(replay: Replay) -> Scope | None:
    """The scope that a replay went over, to be gone over again; None for the chats of a manifest."""
    return Scope.read(json.loads(replay.scope))


def judge(baseline: Replay, replay: Replay) -> Judged:
    """Over the same chats results are compared to the last count; over others, what was decided where both have been.

    Chats that came in since are no regression.
    """
    found = comparison(baseline, replay, anyway=True)
    if not found.same_corpus and not found.shared_chats:
        return Judged(Outcome.APART, 0)
    rules = _changed_rules(found, baseline, replay)
    differs = bool(rules) or (found.same_corpus and not found.same_result)
    return Judged(Outcome.DIFFERS if differs else Outcome.SAME, found.shared_chats, rules)


def _changed_rules(found: Comparison, baseline: Replay, replay: Replay) -> list[dict[str, Any]]:
    before, after = counts(baseline)["rules"], counts(replay)["rules"]
    changed = []
    for row in found.rules:
        old, new = _own(before.get(row.code)), _own(after.get(row.code))
        if row.newly or row.gone or (found.same_corpus and old != new):
            numbers = {"fires_before": row.left, "fires_after": row.right, "newly": row.newly, "gone": row.gone}
            changed.append({"rule": row.code, **numbers})
    return changed


def _own(of_rule: dict[str, int] | None) -> dict[str, int] | None:
    return None if of_rule is None else {name: of_rule.get(name, 0) for name in _OWN_COUNTS}
