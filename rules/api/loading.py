"""Loading what an address or a body names, in the key's tenant: 404 for an address, a path for a field."""

from __future__ import annotations

from typing import Annotated, Final

from django.http import Http404
from django.utils.translation import gettext as _
from pydantic import Field

from eleanor_site.api_problems import Problem, wrong
from rules.domain.language import check
from rules.domain.rule_set import BrokenRule
from rules.models import Release, Replay, Rule, RuleVersion
from rules.models.rules import RuleContent
from rules.queries import replays as replay_queries
from rules.queries.rules import stage_of
from rules.queries.segments import Scope

SCOPES: Final = "all, import:ID, search:ID, corpus:ID, or time:2026-01-01..2026-01-31 (one day may be left out)."
ScopeText = Annotated[str, Field(max_length=40, description=SCOPES, examples=["all", "search:3"])]


def scope_at(text: str, path: str = "scope") -> Scope:
    """The chats that are meant. Raises Problem."""
    try:
        found = Scope.parse(text)
    except ValueError:
        raise wrong(path, "scope", _("Write all, import:ID, search:ID, corpus:ID or time:DAY..DAY.")) from None
    if not found.exists():
        raise wrong(path, "unknown", _("There is nothing with this number."))
    return found


def release_of(number: int) -> Release:
    found = Release.objects.select_related("by", "approved_by").filter(number=number).first()
    if found is None:
        raise Http404
    return found


def rule_of(code: str) -> Rule:
    found = Rule.objects.filter(code=code).first() if "\x00" not in code else None
    if found is None:
        raise Http404
    return found


def rules_at(codes: list[str], path: str = "rules") -> list[Rule]:
    """The rules of these codes, each once. Raises Problem for a code that no rule has."""
    known = {rule.code: rule for rule in Rule.objects.filter(code__in=codes)}
    for n, code in enumerate(codes):
        if code not in known:
            raise wrong(f"{path}[{n}]", "unknown", _("There is no rule with this code."))
    return [known[code] for code in dict.fromkeys(codes)]


def version_of(rule: Rule, number: int) -> RuleVersion:
    found = RuleVersion.objects.select_related("by", "approved_by").filter(rule=rule, number=number).first()
    if found is None:
        raise Http404
    return found


def replay_of(pk: int) -> Replay:
    found = replay_queries.replays().filter(pk=pk).first()
    if found is None:
        raise Http404
    return found


def evaluable(content: RuleContent) -> bool:
    """Whether the expression has no error, so that points can be decided."""
    return bool(content.expression.strip()) and not check(content.expression, stage=stage_of(content)).errors


def broken(error: BrokenRule) -> Problem:
    """422: nothing can be decided while a rule of the set has an error."""
    return Problem("refused", _("The expression of %(code)s has an error. Mend it first.") % {"code": error.code})
