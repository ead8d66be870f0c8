"""What a state of a rule does to the stored points: numbers, sets of points, and why at one of them.

Texts of chats come only with a key that may read chats.
"""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

from django.http import Http404
from django.utils import timezone
from django.utils.translation import gettext as _
from ninja import Query
from pydantic import BaseModel, Field

from chats.domain.masking import masked
from eleanor_site.api_access import ApiRequest, KeyRouter
from eleanor_site.api_problems import Problem, wrong
from eleanor_site.api_values import Day, Number, Revision, Strict
from eleanor_site.tenants.models import KeyScope
from rules.api.effect_types import (
    ContextField,
    EffectNumbers,
    OrderEffect,
    PointPlace,
    Preparedness,
    RuleAtPoint,
)
from rules.api.live_types import Code, Stage
from rules.api.loading import SCOPES, ScopeText, broken, evaluable, rule_of, rules_at, scope_at
from rules.api.rules import DiagnosticOut
from rules.diagnostic_sentences import sentence
from rules.domain.language import check
from rules.domain.rule_set import BrokenRule, RuleSpec
from rules.models import Rule, RuleDraft
from rules.queries import effects
from rules.queries.draft_states import DraftState, state_of, version_state
from rules.queries.points import MarkedText, PointName, point_story
from rules.queries.rules import edited_set, rule_set, stage_of
from rules.services.effects import prepare

router = KeyRouter(tags=["effects"])

SetName = Literal["newly", "gone", "same", "fires", "near", "shadowed", "capped", "matches"]
DraftOf = Annotated[Revision | None, Query(description="A revision of the draft; what is being written without it.")]
VersionOf = Annotated[Number | None, Query(description="A published version instead of a draft.")]
ScopeOf = Annotated[str, Query(max_length=40, description=SCOPES, examples=["all", "search:3"])]


class Clause(BaseModel):
    """An atomic clause of the expression (a place in code points), and at how many points it alone is in the way."""

    number: int
    start: int
    end: int
    text: str
    missed: int
    matters: bool


class RuleEffect(BaseModel):
    """The effect of a state of a rule. `mistakes` are errors of its expression; there are no numbers then."""

    code: str
    revision: int
    version: int
    mistakes: list[DiagnosticOut]
    numbers: EffectNumbers | None
    near_misses: list[Clause] = Field(description="Only with `details`.")
    warnings: list[DiagnosticOut] = Field(description="What the stored points tell of the expression, with `details`.")


class TypedIn(Strict):
    """A rule as it is being written. `code` is that of a rule that it changes; a new rule comes last."""

    code: Code | None = None
    expression: str = Field(max_length=10_000)
    stage: Stage = "final"
    max_nudges: Annotated[int, Field(ge=0, le=32767)] = 1
    scope: ScopeText = "all"


class TypedEffect(BaseModel):
    mistakes: list[DiagnosticOut]
    numbers: EffectNumbers | None


class OrderTried(Strict):
    """Codes of live rules in the order that is tried; those that are left out come last."""

    order: list[Code] = Field(min_length=1, max_length=500)
    scope: ScopeText = "all"


class TextPiece(BaseModel):
    text: str
    marked: bool = Field(description="It made a part of the expression true.")


class ExcerptOut(BaseModel):
    field: str
    parts: list[TextPiece]


class EffectPoint(PointPlace):
    """A point of a set. `excerpt` is null for a key that may not read chats."""

    language: str
    recorded: str | None
    fired: str | None
    fired_before: str | None
    counterfactual: bool = Field(description="Another nudge came before in its turn: what followed isn't known.")
    excerpt: ExcerptOut | None


class EffectPoints(BaseModel):
    state: Preparedness
    items: list[EffectPoint]
    total: int
    exact: bool
    next: str | None


class PointWhy(BaseModel):
    """Why the rule came to what it did at a point: itself, and the rules that were asked before it.

    `context` and `texts` are empty for a key that may not read chats.
    """

    point: PointPlace
    fired: str | None
    recorded: str | None
    rule: RuleAtPoint | None
    before: list[RuleAtPoint]
    context: list[ContextField]
    texts: list[ExcerptOut]


class EffectDay(BaseModel):
    """Firings in chats that began on a day (UTC), with the change and as it is live."""

    day: date
    fires: int
    before: int


