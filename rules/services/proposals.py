"""Collecting changes into one release, and asking a second person (product.md section 6)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from types import MappingProxyType

from django.db import transaction
from django.utils.translation import gettext as _

from eleanor_site.audit.services import record
from eleanor_site.problems import Conflict, Refused
from eleanor_site.tenants.models import Tenant, User
from rules.models import DraftRevision, Proposal, ProposalItem, Release, Rule, RuleDraft, RuleVersion
from rules.queries.rules import live_number
from rules.services.publishing import Figures, with_drafts
from rules.switching import Mode, live_places, make_release

Status = Proposal.Status


@transaction.atomic
def add_to_open(*, tenant: Tenant, by: User, rules: Sequence[Rule], mode: str = Mode.LIVE) -> Proposal:
    """Put these rules into the open release, which is made when there is none. Rules that are in it stay once."""
    proposal = _open(tenant, by)
    for rule in rules:
        _require_something(rule)
        ProposalItem.objects.update_or_create(tenant=tenant, proposal=proposal, rule=rule, defaults={"mode": mode})
    _record(tenant, by, "proposal.add", proposal)
    return proposal


@transaction.atomic
def set_order(*, tenant: Tenant, by: User, order: Sequence[int]) -> Proposal:
    """Make another order of the rules part of the open release."""
    proposal = _open(tenant, by)
    proposal.order = json.dumps(list(order))
    proposal.save()
    _record(tenant, by, "proposal.order", proposal)
    return proposal


@transaction.atomic
def remove_from(*, tenant: Tenant, by: User, proposal: Proposal, rule: Rule | None) -> None:
    """Take a rule out of the open release, or the order when no rule is named. An empty one disappears."""
    proposal = _locked(proposal, Status.OPEN)
    if rule is None:
        proposal.order = ""
        proposal.save()
    else:
        proposal.items.filter(rule=rule).delete()
    _record(tenant, by, "proposal.remove", proposal)
    if not proposal.order and not proposal.items.exists():
        proposal.delete()


@transaction.atomic
def request_approval(*, tenant: Tenant, by: User, proposal: Proposal, note: str) -> Proposal:
    """Ask a second person to look at what the open release holds, in exactly the state that it has now."""
    return _requested(tenant, by, _locked(proposal, Status.OPEN), note)


@transaction.atomic
def request_for(*, tenant: Tenant, by: User, rule: Rule, mode: str, note: str) -> Proposal:
    """Ask for approval of one rule's draft by itself, beside whatever the open release collects."""
    _require_something(rule)
    proposal = Proposal.objects.create(tenant=tenant, by=by, status=Status.REQUESTED)
    ProposalItem.objects.create(tenant=tenant, proposal=proposal, rule=rule, mode=mode)
    return _requested(tenant, by, proposal, note)


def _requested(tenant: Tenant, by: User, proposal: Proposal, note: str) -> Proposal:
    if not note.strip():
        raise Refused(_("Say in a sentence why this change is made."))
    if not proposal.order and not proposal.items.exists():
        raise Refused(_("There is nothing in this release yet."))
    for item in proposal.items.all():
        draft = RuleDraft.objects.filter(rule=item.rule_id).first()
        item.revision = draft.revision if draft else 0
        item.save(update_fields=["revision"])
    proposal.status = Status.REQUESTED
    proposal.note, proposal.by, proposal.based_on = note, by, live_number()
    proposal.save()
    _record(tenant, by, "proposal.request", proposal, note)
    return proposal


@transaction.atomic
def approve(*, tenant: Tenant, by: User, proposal: Proposal, note: str = "") -> Proposal:
    """A second person says yes. Refused to whoever asked, and to whoever wrote one of the drafts."""
    proposal = _locked(proposal, Status.REQUESTED)
    if by.pk in authors_of(proposal):
        raise Refused(_("You wrote or requested this change. Somebody else has to approve it."))
    return _decided(tenant, by, proposal, Status.APPROVED, "proposal.approve", note)


@transaction.atomic
def refuse(*, tenant: Tenant, by: User, proposal: Proposal, note: str) -> Proposal:
    proposal = _locked(proposal, Status.REQUESTED, Status.APPROVED)
    if not note.strip():
        raise Refused(_("Say in a sentence why you refuse, so that the author knows what to change."))
    return _decided(tenant, by, proposal, Status.REFUSED, "proposal.refuse", note)


