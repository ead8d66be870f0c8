"""What people think of firings and points, and what that says of rules. A key judges as the person who made it."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from django.db.models import QuerySet
from django.http import Http404, HttpResponse
from django.utils.translation import gettext as _
from pydantic import BaseModel, Field

from chats.queries.chats import stored_version
from eleanor_site.api_access import ApiRequest, KeyRouter, json_answer, rows_after
from eleanor_site.api_problems import wrong
from eleanor_site.api_values import PAGE, After, Id, Index, Limit, Note, Number, Revision, Strict, Text
from eleanor_site.tenants.models import KeyScope
from rules.api.live_types import Code, Stage
from rules.domain.agreement import Share
from rules.models import Verdict
from rules.queries.points import PointName, turn_of
from rules.queries.reviews import live_version, quality
from rules.services import reviewing as services

router = KeyRouter(tags=["verdicts"])

Value = Literal["right", "wrong", "unsure", "missed"]


class VerdictIn(Strict):
    """What somebody thinks of a firing, or of a point where nothing fired.

    `code` is the rule that is meant, empty where none is; `rule_version` the version that fired, where it is known.
    """

    chat: Id
    version: Number | None = Field(default=None, description="The chat's version; the newest one when left out.")
    message: Index
    stage: Stage
    code: Code | Literal[""] = ""
    rule_version: Revision = 0
    value: Value
    note: Note = ""


class VerdictOut(BaseModel):
    """`chat` and `point` are null once the chat is deleted; the verdict counts all the same."""

    id: int
    chat: int | None
    point: str | None
    message: int
    stage: Stage
    turn: int
    code: str
    rule_version: int
    value: Value
    note: str
    by: str
    updated_at: datetime

    @classmethod
    def of(cls, row: Verdict) -> VerdictOut:
        version = row.chat_version
        name = PointName(version.chat_id, version.number, row.message, row.stage) if version else None
        return cls(
            id=row.pk,
            chat=row.chat_id,
            point=str(name) if name else None,
            message=row.message,
            stage="round" if row.stage == "round" else "final",
            turn=row.turn,
            code=row.code,
            rule_version=row.version,
            value=row.value,
            note=row.note,
            by=row.by.email,
            updated_at=row.updated_at,
        )


class VerdictList(BaseModel):
    items: list[VerdictOut]
    next: str | None


class TakenBack(BaseModel):
    """What the person had said before, which holds again; null when that was the first."""

    verdict: VerdictOut | None


class ShareOut(BaseModel):
    """`hits` of `n`, with Wilson's interval at 95 %. Under twenty a percentage would say more than is known."""

    hits: int
    n: int
    share: float | None
    low: float | None
    high: float | None
    enough: bool

    @classmethod
    def of(cls, share: Share) -> ShareOut:
        return cls(
            hits=share.hits, n=share.n, share=share.value, low=share.low, high=share.high, enough=share.is_enough
        )


class QualityOut(BaseModel):
    """What verdicts say of one version of a rule; `version` is 0 where it isn't known which one fired."""

    code: str
    version: int
    precision: ShareOut
    recall: ShareOut
    labels: int


class QualityList(BaseModel):
    items: list[QualityOut]


@router.operation("GET", "/verdicts", KeyScope.NUDGES_READ, answers=VerdictList)
def list_verdicts(
    request: ApiRequest,
    rule: Text = "",
    value: Value | Literal[""] = "",
    chat: Id | None = None,
    after: After = None,
    limit: Limit = PAGE,
) -> VerdictList:
    """The newest first."""
    found = _rows().order_by("-pk")
    if rule:
        found = found.filter(code=rule)
    if value:
        found = found.filter(value=value)
    if chat is not None:
        found = found.filter(chat=chat)
    rows, following = rows_after(found, after, limit)
    return VerdictList(items=[VerdictOut.of(row) for row in rows], next=following)


@router.operation("POST", "/verdicts", KeyScope.NUDGES_WRITE, answers=VerdictOut, status=201, idempotent=True)
def give_verdict(request: ApiRequest, body: VerdictIn) -> HttpResponse:
    """Judge a point. A person has one verdict on a point and rule: another one takes its place."""
    version = stored_version(body.chat, body.version)
    if version is None:
        raise wrong("chat", "unknown", _("There is no chat with this id."))
    turn = turn_of(request.tenant, version, body.message, body.stage)
    if turn is None:
        raise wrong("message", "unknown", _("There is no such point in this chat."))
    number = body.rule_version
    if body.code and not number and body.value == "missed":
        number = live_version(body.code)
    given = services.judge(
        tenant=request.tenant,
        by=request.person,
        point=services.JudgedPoint(version, body.message, body.stage, turn, body.code, number),
        value=body.value,
        note=body.note.strip(),
    )
    return json_answer(VerdictOut.of(given), status=201)


@router.operation("GET", "/verdicts/quality", KeyScope.NUDGES_READ, answers=QualityList)
def get_quality(request: ApiRequest, rule: Text = "") -> QualityList:
    """Precision and recall of each rule and version that people judged."""
    return QualityList(
        items=[
            QualityOut(
                code=row.code,
                version=row.version,
                precision=ShareOut.of(row.precision),
                recall=ShareOut.of(row.recall),
                labels=row.labels,
            )
            for row in quality(code=rule)
        ]
    )


@router.operation("DELETE", "/verdicts/{id}", KeyScope.NUDGES_WRITE, answers=TakenBack)
def take_back_verdict(request: ApiRequest, id: Id) -> TakenBack:
    """Take back what was said last. Refused for another person's verdict."""
    found = _rows().filter(pk=id).first()
    if found is None:
        raise Http404
    services.undo(tenant=request.tenant, by=request.person, verdict=found)
    left = _rows().filter(pk=id).first()
    return TakenBack(verdict=VerdictOut.of(left) if left else None)


def _rows() -> QuerySet[Verdict]:
    return Verdict.objects.select_related("by", "chat_version").defer("chat_version__content")
