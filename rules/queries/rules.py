"""Reading rules: the order of evaluation, the drafts beside it, and rule sets for replays."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Prefetch

from eleanor_site.tenants.models import PromptLanguage, Tenant, User
from rules.domain.context import Stage
from rules.domain.rule_set import RuleSpec
from rules.models import Release, ReleaseEntry, Rule, RuleDraft, RuleVersion
from rules.models.rules import RuleContent


@dataclass(frozen=True)
class RuleRow:
    """A rule as the list shows it. `position` is None outside of the live release; `until` ends an observation."""

    rule: Rule
    position: int | None
    state: str
    version: RuleVersion | None
    draft: RuleDraft | None
    until: datetime | None = None

    @property
    def content(self) -> RuleVersion | RuleDraft:
        found = self.version or self.draft
        assert found is not None, "a rule has a version or a draft"
        return found

    @property
    def changed_at(self) -> datetime:
        """When somebody last changed it, published or not."""
        times = [self.version.created_at] if self.version else []
        return max([*times, self.draft.updated_at] if self.draft else times)

    @property
    def changed_by(self) -> User | None:
        last = self.draft or self.version
        return last.by if last else None


def live_number() -> int:
    """The number of the live release, 0 when there is none."""
    return Release.objects.filter(status=Release.Status.LIVE).values_list("number", flat=True).first() or 0


def live_entries() -> list[ReleaseEntry]:
    entries = ReleaseEntry.objects.filter(release__status=Release.Status.LIVE)
    return list(entries.select_related("version__rule", "version__by").order_by("position"))


def published_version(rule: Rule) -> RuleVersion | None:
    """What a new draft begins with: the version in the live release, else the newest one."""
    entry = ReleaseEntry.objects.filter(release__status=Release.Status.LIVE, version__rule=rule).first()
    return entry.version if entry else RuleVersion.objects.filter(rule=rule).order_by("-number").first()


def rule_rows(*, archived: bool = False) -> list[RuleRow]:
    """The live release in its order, then the rules that it doesn't hold, by code."""
    drafts = {d.rule_id: d for d in RuleDraft.objects.select_related("by")}
    rows = [
        RuleRow(e.version.rule, e.position, e.mode, e.version, drafts.get(e.version.rule_id), e.observe_until)
        for e in live_entries()
    ]
    held = {row.rule.pk for row in rows}
    newest = RuleVersion.objects.select_related("by").order_by("number")
    others = Rule.objects.exclude(pk__in=held).filter(archived_at__isnull=not archived).order_by("code")
    for rule in others.prefetch_related(Prefetch("versions", queryset=newest, to_attr="all_versions")):
        version = rule.all_versions[-1] if rule.all_versions else None
        state = "archived" if rule.archived_at else "draft"
        if version or rule.pk in drafts:
            rows.append(RuleRow(rule, None, state, version, drafts.get(rule.pk)))
    return rows


def rule_set(tenant: Tenant, *, drafts: bool, release: Release | None = None) -> list[RuleSpec]:
    """The rules of a replay, in order: the live release (or that one), with drafts put in their places if wanted.

    Observed rules are evaluated in their place but take no point from others, so they are left out here; a paused
    rule is left out as well.
    """
    if release is None:
        entries = live_entries()
    else:
        entries = list(release.entries.select_related("version__rule").order_by("position"))
    edited = {d.rule_id: d for d in RuleDraft.objects.select_related("rule")} if drafts else {}
    specs = []
    for entry in entries:
        draft = edited.pop(entry.version.rule_id, None)
        if entry.mode == ReleaseEntry.Mode.LIVE:
            specs.append(_spec(tenant, draft or entry.version, entry.version.rule.code, entry.version.number))
    for draft in sorted(edited.values(), key=lambda d: d.rule.code):
        if draft.rule.archived_at is None:
            specs.append(_spec(tenant, draft, draft.rule.code, draft.based_on))
    return specs


def edited_set(
    tenant: Tenant, code: str, content: RuleContent, *, position: int | None = None, version: int = 0
) -> list[RuleSpec]:
    """The live rules with this content in the place of the rule `code`; a new rule comes last, or at `position`.

    A rule that is live in another state (observed, paused) takes the place that it has in the release.
    """
    mine = _spec(tenant, content, code, version)
    specs = []
    placed = False
    for entry in live_entries():
        if entry.version.rule.code == code:
            specs.append(mine)
            placed = True
        elif entry.mode == ReleaseEntry.Mode.LIVE:
            specs.append(_spec(tenant, entry.version, entry.version.rule.code, entry.version.number))
    if position is not None:
        specs = [spec for spec in specs if spec is not mine]
        specs.insert(max(0, min(position - 1, len(specs))), mine)
    elif not placed:
        specs.append(mine)
    return specs


def stage_of(content: RuleContent) -> Stage:
    return "round" if content.stage == "round" else "final"


def _spec(tenant: Tenant, content: RuleContent, code: str, version: int) -> RuleSpec:
    french = tenant.prompt_language == PromptLanguage.FRENCH
    first, second = (content.prompt_fr, content.prompt_en) if french else (content.prompt_en, content.prompt_fr)
    return RuleSpec(
        code=code,
        stage=stage_of(content),
        max_nudges=content.max_nudges,
        expression=content.expression,
        prompt=first or second,
        version=version,
        draft=isinstance(content, RuleDraft),
    )
