"""The default rules, what each would do here, and installing them."""

from __future__ import annotations

from django.http import HttpResponse
from django.utils.translation import gettext as _
from pydantic import BaseModel, Field

from eleanor_site.api_access import ApiRequest, KeyRouter, json_answer
from eleanor_site.api_problems import wrong
from eleanor_site.api_values import Strict
from eleanor_site.tenants.models import KeyScope
from rules.api.effect_types import EffectNumbers
from rules.api.live_types import Code
from rules.api.rules import RuleContentOut
from rules.domain.catalogue import RuleText, default_rule_texts
from rules.models import Rule, RuleDraft
from rules.queries import effects
from rules.queries.rules import edited_set
from rules.services import catalogue
from rules.services.effects import prepare

router = KeyRouter(tags=["rules"])


class CatalogueRule(BaseModel):
    """A default rule. `effect` is what it would do added to what is live, where that was asked for."""

    code: str
    installed: bool
    content: RuleContentOut
    effect: EffectNumbers | None


class CatalogueList(BaseModel):
    items: list[CatalogueRule]


class InstallIn(Strict):
    codes: list[Code] = Field(min_length=1, max_length=100, examples=[["EAI-GOV-07"]])


class Installed(BaseModel):
    """The codes of the drafts that were made; rules that were there already are left as they are."""

    codes: list[str]


@router.operation("GET", "/rules/catalogue", KeyScope.RULES_READ, answers=CatalogueList)
def list_catalogue(request: ApiRequest, effect: bool = False) -> CatalogueList:
    """The default rules in their order; with `effect`, what each would do on the stored chats."""
    have = set(Rule.objects.values_list("code", flat=True))
    answers = {text.code: _effect(request, text) for text in default_rule_texts()} if effect else {}
    if any(answer.state == "preparing" for answer in answers.values()):
        prepare(request.tenant)
    return CatalogueList(
        items=[
            CatalogueRule(
                code=text.code,
                installed=text.code in have,
                content=RuleContentOut(**{name: getattr(text, name) for name in RuleContentOut.model_fields}),
                effect=EffectNumbers.of(answers[text.code]) if text.code in answers else None,
            )
            for text in default_rule_texts()
        ]
    )


@router.operation("POST", "/rules/catalogue", KeyScope.RULES_WRITE, answers=Installed, status=201, idempotent=True)
def install_rules(request: ApiRequest, body: InstallIn) -> HttpResponse:
    """Install default rules as drafts. Publishing them is a release like any other."""
    known = {text.code for text in default_rule_texts()}
    for n, code in enumerate(body.codes):
        if code not in known:
            raise wrong(f"codes[{n}]", "unknown", _("There is no rule with this code."))
    made = catalogue.install(tenant=request.tenant, by=request.person, codes=body.codes)
    return json_answer(Installed(codes=[rule.code for rule in made]), status=201)


def _effect(request: ApiRequest, text: RuleText) -> effects.EffectAnswer:
    content = RuleDraft(stage=text.stage, max_nudges=text.max_nudges, expression=text.expression)
    return effects.effect(request.tenant, edited_set(request.tenant, text.code, content), text.code, seconds=0.02)
