"""Scheduled replays: a replay's inputs, run daily or weekly, and how each run compares with the baseline."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Literal

from django.http import Http404, HttpResponse
from django.utils.translation import gettext as _
from pydantic import BaseModel, Field

from eleanor_site.api_access import ApiRequest, KeyRouter, json_answer
from eleanor_site.api_problems import wrong
from eleanor_site.api_values import Id, Strict
from eleanor_site.tenants.models import KeyScope
from rules.models import ReplaySchedule, ScheduledRun
from rules.queries import replays as replay_queries
from rules.queries import schedules as queries
from rules.services import schedules as services

router = KeyRouter(tags=["replays"])

Rules = Literal["live", "drafts", "baseline"]
_WEEKDAY = "0 is Monday; null for every day."


class ScheduleIn(Strict):
    """A finished replay whose chats and settings are used each time, and whose result is the first baseline.

    `rules` is `live` or `drafts`, as they are when a run starts, or `baseline`: those of the baseline, as they were.
    Without a name it has that of the replay.
    """

    replay: Id
    name: str = Field(default="", max_length=200)
    rules: Rules = "live"
    hour: Annotated[int, Field(ge=0, le=23, description="In UTC.")]
    weekday: Annotated[int, Field(ge=0, le=6)] | None = Field(default=None, description=_WEEKDAY)


class ChangedRule(BaseModel):
    """A rule that differs from the baseline; null for firings where one side doesn't have the rule.

    `newly` and `gone` count points of the chats that both went over.
    """

    rule: str
    fires_before: int | None
    fires_after: int | None
    newly: int | None
    gone: int | None


class ScheduledRunOut(BaseModel):
    """One due time. `outcome` is null until the replay is done and compared with what was the baseline then.

    `apart` had no chat in common with it, and `refused` could not be started: it has no replay.
    """

    id: int
    due_at: datetime
    replay: int | None
    baseline: int
    outcome: Literal["same", "differs", "apart", "refused"] | None
    shared_chats: int
    changed: list[ChangedRule]

    @classmethod
    def of(cls, row: ScheduledRun) -> ScheduledRunOut:
        return cls(
            id=row.pk,
            due_at=row.due_at,
            replay=row.replay_id,
            baseline=row.baseline_id,
            outcome=row.outcome or None,
            shared_chats=row.shared_chats,
            changed=[ChangedRule(**rule) for rule in json.loads(row.changed)],
        )


class ScheduleOut(BaseModel):
    id: int
    name: str
    scope: str = Field(description="The chats, written as `POST /replays` takes them.")
    rules: Rules
    hour: int = Field(description="In UTC.")
    weekday: int | None = Field(description=_WEEKDAY)
    baseline: int = Field(description="The id of the replay that runs are compared with.")
    active: bool
    due_at: datetime | None = Field(description="When it runs next, null while it is paused.")
    by: str | None
    created_at: datetime

    @classmethod
    def of(cls, row: ReplaySchedule) -> ScheduleOut:
        return cls(
            id=row.pk,
            name=row.name,
            scope=row.scope,
            rules=row.rules,
            hour=row.hour,
            weekday=row.weekday,
            baseline=row.baseline_id,
            active=row.active,
            due_at=row.due_at if row.active else None,
            by=row.by.email if row.by else None,
            created_at=row.created_at,
        )


class ScheduleRow(BaseModel):
    schedule: ScheduleOut
    last: ScheduledRunOut | None


class ScheduleList(BaseModel):
    items: list[ScheduleRow]


class ScheduleAnswer(BaseModel):
    """A schedule with its last fifty runs, the newest first."""

    schedule: ScheduleOut
    runs: list[ScheduledRunOut]


@router.operation("GET", "/replays/schedules", KeyScope.RULES_READ, answers=ScheduleList)
def list_schedules(request: ApiRequest) -> ScheduleList:
    """All schedules by name, each with its last run."""
    return ScheduleList(
        items=[
            ScheduleRow(schedule=ScheduleOut.of(row.schedule), last=ScheduledRunOut.of(row.last) if row.last else None)
            for row in queries.schedule_rows()
        ]
    )


@router.operation(
    "POST", "/replays/schedules", KeyScope.REPLAYS_RUN, answers=ScheduleAnswer, status=201, idempotent=True
)
def add_schedule(request: ApiRequest, body: ScheduleIn) -> HttpResponse:
    """Run the inputs of a replay again and again, and compare what comes of it with that replay."""
    replay = replay_queries.replays().filter(pk=body.replay).first()
    if replay is None:
        raise wrong("replay", "unknown", _("There is nothing with this number."))
    made = services.add_schedule(
        tenant=request.tenant,
        by=request.person,
        replay=replay,
        name=body.name.strip() or str(replay),
        rules=ReplaySchedule.Rules(body.rules),
        hour=body.hour,
        weekday=body.weekday,
    )
    return json_answer(_answer(made), status=201)


@router.operation("GET", "/replays/schedules/{id}", KeyScope.RULES_READ, answers=ScheduleAnswer)
def get_schedule(request: ApiRequest, id: Id) -> ScheduleAnswer:
    """One schedule, and what came of its runs."""
    return _answer(_schedule(id))


@router.operation("POST", "/replays/schedules/{id}/pause", KeyScope.REPLAYS_RUN, answers=ScheduleAnswer)
def pause_schedule(request: ApiRequest, id: Id) -> ScheduleAnswer:
    """Start no runs until it is resumed; one that is at work goes on."""
    return _answer(services.switch_schedule(tenant=request.tenant, schedule=_schedule(id), by=request.person, on=False))


@router.operation("POST", "/replays/schedules/{id}/resume", KeyScope.REPLAYS_RUN, answers=ScheduleAnswer)
def resume_schedule(request: ApiRequest, id: Id) -> ScheduleAnswer:
    """Go on with the next due time; those that passed meanwhile are not made up for."""
    return _answer(services.switch_schedule(tenant=request.tenant, schedule=_schedule(id), by=request.person, on=True))


@router.operation("DELETE", "/replays/schedules/{id}", KeyScope.REPLAYS_RUN, answers=None, status=204)
def remove_schedule(request: ApiRequest, id: Id) -> HttpResponse:
    """Remove it with the record of its runs. The replays that it started stay."""
    services.remove_schedule(tenant=request.tenant, schedule=_schedule(id), by=request.person)
    return HttpResponse(status=204)


@router.operation("PUT", "/replays/schedules/{id}/runs/{run}/baseline", KeyScope.REPLAYS_RUN, answers=ScheduleAnswer)
def take_run_as_baseline(request: ApiRequest, id: Id, run: Id) -> ScheduleAnswer:
    """Compare the next runs with what this one found. Refused while its replay isn't done."""
    found = ScheduledRun.objects.filter(pk=run, schedule=_schedule(id)).select_related("replay").first()
    if found is None:
        raise Http404
    return _answer(services.take_as_baseline(tenant=request.tenant, run=found, by=request.person))


def _schedule(pk: int) -> ReplaySchedule:
    found = queries.schedule(pk)
    if found is None:
        raise Http404
    return found


def _answer(schedule: ReplaySchedule) -> ScheduleAnswer:
    runs = [ScheduledRunOut.of(run) for run in queries.runs_of(schedule)]
    return ScheduleAnswer(schedule=ScheduleOut.of(schedule), runs=runs)
