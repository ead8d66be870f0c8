"""A stored chat under rules: what they decide at each of its points, and why at one of them."""

from __future__ import annotations

from typing import Any, Literal

from django.http import Http404
from django.utils.translation import gettext as _
from pydantic import BaseModel

from chats.models import ChatVersion
from chats.queries.chats import stored_version
from eleanor_site.api_access import ApiRequest, KeyRouter
from eleanor_site.api_problems import wrong
from eleanor_site.api_values import After, Id, Number
from eleanor_site.tenants.models import KeyScope
from rules.api.effect_types import ContextField, PointPlace, RuleAtPoint
from rules.api.loading import broken
from rules.domain.deciding import Decision
from rules.domain.manifest import Manifest
from rules.domain.rule_set import BrokenRule
from rules.models import Replay
from rules.queries import replays as replay_queries
from rules.queries.manifests import manifest_of
from rules.queries.points import PointName
from rules.queries.reviews import verdicts_at
from rules.queries.rules import rule_set
from rules.queries.timeline import Timeline, context_rows, find_decision, record_of_version, stories, timeline

router = KeyRouter(tags=["points"])

RuleSet = Literal["live", "drafts"]
Status = Literal["reproduced", "different", "new", "recorded_only"]


class OutcomeAtPoint(BaseModel):
    code: str
    outcome: Literal["fires", "capped", "shadowed", "false"]


class ChatPoint(PointPlace):
    """A point with what the rules decide there. `status` compares the firing with the nudge that is recorded."""

    fired: str | None
    recorded: str | None
    status: Status | None
    rules: list[OutcomeAtPoint]

    @classmethod
    def of(cls, version: ChatVersion, decision: Decision) -> ChatPoint:
        return cls(
            **_place(version, decision),
            fired=decision.fired,
            recorded=decision.recorded,
            status=decision.status,
            rules=[OutcomeAtPoint(code=rule.code, outcome=rule.outcome) for rule in decision.rules],
        )


class ChatPoints(BaseModel):
    """The points of one page of the chat's messages, from `first` to `last`; `points` counts those of the chat."""

    items: list[ChatPoint]
    first: int
    last: int
    points: int
    next: str | None


class VerdictAtPoint(BaseModel):
    code: str
    value: str
    note: str
    by: str


class PointAnswer(BaseModel):
    """The inspector of a point: the whole turn context, the rules of the stage in order with why, and verdicts.

    Trees are null for a key that may not read rules; verdicts are empty for one that may not read nudges.
    """

    point: ChatPoint
    context: list[ContextField]
    rules: list[RuleAtPoint]
    verdicts: list[VerdictAtPoint]


@router.operation("GET", "/chats/{id}/points", KeyScope.CHATS_READ, answers=ChatPoints)
def list_points(
    request: ApiRequest,
    id: Id,
    version: Number | None = None,
    rules: RuleSet = "live",
    replay: Id | None = None,
    after: After = None,
) -> ChatPoints:
    """What the live rules, those with drafts, or those of a replay decide at the points of a chat, page by page."""
    found = _version(id, version)
    around = 0
    if after is not None:
        if not (after.isascii() and after.isdecimal() and len(after) < 9):
            raise wrong("after", "cursor", "take the value of `next` from the page before")
        around = int(after)
    shown, _manifest = _timeline(request, found, rules, replay, around)
    return ChatPoints(
        items=[ChatPoint.of(found, decision) for decision in shown.decisions],
        first=shown.first,
        last=shown.last,
        points=len(shown.points),
        next=None if shown.later is None else str(shown.later),
    )


@router.operation("GET", "/chats/{id}/points/{point}", KeyScope.CHATS_READ, answers=PointAnswer)
def get_point(
    request: ApiRequest,
    id: Id,
    point: str,
    version: Number | None = None,
    rules: RuleSet = "live",
    replay: Id | None = None,
) -> PointAnswer:
    """Everything about one point, which is named MESSAGE-STAGE (as in `17-final`) or by its whole name."""
    whole = PointName.parse(point)
    if whole is not None and (whole.chat != id or version not in (None, whole.version)):
        raise Http404
    found = _version(id, whole.version if whole else version)
    name = f"{whole.message}-{whole.stage}" if whole else point
    message = name.partition("-")[0]
    if not (message.isascii() and message.isdecimal() and len(message) < 9):
        raise Http404
    shown, manifest = _timeline(request, found, rules, replay, int(message))
    decision = find_decision(shown.decisions, name)
    if decision is None:
        raise Http404
    said = request.auth.allows(KeyScope.NUDGES_READ)
    verdicts = verdicts_at(found.pk, decision.point.message, decision.point.stage) if said else []
    return PointAnswer(
        point=ChatPoint.of(found, decision),
        context=[ContextField(**field) for field in context_rows(decision, shown.walked, manifest)],
        rules=[RuleAtPoint.of(story, request.auth) for story in stories(decision, manifest)],
        verdicts=[
            VerdictAtPoint(
                code=row["verdict"].code, value=row["verdict"].value, note=row["verdict"].note, by=row["who"]
            )
            for row in verdicts
        ],
    )


def _version(chat: int, number: int | None) -> ChatVersion:
    found = stored_version(chat, number)
    if found is None:
        raise Http404
    return found


def _timeline(
    request: ApiRequest, version: ChatVersion, rules: RuleSet, replay: int | None, around: int
) -> tuple[Timeline, Manifest]:
    """The page of the chat around a message, under the rules that are wanted. Raises Problem."""
    if replay is not None:
        row = Replay.objects.filter(pk=replay).first()
        if row is None:
            raise wrong("replay", "unknown", _("There is nothing with this number."))
        manifest = replay_queries.manifest(row)
    else:
        manifest = manifest_of(request.tenant, rule_set(request.tenant, drafts=rules == "drafts"), [version.pk])
    try:
        return timeline(record_of_version(version), manifest, around=around), manifest
    except BrokenRule as error:
        raise broken(error) from None


def _place(version: ChatVersion, decision: Decision) -> dict[str, Any]:
    point = decision.point
    return {
        "point": str(PointName(version.chat_id, version.number, point.message, point.stage)),
        "chat": version.chat_id,
        "version": version.number,
        "message": point.message,
        "stage": point.stage,
        "turn": point.turn,
    }
