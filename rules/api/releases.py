"""Releases: what was live when, publishing, rolling back, switching rules on and off, and their order."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from django.http import Http404, HttpResponse
from django.utils.translation import gettext as _
from pydantic import BaseModel, Field

from eleanor_site.api_access import ApiRequest, KeyRouter, json_answer, rows_after
from eleanor_site.api_values import PAGE, After, Limit, Note, Number, Revision, Strict
from eleanor_site.tenants.models import KeyScope
from rules.api.live_types import Code
from rules.api.loading import release_of, rule_of, rules_at, version_of
from rules.models import Release, ReleaseEntry
from rules.queries.proposed import figures_of_draft
from rules.queries.release_effects import around
from rules.services import publishing

router = KeyRouter(tags=["releases"])

_MODES = {"live": publishing.Mode.LIVE, "paused": publishing.Mode.PAUSED, "observe": publishing.Mode.OBSERVE}


class ReleaseSummary(BaseModel):
    number: int
    status: Literal["live", "superseded"]
    note: str
    based_on: int
    by: str | None
    approved_by: str | None
    published_at: datetime | None

    @classmethod
    def of(cls, row: Release) -> ReleaseSummary:
        return cls(
            number=row.number,
            status="live" if row.status == Release.Status.LIVE else "superseded",
            note=row.note,
            based_on=row.based_on,
            by=row.by.email if row.by else None,
            approved_by=row.approved_by.email if row.approved_by else None,
            published_at=row.published_at,
        )


class ReleaseList(BaseModel):
    items: list[ReleaseSummary]
    next: str | None


class PlacedVersion(BaseModel):
    position: int
    code: str
    version: int
    mode: Literal["live", "observe", "paused"]


class ReleaseAnswer(BaseModel):
    release: ReleaseSummary
    rules: list[PlacedVersion]


class PublishIn(Strict):
    """Publish the drafts of these rules on top of the release that you saw (0: none)."""

    rules: list[Code] = Field(min_length=1, max_length=100)
    note: str = Field(min_length=1, max_length=2000)
    seen_release: Revision
    mode: Literal["live", "observe"] = "live"


class RollBackIn(Strict):
    seen_release: Revision
    note: str = Field(default="", max_length=2000)


class ModeIn(Strict):
    """`live` resumes a paused or observed rule; `out` takes it out of the release."""

    mode: Literal["live", "paused", "observe", "out"]
    seen_release: Revision
    note: str = Field(default="", max_length=2000)


class UndoIn(Strict):
    seen_release: Revision


class OrderIn(Strict):
    """Codes of live rules in the order that is wanted; those that are left out come last."""

    order: list[Code] = Field(min_length=1, max_length=500)
    seen_release: Revision
    note: Note = ""


class FiringsAround(BaseModel):
    """Recorded nudges of one rule in the seven days before the release's day, and in seven days from then on."""

    code: str
    before: int
    after: int


class FiringsAroundRelease(BaseModel):
    items: list[FiringsAround]


@router.operation("GET", "/releases", KeyScope.RULES_READ, answers=ReleaseList)
def list_releases(request: ApiRequest, after: After = None, limit: Limit = PAGE) -> ReleaseList:
    """The newest first."""
    found = Release.objects.select_related("by", "approved_by").order_by("-number")
    rows, following = rows_after(found, after, limit, "number")
    return ReleaseList(items=[ReleaseSummary.of(row) for row in rows], next=following)


@router.operation("POST", "/releases/undo", KeyScope.RULES_PUBLISH, answers=ReleaseAnswer, status=201, idempotent=True)
def undo_release(request: ApiRequest, body: UndoIn) -> HttpResponse:
    """Make what was live before the release that you saw live again, as a new release."""
    made = publishing.undo(tenant=request.tenant, by=request.person, seen_release=body.seen_release)
    return json_answer(release_answer(made), status=201)


@router.operation("GET", "/releases/{number}", KeyScope.RULES_READ, answers=ReleaseAnswer)
def get_one_release(request: ApiRequest, number: Number) -> ReleaseAnswer:
    """One release with its rules in order."""
    return release_answer(release_of(number))


