"""Writing rules: each rule has one draft on the server, saved as it is typed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from eleanor_site.audit.services import record
from eleanor_site.problems import Conflict, Refused
from eleanor_site.tenants.models import Tenant, User
from rules.domain.nudges import normal_form_hash
from rules.models import KnownPrompt, Rule, RuleDraft, RuleVersion
from rules.models.rules import CONTENT_FIELDS
from rules.queries.codes import code_problem


@dataclass
class DraftConflict(Conflict):
    """Somebody else saved the draft meanwhile: what they have, and what they started from."""

    theirs: RuleDraft

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
    remember_prompts(tenant, code, draft.prompt_en, draft.prompt_fr)
    _record(tenant, by, "rule.create", rule, after=content_of(draft), note=note)
    return rule


@transaction.atomic
def save_draft(*, tenant: Tenant, rule: Rule, by: User, revision: int, content: dict[str, Any]) -> RuleDraft:
    """Save the draft, which is made from the newest version when there is none.

    `revision` is the one that the person saw (0: there was no draft). Raises DraftConflict when somebody else saved
    since; nothing is overwritten then.
    """
    draft = RuleDraft.objects.select_for_update().filter(rule=rule).first()
    if draft is None:
        newest = newest_version(rule)
        draft = RuleDraft(tenant=tenant, rule=rule, revision=0, based_on=newest.number if newest else 0)
        for name, value in content_of(newest).items() if newest else ():
            setattr(draft, name, value)
    if draft.revision != revision:
        raise DraftConflict(draft)
    before = content_of(draft)
    after = {**before, **_only_content(content)}
    if after == before and draft.pk:
        return draft
    for name, value in after.items():
        setattr(draft, name, value)
    draft.revision += 1
    draft.by = by
    draft.save()
    remember_prompts(tenant, rule.code, draft.prompt_en, draft.prompt_fr)
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
    if not RuleVersion.objects.filter(rule=rule).exists():
        rule.delete()


@transaction.atomic
def archive(*, tenant: Tenant, rule: Rule, by: User) -> None:
    """Put a rule away. Refused while a live release holds it."""
    from rules.services.publishing import live_entry

    if live_entry(rule) is not None:
        raise Refused(_("%(code)s is part of the live release. Take it out there first.") % {"code": rule.code})
    rule.archived_at = timezone.now()
    rule.save(update_fields=["archived_at"])
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


def remember_prompts(tenant: Tenant, code: str, *prompts: str) -> None:
    """Keep every prompt that was ever saved, so that histories in which it stands are understood for good."""
    for prompt in prompts:
        if prompt.strip():
            KnownPrompt.objects.get_or_create(
                tenant=tenant, text_hash=normal_form_hash(prompt), defaults={"code": code}
            )


def _only_content(content: dict[str, Any]) -> dict[str, Any]:
    return {name: content[name] for name in CONTENT_FIELDS if name in content}


def _record(tenant: Tenant, by: User, action: str, rule: Rule, **rest: Any) -> None:
    record(tenant=tenant, by=by, action=action, object_type="rule", object_id=rule.pk, object_label=rule.code, **rest)
