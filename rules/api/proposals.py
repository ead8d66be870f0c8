"""The open release, which collects changes, and requests for a second person's approval."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from django.db.models import QuerySet
from django.http import Http404, HttpResponse
from pydantic import BaseModel, Field

from eleanor_site.api_access import ApiRequest, KeyRouter, json_answer, rows_after
from eleanor_site.api_values import PAGE, After, Id, Limit, Note, Revision, Strict
from eleanor_site.tenants.models import KeyScope
from rules.api.effect_types import OrderEffect
from rules.api.live_types import Code
from rules.api.loading import rule_of, rules_at
from rules.api.releases import ReleaseAnswer, release_answer
from rules.models import Proposal
from rules.queries import effects
from rules.queries.proposed import proposal_order, proposed_figures, proposed_rules
from rules.services import proposals as services

router = KeyRouter(tags=["proposals"])

Mode = Literal["live", "observe"]
Status = Literal["open", "requested", "approved", "refused", "withdrawn", "published"]
OVER = ("published", "refused", "withdrawn")


class ProposedRule(BaseModel):
    """A rule of a proposal. `revision` is that of its draft when approval was asked for, null before that."""

    code: str
    mode: Literal["live", "observe", "paused"]
    revision: int | None


class ProposalOut(BaseModel):
    """What the next release is to change: at most one collects (`open`), any number wait for approval."""

    id: int
    status: Status
    note: str
    rules: list[ProposedRule]
    order: list[str]
    based_on: int
    by: str | None
    decided_by: str | None
    decision_note: str
    release: int | None
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, row: Proposal) -> ProposalOut:
        items = row.items.select_related("rule")
        return cls(
            id=row.pk,
            status=row.status,
            note=row.note,
            rules=[ProposedRule(code=item.rule.code, mode=item.mode, revision=item.revision) for item in items],
            order=proposal_order(row),
            based_on=row.based_on,
            by=row.by.email if row.by else None,
            decided_by=row.decided_by.email if row.decided_by else None,
            decision_note=row.decision_note,
            release=row.release.number if row.release else None,
            created_at=row.created_at,
            updated_at=row.updated_at,
        )


class ProposalList(BaseModel):
    items: list[ProposalOut]
    next: str | None


class AddIn(Strict):
    """Rules whose drafts the open release collects."""

    rules: list[Code] = Field(min_length=1, max_length=100)
    mode: Mode = "live"


class ProposedOrderIn(Strict):
    order: list[Code] = Field(min_length=1, max_length=500)


class RequestIn(Strict):
    """Ask for approval of one rule's draft by itself."""

    rule: Code
    mode: Mode = "live"
    note: str = Field(min_length=1, max_length=2000)


class DecisionIn(Strict):
    note: Note = ""


class PublishProposalIn(Strict):
    """`note` is that of the request where it is left out."""

    seen_release: Revision
    note: Note = ""


@router.operation("GET", "/proposals", KeyScope.RULES_READ, answers=ProposalList)
def list_proposals(
    request: ApiRequest, status: Status | Literal[""] = "", after: After = None, limit: Limit = PAGE
) -> ProposalList:
    """The newest first; `status=open` is the one that collects."""
    found = _rows().order_by("-pk")
    rows, following = rows_after(found.filter(status=status) if status else found, after, limit)
    return ProposalList(items=[ProposalOut.of(row) for row in rows], next=following)


@router.operation("POST", "/proposals", KeyScope.RULES_WRITE, answers=ProposalOut, status=201, idempotent=True)
def request_for_rule(request: ApiRequest, body: RequestIn) -> HttpResponse:
    """Ask a second person to look at one rule's draft, beside whatever the open release collects."""
    rule = rules_at([body.rule], "rule")[0]
    made = services.request_for(tenant=request.tenant, by=request.person, rule=rule, mode=body.mode, note=body.note)
    return json_answer(ProposalOut.of(made), status=201)


@router.operation(
    "POST", "/proposals/open/rules", KeyScope.RULES_WRITE, answers=ProposalOut, status=201, idempotent=True
)
def add_to_open(request: ApiRequest, body: AddIn) -> HttpResponse:
    """Put drafts into the open release, which is made when there is none."""
    rules = rules_at(body.rules)
    made = services.add_to_open(tenant=request.tenant, by=request.person, rules=rules, mode=body.mode)
    return json_answer(ProposalOut.of(made), status=201)


