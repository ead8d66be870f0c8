"""Switching what is live: one release after the other, each made in one transaction (product.md section 6).

Services make releases from here, and so does the task that ends observations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _
from django_scopes import scope, scopes_disabled

from eleanor_site.audit.services import record
from eleanor_site.problems import Conflict, Refused
from eleanor_site.tenants.models import Tenant, User
from rules.models import DraftRevision, Release, ReleaseEntry, RuleDraft, RuleVersion
from rules.models.rules import CONTENT_FIELDS
from rules.signals import release_published

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


class NeedsApproval(Refused):
    """The tenant asks for a second person, and nobody has approved what would go live."""


def live_release() -> Release | None:
    return Release.objects.filter(status=Release.Status.LIVE).first()


def live_places(tenant: Tenant, seen_release: int) -> list[Place]:
    """The live release's entries, with the tenant's row locked so that releases are made one after the other.

    Raises ReleaseConflict when another release is live than the one that the person saw.
    """
    Tenant.objects.select_for_update().get(pk=tenant.pk)
    live = live_release()
    if (live.number if live else 0) != seen_release:
        raise ReleaseConflict(live)
    if live is None:
        return []
    return [Place(e.version, e.mode, e.observe_until) for e in live.entries.select_related("version__rule")]


def make_release(
    tenant: Tenant,
    places: Sequence[Place],
    *,
    by: User | None,
    note: str,
    action: str,
    label: str,
    approved_by: User | None = None,
    content_of: RuleVersion | None = None,
) -> Release:
    """Make these places the live release. Runs under the lock of `live_places`.

    Raises NeedsApproval when the tenant asks for a second person and a version would go live that nobody approved and
    that was never live before. `content_of` is an older version whose content a new one among the places has again.
    """
    if tenant.second_person:
        _require_approval(places, content_of)
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
        approved_by=approved_by,
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
    release_published.send(sender=Release, tenant=tenant, release=release)
    return release


def _require_approval(places: Sequence[Place], restored: RuleVersion | None) -> None:
    live = {place.version.pk: place.version for place in places if place.mode == Mode.LIVE}
    unapproved = {pk: version for pk, version in live.items() if version.approved_by_id is None}
    wanted = {*unapproved, restored.pk} if restored else set(unapproved)
    entries = ReleaseEntry.objects.filter(version__in=wanted, mode=Mode.LIVE)
    were_live = set(entries.values_list("version", flat=True))
    restored_rule = restored.rule_id if restored and restored.pk in were_live else None
    unseen = [v for pk, v in unapproved.items() if pk not in were_live and v.rule_id != restored_rule]
    if unseen:
        codes = ", ".join(version.rule.code for version in unseen)
        raise NeedsApproval(_("A second person has to approve %(codes)s first.") % {"codes": codes})


def _summary(release: Release) -> dict[str, Any]:
    entries = release.entries.select_related("version__rule")
    return {
        "release": release.number,
        "rules": [f"{e.position}. {e.version.rule.code} v{e.version.number} {e.mode}" for e in entries],
    }


def end_observations(now: datetime | None = None) -> int:
    """Return rules whose observation has run out to draft, in every tenant; how many there were.

    An observed rule never went live by itself and doesn't now: the release goes on without it.
    """
    at = now or timezone.now()
    with scopes_disabled():
        due = ReleaseEntry.objects.filter(release__status=Release.Status.LIVE, mode=Mode.OBSERVE, observe_until__lte=at)
        tenants = list(Tenant.objects.filter(pk__in=due.values("tenant")))
    ended = 0
    for tenant in tenants:
        with scope(tenant=tenant):
            ended += _end_observations_of(tenant, at)
    return ended


@transaction.atomic
def _end_observations_of(tenant: Tenant, at: datetime) -> int:
    Tenant.objects.select_for_update().get(pk=tenant.pk)
    live = live_release()
    places = live_places(tenant, live.number) if live else []
    over = [p for p in places if p.mode == Mode.OBSERVE and p.observe_until is not None and p.observe_until <= at]
    if not over:
        return 0
    make_release(
        tenant,
        [place for place in places if place not in over],
        by=None,
        note=_("The time of observation is over."),
        action="rule.observe_end",
        label=", ".join(place.version.rule.code for place in over),
    )
    for place in over:
        draft_again(tenant, place.version)
    return len(over)


def draft_again(tenant: Tenant, version: RuleVersion) -> None:
    """Give the rule a draft with this version's content, unless somebody is writing one already."""
    if RuleDraft.objects.filter(rule=version.rule).exists():
        return
    last = DraftRevision.objects.filter(rule=version.rule).aggregate(last=Max("number"))["last"] or 0
    content = {name: getattr(version, name) for name in CONTENT_FIELDS}
    RuleDraft.objects.create(
        tenant=tenant, rule=version.rule, revision=last + 1, based_on=version.number, by=version.by, **content
    )