@router.operation("POST", "/releases", KeyScope.RULES_PUBLISH, answers=ReleaseAnswer, status=201, idempotent=True)
def publish(request: ApiRequest, body: PublishIn) -> HttpResponse:
    """Publish drafts as a new release. 409 when another release is live than the one that you saw."""
    rules = rules_at(body.rules)
    made = publishing.publish_drafts(
        tenant=request.tenant,
        rules=rules,
        by=request.person,
        note=body.note,
        seen_release=body.seen_release,
        mode=_MODES[body.mode],
        figures=figures_of_draft(request.tenant, rules[0]) if len(rules) == 1 else {},
    )
    return json_answer(release_answer(made), status=201)


@router.operation("GET", "/releases/{number}/firings", KeyScope.NUDGES_READ, answers=FiringsAroundRelease)
def get_firings_around(request: ApiRequest, number: Number) -> FiringsAroundRelease:
    """What the rules did in the seven days before and after a release."""
    release = release_of(number)
    if release.published_at is None:
        raise Http404
    rows = around(request.tenant, release)["effect_rows"]
    return FiringsAroundRelease(
        items=[FiringsAround(code=row.code, before=row.before, after=row.after) for row in rows]
    )


@router.operation(
    "POST", "/releases/{number}/roll-back", KeyScope.RULES_PUBLISH, answers=ReleaseAnswer, status=201, idempotent=True
)
def roll_back(request: ApiRequest, number: Number, body: RollBackIn) -> HttpResponse:
    """Make an older release's rules live again, as a new release."""
    made = publishing.roll_back(
        tenant=request.tenant,
        to=release_of(number),
        by=request.person,
        seen_release=body.seen_release,
        note=body.note,
    )
    return json_answer(release_answer(made), status=201)


@router.operation(
    "POST", "/rules/{code}/mode", KeyScope.RULES_PUBLISH, answers=ReleaseAnswer, status=201, idempotent=True
)
def change_mode(request: ApiRequest, code: str, body: ModeIn) -> HttpResponse:
    """Pause, resume or observe a rule of the live release, or take it out; each makes a new release."""
    rule = rule_of(code)
    if body.mode == "out":
        made = publishing.take_out(
            tenant=request.tenant, rule=rule, by=request.person, seen_release=body.seen_release, note=body.note
        )
    else:
        made = publishing.set_mode(
            tenant=request.tenant,
            rule=rule,
            mode=_MODES[body.mode],
            by=request.person,
            seen_release=body.seen_release,
            note=body.note,
        )
    return json_answer(release_answer(made), status=201)


@router.operation(
    "POST",
    "/rules/{code}/versions/{number}/roll-back",
    KeyScope.RULES_PUBLISH,
    answers=ReleaseAnswer,
    status=201,
    idempotent=True,
)
def roll_back_rule(request: ApiRequest, code: str, number: Number, body: RollBackIn) -> HttpResponse:
    """Make an older version's content live again, as a new version in a new release. The rule's draft stays."""
    rule = rule_of(code)
    made = publishing.roll_back_rule(
        tenant=request.tenant,
        rule=rule,
        to=version_of(rule, number),
        by=request.person,
        seen_release=body.seen_release,
        note=body.note.strip() or _("Back to version %(n)s") % {"n": number},
    )
    return json_answer(release_answer(made), status=201)


@router.operation("POST", "/rules/order", KeyScope.RULES_PUBLISH, answers=ReleaseAnswer, status=201, idempotent=True)
def reorder(request: ApiRequest, body: OrderIn) -> HttpResponse:
    """Evaluate the live rules in another order. Its effect beforehand: `/rules/order/effect`."""
    made = publishing.reorder(
        tenant=request.tenant,
        order=[rule.pk for rule in rules_at(body.order, "order")],
        by=request.person,
        seen_release=body.seen_release,
        note=body.note,
    )
    return json_answer(release_answer(made), status=201)


def release_answer(release: Release) -> ReleaseAnswer:
    entries = ReleaseEntry.objects.filter(release=release).select_related("version__rule").order_by("position")
    placed = [
        PlacedVersion(
            position=entry.position,
            code=entry.version.rule.code,
            version=entry.version.number,
            mode=entry.mode,
        )
        for entry in entries
    ]
    return ReleaseAnswer(release=ReleaseSummary.of(release), rules=placed)
