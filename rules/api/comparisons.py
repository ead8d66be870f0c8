"""Two versions of a rule, in words and in what they do."""

from __future__ import annotations

from typing import Annotated

from django.utils.translation import gettext as _
from ninja import Query
from pydantic import BaseModel

from eleanor_site.api_access import ApiRequest, KeyRouter
from eleanor_site.api_problems import wrong
from eleanor_site.api_values import Number
from eleanor_site.tenants.models import KeyScope
from rules.api.effect_types import EffectNumbers
from rules.api.loading import rule_of
from rules.api.rules import VersionOut
from rules.models import Rule, RuleVersion
from rules.models.rules import CONTENT_FIELDS
from rules.queries.proposed import effect_of_content

router = KeyRouter(tags=["rules"])


class ComparedVersion(BaseModel):
    """A version, and what it does in the live release; null while its expression has an error."""

    version: VersionOut
    effect: EffectNumbers | None


class VersionComparison(BaseModel):
    """`changed` names the fields that differ."""

    changed: list[str]
    a: ComparedVersion
    b: ComparedVersion


@router.operation("GET", "/rules/{code}/comparison", KeyScope.RULES_READ, answers=VersionComparison)
def compare_versions(
    request: ApiRequest, code: str, a: Annotated[Number, Query()], b: Annotated[Number, Query()]
) -> VersionComparison:
    """Two versions, each against the live release."""
    rule = rule_of(code)
    old, new = _version(rule, "a", a), _version(rule, "b", b)
    return VersionComparison(
        changed=[name for name in CONTENT_FIELDS if getattr(old, name) != getattr(new, name)],
        a=_compared(request, rule, old),
        b=_compared(request, rule, new),
    )


def _version(rule: Rule, path: str, number: int) -> RuleVersion:
    versions = RuleVersion.objects.select_related("by", "approved_by")
    found = versions.filter(rule=rule, number=number).first()
    if found is None:
        raise wrong(path, "unknown", _("There is nothing with this number."))
    return found


def _compared(request: ApiRequest, rule: Rule, version: RuleVersion) -> ComparedVersion:
    answer = effect_of_content(request.tenant, rule, version)
    return ComparedVersion(version=VersionOut.of(version), effect=EffectNumbers.of(answer) if answer else None)
