"""Replays: starting one, watching it, stopping, resuming, and the baseline."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpResponse
from django.utils.translation import gettext as _
from pydantic import BaseModel, Field

from eleanor_site import limits
from eleanor_site.api_access import ApiRequest, KeyRouter, json_answer, rows_after, take_from
from eleanor_site.api_problems import wrong
from eleanor_site.api_values import PAGE, After, Id, Limit, Revision, Strict
from eleanor_site.tenants.models import KeyScope
from rules.api.live_types import Stage
from rules.api.loading import ScopeText, replay_of, scope_at
from rules.domain.points import Defaults
from rules.domain.rule_set import RuleSpec, rule_set_digest
from rules.models import Release, Replay
from rules.queries import replays as queries
from rules.queries.replays import Compared
from rules.queries.rules import live_number, rule_set
from rules.services import replays as services

router = KeyRouter(tags=["replays"])


class ReplayIn(Strict):
    """`rules` is `live`, `drafts` (the live release with all drafts in their places) or `release` with a number.

    `compare` counts what fires newly and no longer against the live release, or the one that `compare_release` names.
    The last three hold for chats that don't say, before the tenant's settings.
    """

    title: str = Field(default="", max_length=200)
    rules: Literal["live", "drafts", "release"] = "live"
    release: Revision | None = None
    scope: ScopeText = "all"
    compare: Literal["none", "live", "release"] = "none"
    compare_release: Revision | None = None
    step_budget: Annotated[int, Field(ge=1, le=10_000)] | None = None
    require_delivery: bool | None = None
    audit_mode: bool | None = None


class ReplayOut(BaseModel):
    id: int
    title: str
    status: Literal["queued", "running", "done", "stopped", "incomplete"]
    chunks_done: int
    chunks_total: int
    chats: int
    points: int
    points_total: int
    fires: int
    scope: dict[str, Any]
    compared_with: str | None = Field(description="The rule set to compare with, by its name.")
    baseline: bool
    name_digest: str
    result_digest: str
    created_at: datetime
    finished_at: datetime | None

    @classmethod
    def of(cls, row: Replay) -> ReplayOut:
        return cls(
            id=row.pk,
            title=row.title,
            status=row.status,
            chunks_done=row.chunks_done,
            chunks_total=row.chunks_total,
            chats=row.chats_total,
            points=row.points,
            points_total=row.points_total,
            scope=json.loads(row.scope),
            compared_with=json.loads(row.compared_with)["label"] if row.compared_with else None,
            baseline=row.baseline,
            fires=row.fires,
            name_digest=row.name_digest,
            result_digest=row.result_digest,
            created_at=row.created_at,
            finished_at=row.finished_at,
        )


class ReplayList(BaseModel):
    items: list[ReplayOut]
    next: str | None


class ReplayRule(BaseModel):
    code: str
    stage: Stage
    counts: dict[str, int | None]


class FailedChunk(BaseModel):
    number: int
    error: str


class ReplayAnswer(BaseModel):
    """A replay with the counts of each rule over what is done so far.

    `other_codes` counts recorded nudges of codes that the rule set lacks, `gone_rules` firings of rules that only the
    rule set to compare with has.
    """

    replay: ReplayOut
    rules: list[ReplayRule]
    other_codes: dict[str, int]
    gone_rules: dict[str, int]
    failed: list[FailedChunk]


class EstimateIn(Strict):
    scope: ScopeText = "all"


class EstimateOut(BaseModel):
    """What a replay would have to do; `new_chats` have no columns yet. `seconds` is about how long that takes."""

    chats: int
    points: int
    new_chats: int
    seconds: int


@router.operation("GET", "/replays", KeyScope.RULES_READ, answers=ReplayList)
def list_replays(request: ApiRequest, after: After = None, limit: Limit = PAGE) -> ReplayList:
    """The newest first."""
    rows, following = rows_after(queries.replays(), after, limit)
    return ReplayList(items=[ReplayOut.of(row) for row in rows], next=following)


@router.operation("POST", "/replays", KeyScope.REPLAYS_RUN, answers=ReplayAnswer, status=202, idempotent=True)
def start_replay(request: ApiRequest, body: ReplayIn) -> HttpResponse:
    """Start a replay. Ask for its status at `/replays/{id}`, or let a webhook tell."""
    if (body.rules == "release") != (body.release is not None):
        raise wrong("release", "one_of", _("A number goes with the rules of a release, and only with these."))
    if (body.compare == "release") != (body.compare_release is not None):
        raise wrong("compare_release", "one_of", _("A number goes with comparing with a release, and only with that."))
    rules = _rule_set(request, body.rules, body.release, "release")
    scope = scope_at(body.scope)
    compared = _compared(request, body, rules)
    take_from(limits.REPLAYS, request.tenant)
    replay = services.start_replay(
        tenant=request.tenant,
        by=request.person,
        scope=scope,
        rules=rules,
        compared=compared,
        defaults=Defaults(body.step_budget, body.require_delivery, body.audit_mode),
        title=body.title.strip(),
    )
    return json_answer(_answer(replay), status=202)


@router.operation("POST", "/replays/estimate", KeyScope.RULES_READ, answers=EstimateOut)
def estimate_replay(request: ApiRequest, body: EstimateIn) -> EstimateOut:
    """What a replay of these chats would have to do."""
    found = queries.estimate(request.tenant, scope_at(body.scope))
    return EstimateOut(chats=found.chats, points=found.points, new_chats=found.new_chats, seconds=found.seconds)


@router.operation("GET", "/replays/{id}", KeyScope.RULES_READ, answers=ReplayAnswer)
def get_replay(request: ApiRequest, id: Id) -> ReplayAnswer:
    """One replay with the counts of each rule over what is done so far."""
    return _answer(replay_of(id))


@router.operation("POST", "/replays/{id}/stop", KeyScope.REPLAYS_RUN, answers=ReplayAnswer)
def stop_replay(request: ApiRequest, id: Id) -> ReplayAnswer:
    """Stop a replay; what is done stays, and the rest can be resumed."""
    return _answer(services.stop_replay(tenant=request.tenant, replay=replay_of(id), by=request.person))


@router.operation("POST", "/replays/{id}/resume", KeyScope.REPLAYS_RUN, answers=ReplayAnswer)
def resume_replay(request: ApiRequest, id: Id) -> ReplayAnswer:
    """Go on with what is missing of a stopped or incomplete replay."""
    return _answer(services.resume_replay(tenant=request.tenant, replay=replay_of(id), by=request.person))


@router.operation("PUT", "/replays/{id}/baseline", KeyScope.REPLAYS_RUN, answers=ReplayOut)
def set_baseline(request: ApiRequest, id: Id) -> ReplayOut:
    """Make it the replay that others are compared with first; there is at most one."""
    return ReplayOut.of(services.make_baseline(tenant=request.tenant, replay=replay_of(id), by=request.person))


@router.operation("DELETE", "/replays/{id}/baseline", KeyScope.REPLAYS_RUN, answers=ReplayOut)
def unset_baseline(request: ApiRequest, id: Id) -> ReplayOut:
    """It is the baseline no longer."""
    return ReplayOut.of(
        services.make_baseline(tenant=request.tenant, replay=replay_of(id), by=request.person, on=False)
    )


def _rule_set(request: ApiRequest, wanted: str, number: int | None, path: str) -> list[RuleSpec]:
    """The live rules, those with drafts, or those of a release. Raises Problem."""
    release = None
    if number is not None:
        release = Release.objects.filter(number=number).first()
        if release is None:
            raise wrong(path, "unknown", _("There is nothing with this number."))
    return rule_set(request.tenant, drafts=wanted == "drafts", release=release)


def _compared(request: ApiRequest, body: ReplayIn, rules: list[RuleSpec]) -> Compared | None:
    """None when no comparison is wanted, and when the other rules decide the same."""
    if body.compare == "none":
        return None
    specs = _rule_set(request, body.compare, body.compare_release, "compare_release")
    if not specs or rule_set_digest(specs) == rule_set_digest(rules):
        return None
    number = live_number() if body.compare_release is None else body.compare_release
    return Compared(_("release %(n)s") % {"n": number}, specs)


def _answer(replay: Replay) -> ReplayAnswer:
    rows, others = queries.rule_rows(replay)
    rules = [
        ReplayRule(
            code=row.code,
            stage="round" if row.stage == "round" else "final",
            counts={**row.counts, "recorded_only": row.recorded_only},
        )
        for row in rows
    ]
    return ReplayAnswer(
        replay=ReplayOut.of(replay),
        rules=rules,
        other_codes=others,
        gone_rules=queries.gone_rules(replay),
        failed=[FailedChunk(number=chunk.number, error=chunk.error) for chunk in queries.failed_chunks(replay)],
    )
