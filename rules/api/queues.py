"""Review queues: points that were chosen once, for everybody who looks at them, and how far people agree."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from django.http import Http404, HttpResponse
from django.utils.translation import gettext as _
from pydantic import BaseModel, Field

from chats.models import SavedSearch
from chats.queries.chats import chats_of_search
from eleanor_site.api_access import ApiRequest, KeyRouter, json_answer, rows_after
from eleanor_site.api_problems import wrong
from eleanor_site.api_values import PAGE, After, Id, Limit, Strict
from eleanor_site.tenants.models import KeyScope
from rules.api.live_types import Code, Stage
from rules.models import ReviewItem, ReviewQueue
from rules.queries import reviews as queries
from rules.queries.manifests import manifest_of
from rules.queries.points import PointName
from rules.queries.replay_history import chosen_replay
from rules.queries.replays import manifest
from rules.queries.rules import rule_set
from rules.services import reviewing as services

router = KeyRouter(tags=["review"])


class QueueIn(Strict):
    """A queue of a saved search's chats, or of the firings of a rule in a finished replay (the newest by default).

    `silent` adds points without a firing; `only_new` leaves out nudges that are recorded already.
    """

    name: str = Field(default="", max_length=120)
    search: Id | None = None
    silent: bool = False
    code: Code | None = None
    replay: Id | None = None
    only_new: bool = True
    limit: Annotated[int, Field(ge=1, le=services.MOST_ITEMS)] = 100


class QueueOut(BaseModel):
    id: int
    name: str
    kind: Literal["search", "firings"]
    items: int
    by: str | None
    created_at: datetime

    @classmethod
    def of(cls, row: ReviewQueue) -> QueueOut:
        return cls(
            id=row.pk,
            name=row.name,
            kind="search" if row.kind == ReviewQueue.Kind.SEARCH else "firings",
            items=row.item_count,
            by=row.by.email if row.by else None,
            created_at=row.created_at,
        )


class QueueList(BaseModel):
    items: list[QueueOut]
    next: str | None


class QueueAnswer(BaseModel):
    """A queue with how many of its items the key's person has judged, and how many anybody has."""

    queue: QueueOut
    mine: int
    judged: int


class QueueItem(BaseModel):
    """An item. What is known of its point: `GET /chats/{id}/points/{point}`, with `replay` where it has one."""

    position: int
    chat: int | None
    point: str | None
    message: int
    stage: Stage
    turn: int
    code: str
    rule_version: int
    recorded: bool
    replay: int | None

    @classmethod
    def of(cls, row: ReviewItem) -> QueueItem:
        version = row.chat_version
        name = PointName(version.chat_id, version.number, row.message, row.stage) if version else None
        return cls(
            position=row.position,
            chat=row.chat_id,
            point=str(name) if name else None,
            message=row.message,
            stage="round" if row.stage == "round" else "final",
            turn=row.turn,
            code=row.code,
            rule_version=row.version,
            recorded=row.recorded,
            replay=row.replay_id,
        )


class QueueItems(BaseModel):
    items: list[QueueItem]
    next: str | None


class Said(BaseModel):
    by: str
    value: Literal["right", "wrong", "unsure", "missed"]
    note: str


class DisagreementOut(BaseModel):
    item: QueueItem
    verdicts: list[Said]


class PairOut(BaseModel):
    """Two reviewers: how many items both judged, on how many they said the same, and Cohen's kappa."""

    first: str
    second: str
    items: int
    same: int
    kappa: float | None


class AgreementOut(BaseModel):
    """How far the reviewers of a queue agree; `kappa` is Fleiss' over the items that several judged."""

    judged_by_several: int
    same: int
    kappa: float | None
    pairs: list[PairOut]
    disagreements: list[DisagreementOut]


@router.operation("GET", "/queues", KeyScope.NUDGES_READ, answers=QueueList)
def list_queues(request: ApiRequest, after: After = None, limit: Limit = PAGE) -> QueueList:
    """The newest first."""
    rows, following = rows_after(ReviewQueue.objects.select_related("by").order_by("-pk"), after, limit)
    return QueueList(items=[QueueOut.of(row) for row in rows], next=following)


