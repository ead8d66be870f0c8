"""Releases. Whatever changes what is live makes a new release, in one transaction, from the one that is live now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import MappingProxyType

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from eleanor_site.audit.services import record
from eleanor_site.problems import Conflict, Refused
from eleanor_site.tenants.models import Tenant, User
from rules.domain.language import check
from rules.models import Release, ReleaseEntry, Rule, RuleDraft, RuleVersion
from rules.queries.gates import blocking_gates, failed
from rules.services.drafts import content_of, newest_version, remember_prompts
from rules.signals import gate_failed
from rules.switching import Mode, NeedsApproval, Place, ReleaseConflict, live_places, live_release, make_release

__all__ = ["Mode", "NeedsApproval", "ReleaseConflict", "live_entry", "live_release", "publish_drafts", "roll_back"]


Figures = Mapping[int, tuple[int, int]]
"""By rule id: points of its stage, and how many of them it fires at."""


class GateClosed(Refused):
    """Something that has to be green before a rule goes live isn't."""


@dataclass
class VersionConflict(Conflict):
    """The draft was made from another version than the one that is live: `theirs`."""

    rule: Rule
    draft: RuleDraft
    theirs: RuleVersion

    def __str__(self) -> str:
        return _("%(code)s was published by somebody else since this draft was begun.") % {"code": self.rule.code}


def live_entry(rule: Rule) -> ReleaseEntry | None:
    return ReleaseEntry.objects.filter(release__status=Release.Status.LIVE, version__rule=rule).first()


@transaction.atomic
def publish_drafts(
    *,
    tenant: Tenant,
    rules: Sequence[Rule],
    by: User,
    note: str,
    seen_release: int,
    mode: str = Mode.LIVE,
    observe_until: datetime | None = None,
    figures: Figures = MappingProxyType({}),
) -> Release:
    """Make a version of each rule's draft and a release that holds them; new rules go to the end.

    `seen_release` is the number of the live release that the person decided on; `figures` are what the person saw the
    rules come to. An observed rule is never injected: it needs no approval, and its tests may fail.

    Raises ReleaseConflict when another release is live, VersionConflict when a draft was made from another version
    than the live one, Refused when a draft is missing, has no prompt, or its expression has an error, GateClosed when
    a test that is kept with a rule fails, NeedsApproval when the tenant asks for a second person.
    """
    places = with_drafts(
        tenant, live_places(tenant, seen_release), dict.fromkeys(rules, mode), by, note, figures=figures
    )
    if observe_until is not None:
        places = [replace(p, observe_until=observe_until) if p.mode == Mode.OBSERVE else p for p in places]
    return make_release(tenant, places, by=by, note=note, action="release.publish", label=_codes(rules))


def with_drafts(
    tenant: Tenant,
    places: Sequence[Place],
    modes: dict[Rule, str],
    by: User,
    note: str,
    approved_by: User | None = None,
    figures: Figures = MappingProxyType({}),
) -> list[Place]:
    """These places with a new version of each of the rules in it. Runs inside the transaction that publishes."""
    found = list(places)
    for rule, mode in modes.items():
        if mode == Mode.LIVE:
            _require_gates(tenant, rule)
        at = next((i for i, place in enumerate(found) if place.version.rule_id == rule.pk), None)
        version = _version_of_draft(
            tenant, rule, by, note, approved_by, figures.get(rule.pk), None if at is None else found[at].version
        )
        until = observe_end(tenant) if mode == Mode.OBSERVE else None
        new = Place(version, mode, until)
        if at is None:
            found.append(new)
        else:
            found[at] = new
    return found


def observe_end(tenant: Tenant) -> datetime:
    """When an observation that begins now ends."""
    return timezone.now() + timedelta(days=tenant.observe_days)


@transaction.atomic
def reorder(*, tenant: Tenant, order: Sequence[int], by: User, seen_release: int, note: str = "") -> Release:
    """The live rules in another order: `order` names the rules' ids; rules that it leaves out come last.

    Refused while the tenant asks for a second person: then the order is a proposal like any other change.
    """
    places = live_places(tenant, seen_release)
    moved = in_order(places, order)
    if moved == places:
        live = live_release()
        if live is None:
            raise Refused(_("There is no live release whose order could change."))
        return live
    if tenant.second_person:
        raise NeedsApproval(_("A second person has to approve another order. Add it to the open release."))
    return make_release(tenant, moved, by=by, note=note, action="release.reorder", label=_("order"))


def in_order(places: Sequence[Place], order: Sequence[int]) -> list[Place]:
    rank = {pk: i for i, pk in enumerate(order)}
    return sorted(places, key=lambda place: rank.get(place.version.rule_id, len(rank)))


@transaction.atomic
def set_mode(
    *,
    tenant: Tenant,
    rule: Rule,
    mode: str,
    by: User,
    seen_release: int,
    note: str = "",
    observe_until: datetime | None = None,
) -> Release:
    """Pause, resume or observe a rule of the live release. An observation ends after the tenant's number of days."""
    places = live_places(tenant, seen_release)
    if not any(place.version.rule_id == rule.pk for place in places):
        raise Refused(_("%(code)s is not part of the live release.") % {"code": rule.code})
    until = (observe_until or observe_end(tenant)) if mode == Mode.OBSERVE else None
    changed = [
        replace(place, mode=mode, observe_until=until) if place.version.rule_id == rule.pk else place
        for place in places
    ]
    return make_release(tenant, changed, by=by, note=note, action=f"rule.{mode}", label=rule.code)


