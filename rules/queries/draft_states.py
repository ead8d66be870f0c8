"""States of a rule that an address can name: a revision of its draft, or what is published."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from rules.models import DraftRevision, Rule, RuleDraft, RuleVersion
from rules.models.rules import CONTENT_FIELDS
from rules.queries.rules import published_version


@dataclass(frozen=True)
class DraftState:
    """The content of a rule at one time. `revision` is 0 for a published version; `content` is never saved.

    `version` is the number of a version that an address names, 0 where it names none.
    """

    content: RuleDraft
    revision: int
    newest: bool
    version: int = 0


def state_of(rule: Rule, revision: int | None = None) -> DraftState | None:
    """That revision of the draft, or the present state. None when that revision is forgotten or never was."""
    draft = RuleDraft.objects.filter(rule=rule).first()
    current = draft.revision if draft else 0
    if revision is None or revision == current:
        found = draft or published_version(rule)
        return None if found is None else DraftState(_copied(rule, values_of(found)), current, True)
    if revision == 0:
        version = published_version(rule)
        return None if version is None else DraftState(_copied(rule, values_of(version)), 0, False)
    kept = DraftRevision.objects.filter(rule=rule, number=revision).first()
    return None if kept is None else DraftState(_copied(rule, json.loads(kept.content)), revision, False)


def version_state(rule: Rule, number: int) -> DraftState | None:
    """That version of the rule; None when there is none."""
    version = RuleVersion.objects.filter(rule=rule, number=number).first()
    return None if version is None else DraftState(_copied(rule, values_of(version)), 0, False, number)


def values_of(row: RuleDraft | RuleVersion) -> dict[str, Any]:
    return {name: getattr(row, name) for name in CONTENT_FIELDS}


def _copied(rule: Rule, values: dict[str, Any]) -> RuleDraft:
    """A draft that stands for this content and is never written back."""
    return RuleDraft(tenant=rule.tenant, rule=rule, **{name: values[name] for name in CONTENT_FIELDS})
