"""Nudges: reporting what was said, the history, its numbers, and taking it along."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from datetime import date, datetime
from typing import Literal

from django.http import HttpResponse, StreamingHttpResponse
from django.utils.translation import gettext as _
from ninja import Query
from pydantic import BaseModel, Field

from eleanor_site.api_access import ApiRequest, KeyRouter, json_answer
from eleanor_site.api_files import TABLES, FileForm, file_answer
from eleanor_site.api_problems import wrong
from eleanor_site.api_values import After, Day, Id, Text
from eleanor_site.exports import csv_lines, json_lines
from eleanor_site.tenants.models import KeyScope
from rules.api.live_types import NudgesIn, NudgesTaken
from rules.api.loading import replay_of
from rules.models import RecordedNudge, Replay
from rules.queries import nudge_statistics as statistics
from rules.queries import nudges as queries
from rules.queries.nudges import NudgeFilter, nudge_page
from rules.queries.replay_aftermath import aftermath_report, counting, is_told
from rules.services import live_nudges
from rules.services.aftermaths import prepare_aftermath

router = KeyRouter(tags=["nudges"])

Source = Literal["", "import", "live", "observe"]
Outcome = Literal["", "acted", "finished", "ignored", "unknown"]
Judged = Literal["", "right", "wrong", "unsure", "missed", "none"]


class NudgeFilters(BaseModel):
    """The filters that all endpoints of the history take, named as in `NudgeFilter`."""

    rule: Text = ""
    model: Text = ""
    language: Text = ""
    source: Source = ""
    start: Day | None = Field(default=None, alias="from")
    end: Day | None = Field(default=None, alias="to")


class OutcomeFilters(NudgeFilters):
    outcome: Outcome = ""


class ListFilters(OutcomeFilters):
    version: Id | None = Field(default=None, description="The id of a rule's version.")
    verdict: Judged = ""


class NudgeOut(BaseModel):
    id: int
    code: str
    source: Literal["import", "live", "observe"]
    chat: int | None
    chat_version: int | None
    message: int | None
    point: int | None
    turn: int | None
    stage: str
    version: int | None
    model: str
    language: str
    outcome: str
    at: datetime | None
    verdicts: list[str]

    @classmethod
    def of(cls, row: RecordedNudge, verdicts: list[str]) -> NudgeOut:
        return cls(
            id=row.pk,
            code=row.code,
            source=row.source,
            chat=row.chat_id,
            chat_version=row.chat_version.number if row.chat_version else None,
            message=row.message,
            point=row.point,
            turn=row.turn,
            stage=row.stage,
            version=row.version.number if row.version else None,
            model=row.model,
            language=row.language,
            outcome=row.outcome,
            at=row.at,
            verdicts=verdicts,
        )


class NudgeList(BaseModel):
    items: list[NudgeOut]
    next: str | None


class NudgeDayOut(BaseModel):
    """Nudges of one rule on one day (UTC)."""

    day: date
    code: str
    count: int


class NudgeDays(BaseModel):
    """Counts by day and rule, over the days of the filter or the last 28 with a nudge; `undated` ones have no time."""

    start: date
    end: date
    days: list[NudgeDayOut]
    undated: int


class NudgeGroup(BaseModel):
    """Nudges with something in common; `label` names what. What came of them is `unknown` where nothing followed."""

    label: str
    count: int
    acted: int
    finished: int
    ignored: int
    unknown: int


class NudgeGroups(BaseModel):
    """The biggest first, two hundred at most."""

    items: list[NudgeGroup]


class RuleModelNudges(BaseModel):
    """Of one rule with one model. `turns` are those of the model's stored chats, null where none is stored."""

    code: str
    model: str
    count: int
    acted: int
    finished: int
    ignored: int
    turns: int | None
    per_hundred_turns: float | None


class NudgeStatistics(BaseModel):
    items: list[RuleModelNudges]


class AftermathRow(BaseModel):
    """What came after the firings of a rule with a model; `counts` by what happened (rules/domain/aftermath.py)."""

    stage: Literal["final", "round"]
    code: str
    model: str
    counts: dict[str, int]


class AftermathOut(BaseModel):
    """What came after a replay's firings in `chats` chats; `uncounted` ones can't be told of any more.

    `rows` is null until somebody asked for it (POST), and while points are counted (`points_done` of `points`).
    """

    rows: list[AftermathRow] | None
    chats: int
    uncounted: int
    points_done: int
    points: int


@router.operation("POST", "/nudges", KeyScope.NUDGES_WRITE, answers=NudgesTaken, status=201, idempotent=True)
def post_nudges(request: ApiRequest, body: NudgesIn) -> HttpResponse:
    """Report nudges that were given, and those that observed rules would have given."""
    reports = [
        live_nudges.Report(
            code=nudge.code,
            source=nudge.source,
            chat=nudge.chat,
            external_id=nudge.external_id or "",
            message=nudge.message,
            point=nudge.point,
            turn=nudge.turn,
            stage=nudge.stage or "",
            version=nudge.version,
            model=nudge.model,
            language=nudge.language,
            outcome=nudge.outcome or "",
            at=nudge.at,
            external_key=nudge.external_key,
        )
        for nudge in body.nudges
    ]
    try:
        taken = live_nudges.take_nudges(tenant=request.tenant, by=request.person, reports=reports)
    except live_nudges.UnknownReference as unknown:
        path = f"nudges[{unknown.number}].{unknown.field}"
        raise wrong(path, "unknown", _("There is nothing with this number.")) from None
    return json_answer(NudgesTaken(taken=taken, known=len(reports) - taken), status=201)


