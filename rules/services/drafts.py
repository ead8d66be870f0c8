"""Writing rules: each rule has one draft on the server, saved as it is typed."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _

from eleanor_site.audit.services import record
from eleanor_site.problems import Conflict, Refused
from eleanor_site.tenants.models import Tenant, User
from rules.domain.nudges import normal_form_hash
from rules.models import DraftRevision, KnownPrompt, Proposal, ProposalItem, Rule, RuleDraft, RuleVersion
from rules.models.rules import CONTENT_FIELDS
from rules.queries.codes import code_problem
from rules.queries.rules import published_version

KEPT_REVISIONS = 300
# A person who comes back to a draft after this long begins a new piece of work in the change log.
_SITTING = timedelta(minutes=30)


@dataclass
class DraftConflict(Conflict):
    """Somebody else saved the draft meanwhile: what they have, and what both sides began with."""

    theirs: RuleDraft
    base: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return _("Somebody else changed this draft meanwhile.")


@transaction.atomic
def create_rule(*, tenant: Tenant, by: User, code: str, content: dict[str, Any], note: str = "") -> Rule:
    """A new rule with a draft. Refused when the code doesn't fit or is taken."""
    problem = code_problem(code)
    if problem:
        raise Refused(problem)
    try:
        with transaction.atomic():
            rule = Rule.objects.create(tenant=tenant, code=code)
    except IntegrityError as error:
        raise Refused(_("There is a rule with the code %(code)s already.") % {"code": code}) from error
    draft = RuleDraft.objects.create(tenant=tenant, rule=rule, by=by, **_only_content(content))
    _keep_revision(draft)
    remember_prompts(tenant, code, draft.prompt_en, draft.prompt_fr)
    _record(tenant, by, "rule.create", rule, after=content_of(draft), note=note)
    return rule


@transaction.atomic
def save_draft(
    *,
    tenant: Tenant,
    rule: Rule,
    by: User,
    revision: int,
    content: dict[str, Any],
    by_itself: bool = False,
    based_on: int | None = None,
) -> RuleDraft:
    """Save the draft, which is made from the newest version when there is none.

    `revision` is the one that the person saw (0: there was no draft). `by_itself` is true for a save that the page
    makes while somebody types: of a row of those by one person only the first goes to the change log, and prompts that
    are half written are not remembered. `based_on` is given when somebody has looked at another version than the draft
    began with, and made one of both. Raises DraftConflict when other words were saved since, and overwrites nothing.
    A change takes back the approval of a proposal that the rule is part of.
    """
    draft = RuleDraft.objects.select_for_update().filter(rule=rule).first()
    seen = draft.revision if draft else 0
    if draft is None:
        draft = _new_draft(tenant, rule)
    before = content_of(draft)
    after = {**before, **_only_content(content)}
    # The same words, as when a press of Save overtakes the page's own save, are no conflict.
    if seen != revision and not (draft.pk and after == before):
        raise DraftConflict(draft, base_of(rule, revision))
    if not by_itself:
        remember_prompts(tenant, rule.code, str(after["prompt_en"]), str(after["prompt_fr"]))
    if based_on is not None and draft.pk:
        draft.based_on = based_on
        RuleDraft.objects.filter(pk=draft.pk).update(based_on=based_on)
    if after == before and draft.pk:
        return draft
    begins = draft.pk is None or draft.by_id != by.pk or draft.updated_at < timezone.now() - _SITTING
    for name, value in after.items():
        setattr(draft, name, value)
    draft.revision += 1
    draft.by = by
    draft.save()
    _keep_revision(draft)
    take_back_approval(rule)
    if begins or not by_itself:
        changed = [name for name in after if after[name] != before[name]]
        _record(
            tenant,
            by,
            "rule.draft",
            rule,
            before={name: before[name] for name in changed},
            after={name: after[name] for name in changed},
        )
    return draft


@transaction.atomic
def discard_draft(*, tenant: Tenant, rule: Rule, by: User) -> None:
    """Throw the draft away; a rule that was never published disappears with it."""
    draft = RuleDraft.objects.select_for_update().filter(rule=rule).first()
    if draft is None:
        return
    _record(tenant, by, "rule.discard", rule, before=content_of(draft))
    draft.delete()
    take_back_approval(rule)
    if not RuleVersion.objects.filter(rule=rule).exists():
        rule.delete()


