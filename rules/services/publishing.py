"""Releases. Whatever changes what is live makes a new release, in one transaction, from the one that is live now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _

from eleanor_site.audit.services import record
from eleanor_site.problems import Conflict, Refused
from eleanor_site.tenants.models import Tenant, User
from rules.domain.language import check
from rules.models import Release, ReleaseEntry, Rule, RuleDraft, RuleVersion
from rules.services.drafts import content_of, newest_version

Mode = ReleaseEntry.Mode


@dataclass(frozen=True)
class Place:
    """One entry of a release that is being made."""

    version: RuleVersion
    mode: str
    observe_until: datetime | None = None


@dataclass
class ReleaseConflict(Conflict):
    """Somebody published since the person looked."""

    live: Release | None

    def __str__(self) -> str:
        return _("Somebody else published a release meanwhile.")


def live_release() -> Release | None:
    return Release.objects.filter(status=Release.Status.LIVE).first()


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
) -> Release:
    """Make a version of each rule's draft and a release that holds them; new rules go to the end.

    `seen_release` is the number of the live release that the person decided on. Raises ReleaseConflict when another
    one is live, Refused when a draft is missing, has no prompt, or its expression has an error.
    """
    places = _places(tenant, seen_release)
    for rule in rules:
        version = _version_of_draft(tenant, rule, by, note)
        new = Place(version, mode, observe_until)
        at = next((i for i, place in enumerate(places) if place.version.rule_id == rule.pk), None)
        if at is None:
            places.append(new)
        else:
            places[at] = new
    return _release(tenant, places, by=by, note=note, action="release.publish", label=_codes(rules))


@transaction.atomic
def reorder(*, tenant: Tenant, order: Sequence[int], by: User, seen_release: int, note: str = "") -> Release:
    """The live rules in another order: `order` names the rules' ids; rules that it leaves out come last."""
    places = _places(tenant, seen_release)
    rank = {pk: i for i, pk in enumerate(order)}
    moved = sorted(places, key=lambda place: rank.get(place.version.rule_id, len(rank)))
    if moved == places:
        live = live_release()
        if live is None:
            raise Refused(_("There is no live release whose order could change."))
        return live
    return _release(tenant, moved, by=by, note=note, action="release.reorder", label=_("order"))


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
    """Pause, resume or observe a rule of the live release."""
    places = _places(tenant, seen_release)
    if not any(place.version.rule_id == rule.pk for place in places):
        raise Refused(_("%(code)s is not part of the live release.") % {"code": rule.code})
    until = observe_until if mode == Mode.OBSERVE else None
    changed = [
        replace(place, mode=mode, observe_until=until) if place.version.rule_id == rule.pk else place
        for place in places
    ]
    return _release(tenant, changed, by=by, note=note, action=f"rule.{mode}", label=rule.code)


@transaction.atomic
def take_out(*, tenant: Tenant, rule: Rule, by: User, seen_release: int, note: str = "") -> Release:
    """A release without this rule."""
    places = [place for place in _places(tenant, seen_release) if place.version.rule_id != rule.pk]
    return _release(tenant, places, by=by, note=note, action="release.take_out", label=rule.code)


@transaction.atomic
def roll_back(*, tenant: Tenant, to: Release, by: User, seen_release: int, note: str) -> Release:
    """A new release with the contents of an older one."""
    _places(tenant, seen_release)
    places = [Place(e.version, e.mode, e.observe_until) for e in to.entries.select_related("version")]
    return _release(tenant, places, by=by, note=note, action="release.roll_back", label=str(to.number))


def _places(tenant: Tenant, seen_release: int) -> list[Place]:
    """The live release's entries, with the tenant's row locked so that releases are made one after the other."""
    Tenant.objects.select_for_update().get(pk=tenant.pk)
    live = live_release()
    if (live.number if live else 0) != seen_release:
        raise ReleaseConflict(live)
    if live is None:
        return []
    return [Place(e.version, e.mode, e.observe_until) for e in live.entries.select_related("version__rule")]


def _version_of_draft(tenant: Tenant, rule: Rule, by: User, note: str) -> RuleVersion:
    draft = RuleDraft.objects.select_for_update().filter(rule=rule).first()
    if draft is None:
        newest = newest_version(rule)
        if newest is None:
            raise Refused(_("%(code)s has nothing to publish.") % {"code": rule.code})
        return newest
    if not (draft.prompt_en.strip() or draft.prompt_fr.strip()):
        raise Refused(_("%(code)s has no prompt: a nudge without words can't be sent.") % {"code": rule.code})
    if any(d.severity == "error" for d in check(draft.expression).diagnostics):
        raise Refused(_("The expression of %(code)s has an error.") % {"code": rule.code})
    newest = newest_version(rule)
    version = RuleVersion.objects.create(
        tenant=tenant,
        rule=rule,
        number=newest.number + 1 if newest else 1,
        note=note,
        by=by,
        **content_of(draft),
    )
    draft.delete()
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


def _release(tenant: Tenant, places: Sequence[Place], *, by: User, note: str, action: str, label: str) -> Release:
    live = live_release()
    last = Release.objects.aggregate(last=Max("number"))["last"] or 0
    before = _summary(live) if live else None
    Release.objects.filter(status=Release.Status.LIVE).update(status=Release.Status.SUPERSEDED)
    release = Release.objects.create(
        tenant=tenant,
        number=last + 1,
        status=Release.Status.LIVE,
        note=note,
        based_on=live.number if live else 0,
        by=by,
        published_at=timezone.now(),
    )
    ReleaseEntry.objects.bulk_create(
        ReleaseEntry(
            tenant=tenant,
            release=release,
            position=position,
            version=place.version,
            mode=place.mode,
            observe_until=place.observe_until,
        )
        for position, place in enumerate(places, start=1)
    )
    record(
        tenant=tenant,
        by=by,
        action=action,
        object_type="release",
        object_id=release.number,
        object_label=f"{release.number}: {label}",
        before=before,
        after=_summary(release),
        note=note,
    )
    return release


def _summary(release: Release) -> dict[str, Any]:
    entries = release.entries.select_related("version__rule")
    return {
        "release": release.number,
        "rules": [f"{e.position}. {e.version.rule.code} v{e.version.number} {e.mode}" for e in entries],
    }


def _codes(rules: Sequence[Rule]) -> str:
    return ", ".join(rule.code for rule in rules)