@transaction.atomic
def withdraw(*, tenant: Tenant, by: User, proposal: Proposal) -> Proposal:
    proposal = _locked(proposal, Status.REQUESTED, Status.APPROVED)
    return _decided(tenant, by, proposal, Status.WITHDRAWN, "proposal.withdraw", "")


@transaction.atomic
def publish(
    *,
    tenant: Tenant,
    by: User,
    proposal: Proposal,
    note: str,
    seen_release: int,
    figures: Figures = MappingProxyType({}),
) -> Release:
    """Make a release of what was collected. With a second person asked for, it has to be approved.

    Raises ReleaseConflict when another release is live than the person saw, Conflict when a draft is in another state
    than was approved; gates as for single rules.
    """
    proposal = _locked(proposal, Status.APPROVED, Status.OPEN)
    approved_by = proposal.decided_by if proposal.status == Status.APPROVED else None
    if not note.strip():
        raise Refused(_("Say in a sentence why this change is made."))
    places = live_places(tenant, seen_release)
    items = list(proposal.items.select_related("rule"))
    for item in items:
        draft = RuleDraft.objects.select_for_update().filter(rule=item.rule).first()
        if approved_by is not None and item.revision != (draft.revision if draft else 0):
            raise Conflict(_("%(code)s was changed since it was approved.") % {"code": item.rule.code})
    modes = {item.rule: item.mode for item in items}
    places = with_drafts(tenant, places, modes, by, note, approved_by, figures)
    if proposal.order:
        if tenant.second_person and approved_by is None:
            raise Refused(_("A second person has to approve another order."))
        rank = {pk: i for i, pk in enumerate(json.loads(proposal.order))}
        places = sorted(places, key=lambda place: rank.get(place.version.rule_id, len(rank)))
    codes = ", ".join(item.rule.code for item in items) or _("order")
    release = make_release(
        tenant, places, by=by, note=note, action="release.publish", label=codes, approved_by=approved_by
    )
    proposal.status, proposal.release = Status.PUBLISHED, release
    proposal.save()
    return release


def authors_of(proposal: Proposal) -> set[int | None]:
    """Who asked for it, and who wrote on the drafts in it since their rule's newest version."""
    found: set[int | None] = {proposal.by_id}
    for item in proposal.items.all():
        newest = RuleVersion.objects.filter(rule=item.rule).order_by("-number").first()
        writing = DraftRevision.objects.filter(rule=item.rule)
        if newest is not None:
            writing = writing.filter(created_at__gt=newest.created_at)
            if item.revision == 0:
                found.add(newest.by_id)
        found |= set(writing.values_list("by", flat=True))
    return found - {None}


def _open(tenant: Tenant, by: User) -> Proposal:
    Tenant.objects.select_for_update().get(pk=tenant.pk)
    found = Proposal.objects.filter(status=Status.OPEN).first()
    return found or Proposal.objects.create(tenant=tenant, by=by)


def _locked(proposal: Proposal, *wanted: Proposal.Status) -> Proposal:
    found = Proposal.objects.select_for_update().filter(pk=proposal.pk).first()
    if found is None or found.status not in wanted:
        raise Conflict(_("Somebody else has decided about this change meanwhile."))
    return found


def _require_something(rule: Rule) -> None:
    if not RuleDraft.objects.filter(rule=rule).exists() and not RuleVersion.objects.filter(rule=rule).exists():
        raise Refused(_("%(code)s has nothing to publish.") % {"code": rule.code})


def _decided(tenant: Tenant, by: User, proposal: Proposal, status: Proposal.Status, action: str, note: str) -> Proposal:
    proposal.status, proposal.decided_by, proposal.decision_note = status, by, note
    proposal.save()
    _record(tenant, by, action, proposal, note)
    return proposal


def _record(tenant: Tenant, by: User, action: str, proposal: Proposal, note: str = "") -> None:
    items = [f"{item.rule.code} {item.mode}" for item in proposal.items.select_related("rule")]
    record(
        tenant=tenant,
        by=by,
        action=action,
        object_type="proposal",
        object_id=proposal.pk,
        object_label=", ".join(items) or _("order"),
        after={"status": proposal.status, "items": items, "order": proposal.order},
        note=note,
    )