@transaction.atomic
def take_out(*, tenant: Tenant, rule: Rule, by: User, seen_release: int, note: str = "") -> Release:
    """A release without this rule."""
    places = [place for place in live_places(tenant, seen_release) if place.version.rule_id != rule.pk]
    return make_release(tenant, places, by=by, note=note, action="release.take_out", label=rule.code)


@transaction.atomic
def roll_back(*, tenant: Tenant, to: Release, by: User, seen_release: int, note: str) -> Release:
    """A new release with the contents of an older one. Observations in it begin anew."""
    live_places(tenant, seen_release)
    places = [
        Place(e.version, e.mode, observe_end(tenant) if e.mode == Mode.OBSERVE else None)
        for e in to.entries.select_related("version__rule")
    ]
    return make_release(tenant, places, by=by, note=note, action="release.roll_back", label=str(to.number))


@transaction.atomic
def undo(*, tenant: Tenant, by: User, seen_release: int) -> Release:
    """What was live before the release `seen_release`, as a new release; observations end when they would have."""
    live_places(tenant, seen_release)
    live = live_release()
    before = Release.objects.filter(number=live.based_on).first() if live else None
    if live is None or before is None:
        raise Refused(_("There is no release before this one."))
    entries = before.entries.select_related("version__rule")
    places = [Place(e.version, e.mode, e.observe_until) for e in entries]
    note = _("Release %(n)s undone") % {"n": live.number}
    return make_release(tenant, places, by=by, note=note, action="release.roll_back", label=str(before.number))


@transaction.atomic
def roll_back_rule(*, tenant: Tenant, rule: Rule, to: RuleVersion, by: User, seen_release: int, note: str) -> Release:
    """One rule with the content of an older version, as a new version, in a new release. Its draft stays.

    Refused when the rule isn't part of the live release.
    """
    places = live_places(tenant, seen_release)
    if not any(place.version.rule_id == rule.pk for place in places):
        raise Refused(_("%(code)s is not part of the live release.") % {"code": rule.code})
    version = _new_version(tenant, rule, by, note, RuleVersion(**content_of(to)), approved_by=to.approved_by)
    changed = [replace(p, version=version) if p.version.rule_id == rule.pk else p for p in places]
    label = f"{rule.code} v{to.number}"
    return make_release(tenant, changed, by=by, note=note, action="rule.roll_back", label=label, content_of=to)


def _require_gates(tenant: Tenant, rule: Rule) -> None:
    closed = failed(blocking_gates(tenant, rule))
    if closed:
        gate_failed.send(sender=Rule, tenant=tenant, rule=rule, gates=closed)
        raise GateClosed(closed[0].sentence)


def _version_of_draft(
    tenant: Tenant,
    rule: Rule,
    by: User,
    note: str,
    approved_by: User | None,
    figures: tuple[int, int] | None,
    live: RuleVersion | None,
) -> RuleVersion:
    """A new version of the rule's draft; the newest version as it is when there is no draft."""
    draft = RuleDraft.objects.select_for_update().filter(rule=rule).first()
    if draft is None:
        newest = newest_version(rule)
        if newest is None:
            raise Refused(_("%(code)s has nothing to publish.") % {"code": rule.code})
        if approved_by is not None and newest.approved_by_id is None:
            newest.approved_by = approved_by
            newest.save(update_fields=["approved_by"])
        return newest
    if live is not None and live.number != draft.based_on:
        raise VersionConflict(rule, draft, live)
    if not (draft.prompt_en.strip() or draft.prompt_fr.strip()):
        raise Refused(_("%(code)s has no prompt: a nudge without words can't be sent.") % {"code": rule.code})
    if any(d.severity == "error" for d in check(draft.expression).diagnostics):
        raise Refused(_("The expression of %(code)s has an error.") % {"code": rule.code})
    version = _new_version(tenant, rule, by, note, draft, approved_by, figures)
    draft.delete()
    return version


def _new_version(
    tenant: Tenant,
    rule: Rule,
    by: User,
    note: str,
    content: RuleDraft | RuleVersion,
    approved_by: User | None,
    figures: tuple[int, int] | None = None,
) -> RuleVersion:
    newest = newest_version(rule)
    version = RuleVersion.objects.create(
        tenant=tenant,
        rule=rule,
        number=newest.number + 1 if newest else 1,
        note=note,
        by=by,
        approved_by=approved_by,
        points=figures[0] if figures else None,
        fires=figures[1] if figures else None,
        **content_of(content),
    )
    remember_prompts(tenant, rule.code, version.prompt_en, version.prompt_fr)
    record(
        tenant=tenant,
        by=by,
        action="rule.version",
        object_type="rule",
        object_id=rule.pk,
        object_label=rule.code,
        before=content_of(newest) if newest else None,
        after=content_of(version),
        note=note,
    )
    return version


def _codes(rules: Sequence[Rule]) -> str:
    return ", ".join(rule.code for rule in rules)