@router.operation("POST", "/queues", KeyScope.NUDGES_WRITE, answers=QueueAnswer, status=201, idempotent=True)
def make_queue(request: ApiRequest, body: QueueIn) -> HttpResponse:
    """Choose points to look at, by lot: the same each time."""
    if (body.search is None) == (body.code is None):
        raise wrong("search", "one_of", _("Give either a saved search or the code of a rule."))
    if body.search is not None:
        made = _of_search(request, body, body.search)
    else:
        made = _of_firings(request, body, body.code or "")
    return json_answer(_answer(request, made), status=201)


def _of_search(request: ApiRequest, body: QueueIn, pk: int) -> ReviewQueue:
    search = SavedSearch.objects.filter(pk=pk).first()
    if search is None:
        raise wrong("search", "unknown", _("There is nothing with this number."))
    return services.queue_of_chats(
        tenant=request.tenant,
        by=request.person,
        name=body.name.strip() or search.name,
        chats=chats_of_search(search),
        query=search.query,
        rules=manifest_of(request.tenant, rule_set(request.tenant, drafts=False), []),
        limit=body.limit,
        silent=body.silent,
    )


def _of_firings(request: ApiRequest, body: QueueIn, code: str) -> ReviewQueue:
    replay = chosen_replay("" if body.replay is None else str(body.replay))
    if replay is None:
        raise wrong("replay", "unknown", _("There is no finished replay. Run one first; its firings can be reviewed."))
    if code not in {spec.code for spec in manifest(replay).rules}:
        raise wrong("code", "unknown", _("Choose a rule of the replay."))
    return services.queue_of_firings(
        tenant=request.tenant,
        by=request.person,
        name=body.name.strip() or _("New firings of %(code)s") % {"code": code},
        replay=replay,
        code=code,
        limit=body.limit,
        only_new=body.only_new,
    )


@router.operation("GET", "/queues/{id}", KeyScope.NUDGES_READ, answers=QueueAnswer)
def get_queue(request: ApiRequest, id: Id) -> QueueAnswer:
    """One queue, and how far it is."""
    return _answer(request, _queue(id))


@router.operation("GET", "/queues/{id}/items", KeyScope.NUDGES_READ, answers=QueueItems)
def list_queue_items(
    request: ApiRequest, id: Id, open: bool = False, after: After = None, limit: Limit = PAGE
) -> QueueItems:
    """The items in their order; with `open` those that the key's person hasn't judged."""
    queue = _queue(id)
    found = queries.open_items(queue, request.person) if open else ReviewItem.objects.filter(queue=queue)
    found = found.select_related("chat_version").defer("chat_version__content").order_by("position")
    rows, following = rows_after(found, after, limit, "position", rising=True)
    return QueueItems(items=[QueueItem.of(row) for row in rows], next=following)


@router.operation("GET", "/queues/{id}/agreement", KeyScope.NUDGES_READ, answers=AgreementOut)
def get_agreement(request: ApiRequest, id: Id) -> AgreementOut:
    """How far reviewers agree, and where they don't."""
    found = queries.agreement_of(_queue(id))
    return AgreementOut(
        judged_by_several=found.judged_by_several,
        same=found.same,
        kappa=found.kappa,
        pairs=[
            PairOut(first=pair.first, second=pair.second, items=pair.items, same=pair.same, kappa=pair.kappa)
            for pair in found.pairs
        ],
        disagreements=[
            DisagreementOut(
                item=QueueItem.of(row.item),
                verdicts=[Said(by=str(verdict.by), value=verdict.value, note=verdict.note) for verdict in row.verdicts],
            )
            for row in found.disagreements
        ],
    )


def _queue(pk: int) -> ReviewQueue:
    found = ReviewQueue.objects.select_related("by").filter(pk=pk).first()
    if found is None:
        raise Http404
    return found


def _answer(request: ApiRequest, queue: ReviewQueue) -> QueueAnswer:
    row = queries.queue_row(queue, request.person)
    return QueueAnswer(queue=QueueOut.of(queue), mine=row.mine, judged=row.judged)
