"""What the overview shows: what needs somebody, and what the rules did lately."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.urls import reverse
from django.utils import formats, timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chats.models import Chat, ImportJob
from eleanor_site.jobs import Status
from eleanor_site.tenants.models import Role, Tenant, User
from rules.models import NudgeDay, Proposal, Release, ReleaseEntry, Replay, Rule, RuleDraft
from rules.queries.nudge_statistics import history_chart
from rules.queries.nudges import NudgeFilter
from rules.queries.reviews import quality_by_code
from rules.queries.rules import live_entries
from rules.queries.schedules import last_refusals, last_regressions

MOST_NOTES = 5
NAMED = 4
SILENT_DAYS = 30
EXPIRES_WITHIN = timedelta(days=3)
FAILED_WITHIN = timedelta(days=7)


@dataclass(frozen=True)
class Note:
    """One thing that needs attention: a sentence, the pages where it is dealt with, and how many more there are."""

    kind: str
    sentence: str
    links: list[tuple[str, str]] = field(default_factory=list)
    more: int = 0


def overview_of(tenant: Tenant, by: User, role: Role) -> dict[str, Any]:
    """Runs inside the tenant's scope."""
    notes = attention(tenant, by, role)
    anything = NudgeDay.objects.filter(count__gt=0).exists()
    return {
        "chat_count": Chat.objects.count(),
        "rule_count": Rule.objects.filter(archived_at__isnull=True).count(),
        "replay_count": Replay.objects.count(),
        "replays": Replay.objects.select_related("by").defer("manifest").order_by("-id")[:5],
        "notes": notes[:MOST_NOTES],
        "more_notes": len(notes) - MOST_NOTES,
        "chart": history_chart(tenant, NudgeFilter()) if anything else None,
    }


def attention(tenant: Tenant, by: User, role: Role, *, imports: bool = True) -> list[Note]:
    """What needs this person, the most urgent first; without `imports` for who may not know of them."""
    found = [
        _approvals(tenant, by, role),
        _failed(tenant, imports=imports),
        _regressed(tenant),
        _expiring(tenant),
        _imprecise(tenant),
        _drafts(tenant, by),
        _silent(tenant),
    ]
    return [note for note in found if note is not None]


def _approvals(tenant: Tenant, by: User, role: Role) -> Note | None:
    """One's own change is for somebody else to approve."""
    if not role.includes(Role.PUBLISHER):
        return None
    waiting = list(Proposal.objects.filter(status=Proposal.Status.REQUESTED).exclude(by=by).order_by("id"))
    if not waiting:
        return None
    sentence = ngettext("%(n)s change waits for approval.", "%(n)s changes wait for approval.", len(waiting))
    links = [(p.note[:60] or f"#{p.pk}", reverse("rules:proposal", args=[tenant.slug, p.pk])) for p in waiting]
    return _note("approval", sentence, links)


def _failed(tenant: Tenant, *, imports: bool) -> Note | None:
    since = timezone.now() - FAILED_WITHIN
    jobs = ImportJob.objects.filter(status=Status.FAILED, created_at__gte=since).order_by("-id") if imports else []
    replays = Replay.objects.filter(status=Replay.Status.INCOMPLETE, created_at__gte=since).order_by("-id")
    links = [(str(job), reverse("chats:import_job", args=[tenant.slug, job.pk])) for job in jobs]
    links += [
        (_("Replay %(name)s") % {"name": r}, reverse("rules:replay", args=[tenant.slug, r.pk]))
        for r in replays.defer("manifest")
    ]
    links += [
        (
            _("Schedule %(name)s") % {"name": run.schedule},
            reverse("rules:schedule", args=[tenant.slug, run.schedule_id]),
        )
        for run in last_refusals()
    ]
    if not links:
        return None
    sentence = ngettext(
        "%(n)s import or replay failed in the last seven days.",
        "%(n)s imports and replays failed in the last seven days.",
        len(links),
    )
    return _note("failed", sentence, links)


