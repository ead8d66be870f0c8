"""The tests that are kept with a rule, and the gates that it passes before it goes live."""

from __future__ import annotations

import json
from typing import Any, Literal

from django.http import Http404, HttpResponse
from django.utils.translation import gettext as _
from pydantic import BaseModel, Field

from eleanor_site.api_access import ApiRequest, KeyRouter, json_answer
from eleanor_site.api_problems import wrong
from eleanor_site.api_values import Id, Strict
from eleanor_site.tenants.models import KeyScope
from rules.api.live_types import ContextIn, Stage
from rules.api.loading import rule_of
from rules.models import Rule, RuleTest
from rules.queries.draft_states import state_of
from rules.queries.gates import gates
from rules.queries.points import PointName
from rules.queries.rule_tests import TestResult, run_tests
from rules.queries.rules import edited_set
from rules.services import rule_tests as services

router = KeyRouter(tags=["rules"])


class TestIn(Strict):
    """A stored point by its name, or a written context with its stage; and whether the rule should fire there."""

    should_fire: bool
    point: str | None = Field(default=None, max_length=60, examples=["17.1.4-final"])
    context: ContextIn | None = None
    stage: Stage = "final"
    note: str = Field(default="", max_length=200)


class TestOut(BaseModel):
    """A test with what the present state of the rule does there.

    `gone`: the point isn't there any more; `broken`: a rule of the set has an error, so nothing could be decided.
    """

    id: int
    should_fire: bool
    point: str | None
    context: dict[str, Any] | None
    stage: Stage
    note: str
    outcome: Literal["fires", "shadowed", "capped", "false", "gone", "broken"]
    passed: bool

    @classmethod
    def of(cls, result: TestResult) -> TestOut:
        test, version = result.test, result.test.chat_version
        point = PointName(version.chat_id, version.number, test.message or 0, test.stage) if version else None
        return cls(
            id=test.pk,
            should_fire=test.should_fire,
            point=str(point) if point else None,
            context=json.loads(test.context) if test.context else None,
            stage="round" if test.stage == "round" else "final",
            note=test.note,
            outcome=result.outcome,
            passed=result.passed,
        )


class TestList(BaseModel):
    items: list[TestOut]


class GateOut(BaseModel):
    """Something that is looked at before publishing. A `failed` one closes the way; an `open` one holds nobody back."""

    key: str
    state: Literal["passed", "failed", "open"]
    title: str
    sentence: str


class GateList(BaseModel):
    items: list[GateOut]


@router.operation("GET", "/rules/{code}/tests", KeyScope.RULES_READ, answers=TestList)
def list_tests(request: ApiRequest, code: str) -> TestList:
    """The tests of a rule, run on its draft, or on what is published."""
    return _tests(request, rule_of(code))


@router.operation("POST", "/rules/{code}/tests", KeyScope.RULES_WRITE, answers=TestList, status=201, idempotent=True)
def add_test(request: ApiRequest, code: str, body: TestIn) -> HttpResponse:
    """Keep a test. The same point again changes what is expected there."""
    rule = rule_of(code)
    if (body.point is None) == (body.context is None):
        raise wrong("point", "one_of", _("Give either a point or a context."))
    kept: dict[str, Any] = {"should_fire": body.should_fire, "note": body.note}
    if body.context is not None:
        services.add_context(
            tenant=request.tenant,
            rule=rule,
            by=request.person,
            context=json.dumps(body.context.model_dump(exclude_unset=True), ensure_ascii=False),
            stage=body.stage,
            **kept,
        )
    else:
        name = PointName.parse(body.point or "")
        version = name.find() if name else None
        if name is None or version is None:
            raise wrong("point", "unknown", _("This point isn't there any more."))
        services.add_point(
            tenant=request.tenant,
            rule=rule,
            by=request.person,
            version=version,
            message=name.message,
            stage=name.stage,
            **kept,
        )
    return json_answer(_tests(request, rule), status=201)


@router.operation("DELETE", "/rules/{code}/tests/{id}", KeyScope.RULES_WRITE, answers=None, status=204)
def remove_test(request: ApiRequest, code: str, id: Id) -> HttpResponse:
    """Forget a test."""
    rule = rule_of(code)
    test = RuleTest.objects.filter(rule=rule, pk=id).first()
    if test is None:
        raise Http404
    services.remove(tenant=request.tenant, rule=rule, by=request.person, test=test)
    return HttpResponse(status=204)


@router.operation("GET", "/rules/{code}/gates", KeyScope.RULES_READ, answers=GateList)
def list_gates(request: ApiRequest, code: str) -> GateList:
    """What has to be green before the rule's draft goes live."""
    found = gates(request.tenant, rule_of(code))
    return GateList(
        items=[GateOut(key=g.key, state=g.state, title=str(g.title), sentence=str(g.sentence)) for g in found]
    )


def _tests(request: ApiRequest, rule: Rule) -> TestList:
    state = state_of(rule)
    if state is None:
        raise Http404
    results = run_tests(request.tenant, rule, edited_set(request.tenant, rule.code, state.content))
    return TestList(items=[TestOut.of(result) for result in results])
