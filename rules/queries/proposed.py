"""The rules as a proposal, or a draft by itself, would leave them, and what they come to then."""

from __future__ import annotations

import json

from eleanor_site.tenants.models import Tenant
from rules.domain.language import check
from rules.domain.rule_set import RuleSpec
from rules.models import Proposal, ReleaseEntry, Rule, RuleDraft, RuleVersion
from rules.queries import effects
from rules.queries.rules import edited_set, rule_set

Figures = dict[int, tuple[int, int]]
"""By rule id: points of its stage, and how many of them it fires at."""


def proposed_rules(tenant: Tenant, proposal: Proposal) -> list[RuleSpec] | None:
    """The rules as they would be after publishing; None while one of the drafts has an error."""
    specs = rule_set(tenant, drafts=False)
    for item in proposal.items.select_related("rule"):
        content = RuleDraft.objects.filter(rule=item.rule).first() or (
            RuleVersion.objects.filter(rule=item.rule).order_by("-number").first()
        )
        if content is None or check(content.expression).errors:
            return None
        mine = next(spec for spec in edited_set(tenant, item.rule.code, content) if spec.code == item.rule.code)
        at = next((n for n, spec in enumerate(specs) if spec.code == mine.code), None)
        if item.mode != ReleaseEntry.Mode.LIVE:
            specs = [spec for spec in specs if spec.code != mine.code]
        elif at is None:
            specs.append(mine)
        else:
            specs[at] = mine
    if proposal.order:
        rank = {pk: n for n, pk in enumerate(json.loads(proposal.order))}
        ids = dict(Rule.objects.filter(code__in=[s.code for s in specs]).values_list("code", "pk"))
        specs.sort(key=lambda spec: rank.get(ids.get(spec.code, -1), len(rank)))
    return specs


def proposed_figures(tenant: Tenant, proposal: Proposal) -> Figures:
    """What each rule of it comes to with all of it in place, as far as that is known exactly."""
    specs = proposed_rules(tenant, proposal) or []
    known = {spec.code for spec in specs}
    figures: Figures = {}
    for item in proposal.items.select_related("rule"):
        if item.rule.code in known:
            figures |= _figures(item.rule, effects.effect(tenant, specs, item.rule.code))
    return figures


def figures_of_draft(tenant: Tenant, rule: Rule) -> Figures:
    """What the rule's draft comes to now, as far as that is known exactly."""
    answer = effect_of_content(tenant, rule, RuleDraft.objects.filter(rule=rule).first())
    return _figures(rule, answer) if answer else {}


def effect_of_content(
    tenant: Tenant, rule: Rule, content: RuleDraft | RuleVersion | None
) -> effects.EffectAnswer | None:
    """What the rule would do with this content; None where there is none, and while its expression has an error."""
    if content is None or not content.expression.strip() or check(content.expression).errors:
        return None
    return effects.effect(tenant, edited_set(tenant, rule.code, content), rule.code)


def proposal_order(proposal: Proposal) -> list[str]:
    """The codes of the order that is proposed; empty when the order stays."""
    order = json.loads(proposal.order) if proposal.order else []
    codes = dict(Rule.objects.filter(pk__in=order).values_list("pk", "code"))
    return [codes[pk] for pk in order if pk in codes]


def _figures(rule: Rule, answer: effects.EffectAnswer) -> Figures:
    if answer.effect is None or not answer.effect.exact:
        return {}
    return {rule.pk: (answer.effect.points, answer.effect.fires)}