@router.operation("GET", "/nudges", KeyScope.NUDGES_READ, answers=NudgeList)
def list_nudges(
    request: ApiRequest,
    given: Query[ListFilters],
    after: After = None,
) -> NudgeList:
    """The history of nudges, the newest first, fifty a page."""
    wanted = NudgeFilter(**given.model_dump())
    rows, following = nudge_page(wanted, after or "")
    return NudgeList(items=[NudgeOut.of(row.nudge, row.verdicts) for row in rows], next=following or None)


@router.operation("GET", "/nudges/export", KeyScope.NUDGES_READ, answers=None, files=TABLES)
def export_nudges(
    request: ApiRequest,
    given: Query[ListFilters],
    format: FileForm = "jsonl",
) -> StreamingHttpResponse:
    """All nudges that the filters leave, with a trailer that holds their number and digest."""
    wanted = NudgeFilter(**given.model_dump())
    rows = queries.export_rows(wanted)
    columns = queries.EXPORT_COLUMNS
    lines: Iterator[bytes] = (
        csv_lines(columns, ([row[name] for name in columns] for row in rows)) if format == "csv" else json_lines(rows)
    )
    return file_answer(lines, format, f"{request.tenant.slug}-nudges")


@router.operation("GET", "/nudges/days", KeyScope.NUDGES_READ, answers=NudgeDays)
def count_nudges_by_day(
    request: ApiRequest,
    given: Query[OutcomeFilters],
) -> NudgeDays:
    """The numbers of the history's chart."""
    wanted = NudgeFilter(**given.model_dump())
    span = statistics.history_span(wanted)
    counts = sorted(statistics.history_counts(wanted, span).items())
    days = [NudgeDayOut(day=day, code=code, count=n) for (day, code), n in counts]
    return NudgeDays(start=span.start, end=span.end, days=days, undated=statistics.undated(wanted))


@router.operation("GET", "/nudges/groups", KeyScope.NUDGES_READ, answers=NudgeGroups)
def group_nudges(
    request: ApiRequest,
    given: Query[OutcomeFilters],
    by: Literal["rule", "version", "model", "language", "verdict"] = "rule",
) -> NudgeGroups:
    """The nudges that the filters leave, by what they have in common."""
    rows = statistics.groups(NudgeFilter(**given.model_dump()), by)
    return NudgeGroups(
        items=[
            NudgeGroup(
                label=row.label,
                count=row.count,
                acted=row.acted,
                finished=row.finished,
                ignored=row.ignored,
                unknown=row.count - row.known,
            )
            for row in rows
        ]
    )


@router.operation("GET", "/nudges/statistics", KeyScope.NUDGES_READ, answers=NudgeStatistics)
def get_nudge_statistics(
    request: ApiRequest,
    given: Query[NudgeFilters],
) -> NudgeStatistics:
    """For each rule and model: how often it nudged, and what came of it."""
    rows = statistics.rules_and_models(NudgeFilter(**given.model_dump()))
    return NudgeStatistics(
        items=[
            RuleModelNudges(
                code=row.code,
                model=row.model,
                count=row.count,
                acted=row.acted,
                finished=row.finished,
                ignored=row.ignored,
                turns=row.turns,
                per_hundred_turns=row.per_hundred_turns,
            )
            for row in rows
        ]
    )


@router.operation("GET", "/replays/{id}/aftermath", KeyScope.NUDGES_READ, answers=AftermathOut)
def get_aftermath(request: ApiRequest, id: Id, model: Text = "", language: Text = "") -> AftermathOut:
    """What came in the stored chats after the places where the rules of a replay fire, once that is counted."""
    return _came_after(replay_of(id), model, language)


@router.operation("POST", "/replays/{id}/aftermath", KeyScope.NUDGES_READ, answers=AftermathOut)
def count_aftermath(request: ApiRequest, id: Id) -> AftermathOut:
    """Count what came after, at once for a small replay, else in the background."""
    replay = replay_of(id)
    prepare_aftermath(tenant=request.tenant, replay=replay)
    return _came_after(replay, "", "")


def _came_after(replay: Replay, model: str, language: str) -> AftermathOut:
    progress = counting(replay)
    if not is_told(replay):
        return AftermathOut(rows=None, chats=0, uncounted=0, points_done=progress.done, points=progress.total)
    found = aftermath_report(replay, model, language)
    rows = [
        AftermathRow(
            stage="round" if stage == "round" else "final",
            code=code,
            model=name,
            counts={key: value for key, value in asdict(counts).items() if isinstance(value, int)},
        )
        for stage, rows in found.by_stage
        for code, name, counts in rows
    ]
    return AftermathOut(
        rows=rows, chats=found.chats, uncounted=found.uncounted, points_done=progress.done, points=progress.total
    )