@transaction.atomic
def restore_revision(*, tenant: Tenant, rule: Rule, by: User, number: int, revision: int) -> RuleDraft:
    """Make a kept state of the draft the draft again, as a new revision. Refused when that state is forgotten."""
    content = base_of(rule, number)
    if not content:
        raise Refused(_("This state of the draft isn't kept any more."))
    return save_draft(tenant=tenant, rule=rule, by=by, revision=revision, content=content)


@transaction.atomic
def archive(*, tenant: Tenant, rule: Rule, by: User) -> None:
    """Put a rule away. Refused while a live release holds it."""
    from rules.services.publishing import live_entry

    if live_entry(rule) is not None:
        raise Refused(_("%(code)s is part of the live release. Take it out there first.") % {"code": rule.code})
    rule.archived_at = timezone.now()
    rule.save(update_fields=["archived_at"])
    ProposalItem.objects.filter(rule=rule, proposal__status=Proposal.Status.OPEN).delete()
    _record(tenant, by, "rule.archive", rule)


@transaction.atomic
def restore(*, tenant: Tenant, rule: Rule, by: User) -> None:
    rule.archived_at = None
    rule.save(update_fields=["archived_at"])
    _record(tenant, by, "rule.restore", rule)


def content_of(row: RuleDraft | RuleVersion) -> dict[str, Any]:
    return {name: getattr(row, name) for name in CONTENT_FIELDS}


def newest_version(rule: Rule) -> RuleVersion | None:
    return RuleVersion.objects.filter(rule=rule).order_by("-number").first()


def base_of(rule: Rule, revision: int) -> dict[str, Any]:
    """The content of that revision; for 0 what is published, which a draft begins with. Empty if unknown."""
    if revision == 0:
        newest = published_version(rule)
        return content_of(newest) if newest else {}
    kept = DraftRevision.objects.filter(rule=rule, number=revision).first()
    return dict(json.loads(kept.content)) if kept else {}


def remember_prompts(tenant: Tenant, code: str, *prompts: str) -> None:
    """Keep every prompt that was ever saved, so that histories in which it stands are understood for good."""
    for prompt in prompts:
        if prompt.strip():
            KnownPrompt.objects.get_or_create(
                tenant=tenant, text_hash=normal_form_hash(prompt), defaults={"code": code}
            )


def take_back_approval(rule: Rule) -> None:
    """An edit after approval was asked for or given: what was looked at is no longer what would be published."""
    waiting = Proposal.objects.filter(status__in=(Proposal.Status.REQUESTED, Proposal.Status.APPROVED))
    waiting.filter(pk__in=ProposalItem.objects.filter(rule=rule).values("proposal")).update(
        status=Proposal.Status.WITHDRAWN, decision_note="", decided_by=None, updated_at=timezone.now()
    )


def _new_draft(tenant: Tenant, rule: Rule) -> RuleDraft:
    """An unsaved draft of what is published. Revisions of a rule go on where the draft before it ended."""
    newest = published_version(rule)
    last = DraftRevision.objects.filter(rule=rule).aggregate(last=Max("number"))["last"] or 0
    content = content_of(newest) if newest else {}
    return RuleDraft(tenant=tenant, rule=rule, revision=last, based_on=newest.number if newest else 0, **content)


def _keep_revision(draft: RuleDraft) -> None:
    DraftRevision.objects.create(
        tenant=draft.tenant,
        rule=draft.rule,
        number=draft.revision,
        content=json.dumps(content_of(draft), ensure_ascii=False),
        by=draft.by,
    )
    DraftRevision.objects.filter(rule=draft.rule, number__lte=draft.revision - KEPT_REVISIONS).delete()


def _only_content(content: dict[str, Any]) -> dict[str, Any]:
    return {name: content[name] for name in CONTENT_FIELDS if name in content}


def _record(tenant: Tenant, by: User, action: str, rule: Rule, **rest: Any) -> None:
    record(tenant=tenant, by=by, action=action, object_type="rule", object_id=rule.pk, object_label=rule.code, **rest)