class EffectDays(BaseModel):
    """The days, none when no chat began on one of them, and the firings that they lack: of chats whose time isn't known
    (`undated`), and of those that began before or after. While not `exact`, ask again."""

    days: list[EffectDay]
    undated: int
    outside: int
    exact: bool


DAYS = 28
TRIED_CODE = "/"
"""Stands for a rule that has no code yet: no real code holds a slash."""


@router.operation("POST", "/rules/check/effect", KeyScope.RULES_READ, answers=TypedEffect)
def try_expression(request: ApiRequest, body: TypedIn) -> TypedEffect:
    """What a rule would do that is being written, saved or not. Ask again until the numbers are exact."""
    code = rules_at([body.code], "code")[0].code if body.code else TRIED_CODE
    content = RuleDraft(stage=body.stage, max_nudges=body.max_nudges, expression=body.expression)
    mistakes = _mistakes(content)
    if not evaluable(content):
        return TypedEffect(mistakes=mistakes, numbers=None)
    specs = edited_set(request.tenant, code, content)
    return TypedEffect(mistakes=mistakes, numbers=_numbers(request, specs, code, body.scope))


@router.operation("POST", "/rules/order/effect", KeyScope.RULES_READ, answers=OrderEffect)
def try_order(request: ApiRequest, body: OrderTried) -> OrderEffect:
    """What another order of the live rules would do."""
    scope = scope_at(body.scope)
    place = {rule.code: n for n, rule in enumerate(rules_at(body.order, "order"))}
    specs = sorted(rule_set(request.tenant, drafts=False), key=lambda spec: place.get(spec.code, len(place)))
    return OrderEffect.of(effects.order_effect(request.tenant, specs, scope=scope))


@router.operation("GET", "/rules/{code}/effect", KeyScope.RULES_READ, answers=RuleEffect)
def get_effect(
    request: ApiRequest,
    code: str,
    draft: DraftOf = None,
    version: VersionOf = None,
    scope: ScopeOf = "all",
    details: bool = False,
) -> RuleEffect:
    """What a saved state of a rule does instead of what is live. Ask again until the numbers are exact."""
    rule = rule_of(code)
    state = _state(rule, draft, version)
    found = RuleEffect(
        code=rule.code,
        revision=state.revision,
        version=state.version,
        mistakes=_mistakes(state.content),
        numbers=None,
        near_misses=[],
        warnings=[],
    )
    if not evaluable(state.content):
        return found
    specs = edited_set(request.tenant, rule.code, state.content)
    found.numbers = _numbers(request, specs, rule.code, scope)
    if details:
        chosen = scope_at(scope)
        clauses = effects.near_misses(request.tenant, specs, rule.code, scope=chosen)
        found.near_misses = [Clause(**{name: getattr(c, name) for name in Clause.model_fields}) for c in clauses]
        warnings = effects.corpus_warnings(request.tenant, specs, rule.code, scope=chosen)
        found.warnings = [DiagnosticOut.of(d, sentence(d)) for d in warnings]
    return found


@router.operation("GET", "/rules/{code}/effect/points", KeyScope.RULES_READ, answers=EffectPoints)
def list_effect_points(
    request: ApiRequest,
    code: str,
    set: SetName = "fires",
    draft: DraftOf = None,
    version: VersionOf = None,
    scope: ScopeOf = "all",
    clause: Annotated[int | None, Query(ge=0, le=10_000, description="Of near misses, those of one clause.")] = None,
    after: Annotated[str | None, Query(max_length=60, description="The `next` of the page before.")] = None,
) -> EffectPoints:
    """The points of a set, 25 a page, in the order of the columns."""
    rule, specs = _evaluated(request, code, draft, version)
    found = effects.point_page(
        request.tenant, specs, rule.code, set, scope=scope_at(scope), clause=clause, after=after or ""
    )
    texts = request.auth.allows(KeyScope.CHATS_READ)
    items = [
        EffectPoint(
            point=str(PointName(row.chat.pk, row.version.number, row.message, row.stage)),
            chat=row.chat.pk,
            version=row.version.number,
            message=row.message,
            stage="round" if row.stage == "round" else "final",
            turn=row.turn,
            language=row.language,
            recorded=row.recorded,
            fired=row.fired,
            fired_before=row.fired_before,
            counterfactual=row.counterfactual,
            excerpt=_excerpt(row.field, [(masked(part.text), part.marked) for part in row.parts]) if texts else None,
        )
        for row in found.rows
    ]
    return EffectPoints(
        state=found.state, items=items, total=found.total, exact=found.exact, next=found.next_after or None
    )