@router.operation("PUT", "/proposals/open/order", KeyScope.RULES_PUBLISH, answers=ProposalOut)
def propose_order(request: ApiRequest, body: ProposedOrderIn) -> ProposalOut:
    """Make another order of the live rules part of the open release."""
    order = [rule.pk for rule in rules_at(body.order, "order")]
    return ProposalOut.of(services.set_order(tenant=request.tenant, by=request.person, order=order))


@router.operation("GET", "/proposals/{id}", KeyScope.RULES_READ, answers=ProposalOut)
def get_proposal(request: ApiRequest, id: Id) -> ProposalOut:
    """One proposal."""
    return ProposalOut.of(_proposal(id))


@router.operation("GET", "/proposals/{id}/effect", KeyScope.RULES_READ, answers=OrderEffect)
def get_proposal_effect(request: ApiRequest, id: Id) -> OrderEffect:
    """What all of it together would do. `broken` while one of its drafts has an error; empty once it is over."""
    found = _proposal(id)
    specs = None if found.status in OVER else proposed_rules(request.tenant, found)
    if not specs:
        return OrderEffect(state="empty" if found.status in OVER else "broken", broken=None, rules=[])
    return OrderEffect.of(effects.order_effect(request.tenant, specs))


@router.operation("DELETE", "/proposals/{id}/rules/{code}", KeyScope.RULES_WRITE, answers=None, status=204)
def remove_from_open(request: ApiRequest, id: Id, code: str) -> HttpResponse:
    """Take a rule out of the open release. An empty one disappears."""
    found, rule = _proposal(id), rule_of(code)
    services.remove_from(tenant=request.tenant, by=request.person, proposal=found, rule=rule)
    return HttpResponse(status=204)


@router.operation("DELETE", "/proposals/{id}/order", KeyScope.RULES_WRITE, answers=None, status=204)
def keep_order(request: ApiRequest, id: Id) -> HttpResponse:
    """Take the order out of the open release. An empty one disappears."""
    services.remove_from(tenant=request.tenant, by=request.person, proposal=_proposal(id), rule=None)
    return HttpResponse(status=204)


@router.operation("POST", "/proposals/{id}/request", KeyScope.RULES_WRITE, answers=ProposalOut, idempotent=True)
def request_approval(request: ApiRequest, id: Id, body: DecisionIn) -> HttpResponse:
    """Ask a second person to look at what the open release holds, in exactly this state."""
    found = services.request_approval(tenant=request.tenant, by=request.person, proposal=_proposal(id), note=body.note)
    return json_answer(ProposalOut.of(found))


@router.operation("POST", "/proposals/{id}/withdraw", KeyScope.RULES_WRITE, answers=ProposalOut, idempotent=True)
def withdraw(request: ApiRequest, id: Id) -> HttpResponse:
    """Take a request back."""
    found = services.withdraw(tenant=request.tenant, by=request.person, proposal=_proposal(id))
    return json_answer(ProposalOut.of(found))


@router.operation("POST", "/proposals/{id}/approve", KeyScope.RULES_PUBLISH, answers=ProposalOut, idempotent=True)
def approve(request: ApiRequest, id: Id, body: DecisionIn) -> HttpResponse:
    """Say yes, as the person who made the key. Refused to whoever asked, and to whoever wrote one of the drafts."""
    found = services.approve(tenant=request.tenant, by=request.person, proposal=_proposal(id), note=body.note)
    return json_answer(ProposalOut.of(found))


@router.operation("POST", "/proposals/{id}/refuse", KeyScope.RULES_PUBLISH, answers=ProposalOut, idempotent=True)
def refuse(request: ApiRequest, id: Id, body: DecisionIn) -> HttpResponse:
    """Say no, and why."""
    found = services.refuse(tenant=request.tenant, by=request.person, proposal=_proposal(id), note=body.note)
    return json_answer(ProposalOut.of(found))


@router.operation(
    "POST", "/proposals/{id}/publish", KeyScope.RULES_PUBLISH, answers=ReleaseAnswer, status=201, idempotent=True
)
def publish_proposal(request: ApiRequest, id: Id, body: PublishProposalIn) -> HttpResponse:
    """Make a release of what was collected. 409 when another release is live, or a draft changed since its approval."""
    found = _proposal(id)
    made = services.publish(
        tenant=request.tenant,
        by=request.person,
        proposal=found,
        note=body.note or found.note,
        seen_release=body.seen_release,
        figures=proposed_figures(request.tenant, found),
    )
    return json_answer(release_answer(made), status=201)


def _rows() -> QuerySet[Proposal]:
    return Proposal.objects.select_related("by", "decided_by", "release")


def _proposal(pk: int) -> Proposal:
    found = _rows().filter(pk=pk).first()
    if found is None:
        raise Http404
    return found