def _regressed(tenant: Tenant) -> Note | None:
    """Schedules whose last run differs from the baseline, until it is the same again or taken as the baseline."""
    links = [
        (str(run.schedule), reverse("rules:schedule", args=[tenant.slug, run.schedule_id]))
        for run in last_regressions()
    ]
    if not links:
        return None
    sentence = ngettext(
        "%(n)s scheduled replay differs from its baseline.",
        "%(n)s scheduled replays differ from their baselines.",
        len(links),
    )
    return _note("regressed", sentence, links)


def _expiring(tenant: Tenant) -> Note | None:
    soon = timezone.now() + EXPIRES_WITHIN
    entries = ReleaseEntry.objects.filter(
        release__status=Release.Status.LIVE, mode=ReleaseEntry.Mode.OBSERVE, observe_until__lte=soon
    ).select_related("version__rule")
    links = [
        (
            f"{e.version.rule.code} ({formats.date_format(timezone.localtime(e.observe_until), 'SHORT_DATE_FORMAT')})",
            reverse("rules:rule", args=[tenant.slug, e.version.rule.code]),
        )
        for e in entries
        if e.observe_until
    ]
    if not links:
        return None
    sentence = ngettext(
        "%(n)s observed rule goes back to a draft within three days.",
        "%(n)s observed rules go back to drafts within three days.",
        len(links),
    )
    return _note("observe", sentence, links)


def _imprecise(tenant: Tenant) -> Note | None:
    live = {entry.version.rule.code for entry in live_entries()}
    links = []
    for code, quality in sorted(quality_by_code().items()):
        share = quality.precision
        if code not in live or not share.is_enough or share.value is None:
            continue
        if share.value * 100 < tenant.precision_target:
            shown = _("%(code)s: %(percent)s %%, n = %(n)s")
            label = shown % {"code": code, "percent": round(share.value * 100), "n": share.n}
            links.append((label, reverse("rules:rule", args=[tenant.slug, code])))
    if not links:
        return None
    sentence = ngettext(
        "The precision of %(n)s rule is under the target of %(target)s %%.",
        "The precision of %(n)s rules is under the target of %(target)s %%.",
        len(links),
    )
    return _note("precision", sentence, links, target=tenant.precision_target)


def _drafts(tenant: Tenant, by: User) -> Note | None:
    drafts = RuleDraft.objects.filter(by=by, rule__archived_at__isnull=True).select_related("rule")
    links = [
        (d.rule.code, reverse("rules:edit", args=[tenant.slug, d.rule.code])) for d in drafts.order_by("-updated_at")
    ]
    if not links:
        return None
    return _note("draft", ngettext("You have %(n)s draft.", "You have %(n)s drafts.", len(links)), links)


def _silent(tenant: Tenant) -> Note | None:
    """Live rules without a nudge in thirty days. Nothing is said where no nudge at all is recorded in that time."""
    since = timezone.now() - timedelta(days=SILENT_DAYS)
    fired = NudgeDay.objects.filter(count__gt=0, day__gte=since.date().isoformat())
    heard = set(fired.order_by().values_list("code", flat=True).distinct())
    if not heard:
        return None
    silent = [
        entry.version.rule.code
        for entry in live_entries()
        if entry.mode == ReleaseEntry.Mode.LIVE
        and entry.version.rule.code not in heard
        and entry.version.rule.created_at < since
    ]
    if not silent:
        return None
    sentence = ngettext(
        "%(n)s live rule never fired in 30 days.", "%(n)s live rules never fired in 30 days.", len(silent)
    )
    return _note("silent", sentence, [(code, reverse("rules:rule", args=[tenant.slug, code])) for code in silent])


def _note(kind: str, sentence: str, links: list[tuple[str, str]], **values: Any) -> Note:
    return Note(kind, sentence % {"n": len(links), **values}, links[:NAMED], max(0, len(links) - NAMED))