@router.operation("GET", "/rules/{code}/effect/points/{point}", KeyScope.RULES_READ, answers=PointWhy)
def explain_effect_point(
    request: ApiRequest, code: str, point: str, draft: DraftOf = None, version: VersionOf = None
) -> PointWhy:
    """Why the rule fires at a point, or doesn't. `point` is that of a list entry."""
    rule, specs = _evaluated(request, code, draft, version)
    name = PointName.parse(point)
    if name is None:
        raise Http404
    try:
        story = point_story(request.tenant, name, specs, rule.code)
    except BrokenRule as error:
        raise broken(error) from None
    if story is None:
        raise Http404
    texts = request.auth.allows(KeyScope.CHATS_READ)
    return PointWhy(
        point=PointPlace(
            point=str(name),
            chat=name.chat,
            version=name.version,
            message=name.message,
            stage=story.decision.point.stage,
            turn=story.decision.point.turn,
        ),
        fired=story.decision.fired,
        recorded=story.decision.recorded,
        rule=RuleAtPoint.of(story.mine, request.auth) if story.mine else None,
        before=[RuleAtPoint.of(one, request.auth) for one in story.before],
        context=[ContextField(**field) for field in story.fields] if texts else [],
        texts=[_marked(text) for text in story.texts] if texts else [],
    )


@router.operation("GET", "/rules/{code}/effect/days", KeyScope.RULES_READ, answers=EffectDays)
def get_effect_by_day(
    request: ApiRequest,
    code: str,
    draft: DraftOf = None,
    version: VersionOf = None,
    scope: ScopeOf = "all",
    until: Day | None = None,
) -> EffectDays:
    """Firings on each of 28 days, today's or `until` the last."""
    rule, specs = _evaluated(request, code, draft, version)
    last = until or timezone.now().date()
    if last.toordinal() <= DAYS:
        raise wrong("until", "out_of_range", _("There are no 28 days before this one."))
    found = effects.daily(request.tenant, specs, rule.code, until=last, days=DAYS, scope=scope_at(scope))
    return EffectDays(
        days=[EffectDay(day=day.date, fires=day.fires, before=day.before) for day in found.days],
        undated=found.undated,
        outside=found.outside,
        exact=found.exact,
    )


def _state(rule: Rule, draft: int | None, version: int | None) -> DraftState:
    found = state_of(rule, draft) if version is None else version_state(rule, version)
    if found is None:
        raise Http404
    return found


def _evaluated(request: ApiRequest, code: str, draft: int | None, version: int | None) -> tuple[Rule, list[RuleSpec]]:
    """The rule, and the live rules with this state of it in its place. Raises Problem for one with an error."""
    rule = rule_of(code)
    content = _state(rule, draft, version).content
    if not evaluable(content):
        raise Problem("refused", _("The expression of %(code)s has an error. Mend it first.") % {"code": rule.code})
    return rule, edited_set(request.tenant, rule.code, content)


def _numbers(request: ApiRequest, specs: list[RuleSpec], code: str, scope: str) -> EffectNumbers:
    answer = effects.effect(request.tenant, specs, code, scope=scope_at(scope))
    if answer.state == "preparing" or answer.corpus.missing:
        prepare(request.tenant)
    return EffectNumbers.of(answer)


def _mistakes(content: RuleDraft) -> list[DiagnosticOut]:
    found = check(content.expression, stage=stage_of(content)).errors
    return [DiagnosticOut.of(d, sentence(d)) for d in found]


def _excerpt(field: str, parts: list[tuple[str, bool]]) -> ExcerptOut:
    return ExcerptOut(field=field, parts=[TextPiece(text=text, marked=marked) for text, marked in parts])


def _marked(text: MarkedText) -> ExcerptOut:
    return _excerpt(text.field, text.parts)
