"""Tests that are kept with a rule: what they look at, when they are red, and the command that runs them all."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django_scopes import scope

from chats.models import ChatVersion
from eleanor_site.problems import Refused
from eleanor_site.tenants.models import Tenant
from rules.models import Rule, RuleDraft, RuleTest
from rules.queries.rule_tests import context_problem, run_tests
from rules.queries.rules import edited_set
from rules.services import drafts, rule_tests
from tests.factories import ALWAYS, make_chat, make_rule, publish, some_author

NEVER = "ctx.tool_calls_total > 99"
NUDGE = {"role": "user", "content": "Go on, says ACME-01."}


def outcomes(tenant: Tenant, rule: Rule) -> list[tuple[str, bool]]:
    draft = RuleDraft.objects.get(rule=rule)
    return [(r.outcome, r.passed) for r in run_tests(tenant, rule, edited_set(tenant, rule.code, draft))]


def keep(tenant: Tenant, rule: Rule, *, should_fire: bool = True, message: int = 1, stage: str = "final") -> RuleTest:
    return rule_tests.add_point(
        tenant=tenant,
        rule=rule,
        by=some_author(tenant),
        version=ChatVersion.objects.get(),
        message=message,
        stage=stage,
        should_fire=should_fire,
    )


def written(tenant: Tenant, rule: Rule, context: str, *, should_fire: bool = True) -> RuleTest:
    return rule_tests.add_context(
        tenant=tenant, rule=rule, by=some_author(tenant), context=context, stage="final", should_fire=should_fire
    )


def test_a_stored_point_is_judged_by_what_fires_there(in_acme: Tenant) -> None:
    make_chat(in_acme)
    rule = make_rule(in_acme)
    keep(in_acme, rule)
    assert outcomes(in_acme, rule) == [("fires", True)]
    keep(in_acme, rule, should_fire=False)
    assert outcomes(in_acme, rule) == [("fires", False)]
    drafts.save_draft(tenant=in_acme, rule=rule, by=some_author(in_acme), revision=1, content={"expression": NEVER})
    assert outcomes(in_acme, rule) == [("false", True)]


def test_an_earlier_rule_makes_a_test_red_and_says_so(in_acme: Tenant) -> None:
    make_chat(in_acme)
    publish(in_acme, make_rule(in_acme, "EARLIER"))
    rule = make_rule(in_acme)
    keep(in_acme, rule)
    assert outcomes(in_acme, rule) == [("shadowed", False)]


def test_counters_of_the_turn_count(in_acme: Tenant) -> None:
    make_chat(
        in_acme,
        {"role": "user", "content": "Do it."},
        {"role": "assistant", "content": "I will."},
        NUDGE,
        {"role": "assistant", "content": "I really will."},
        {"role": "user", "content": "And now?"},
        {"role": "assistant", "content": "Now I will."},
    )
    rule = make_rule(in_acme, max_nudges=1)
    keep(in_acme, rule, message=1)
    keep(in_acme, rule, message=3)
    keep(in_acme, rule, message=5)
    assert outcomes(in_acme, rule) == [("fires", True), ("capped", False), ("fires", True)]


def test_a_point_that_is_gone_is_red(in_acme: Tenant) -> None:
    make_chat(in_acme)
    rule = make_rule(in_acme)
    keep(in_acme, rule, stage="round", should_fire=False)
    assert outcomes(in_acme, rule) == [("gone", False)]


def test_a_written_context_has_defaults_for_what_it_leaves_out(in_acme: Tenant) -> None:
    rule = make_rule(in_acme, expression='ctx.verified_after_mutation && ctx.final_text.contains("é")')
    written(in_acme, rule, '{"final_text": "été"}')
    written(in_acme, rule, '{"final_text": "ete"}', should_fire=False)
    written(in_acme, rule, '{"final_text": "été", "nudges": {"ACME-01": 1}}')
    assert outcomes(in_acme, rule) == [("fires", True), ("false", True), ("capped", False)]


def test_nothing_runs_while_another_rule_is_broken(in_acme: Tenant) -> None:
    rule = make_rule(in_acme, expression="ctx.")
    written(in_acme, rule, "{}")
    assert outcomes(in_acme, rule) == [("broken", False)]


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"no_such": 1}', '{"mutated": 1}', '{"final_text": null}', '{"tool_calls_total": -1}',
     '{"tool_calls_total": true}', '{"finish_reason": "done"}', '{"nudges": {"A": "x"}}', "[" * 100_000],
)  # fmt: skip
def test_what_is_no_context_is_refused_with_a_sentence(in_acme: Tenant, text: str) -> None:
    assert context_problem(text)
    with pytest.raises(Refused):
        written(in_acme, make_rule(in_acme), text)


@pytest.mark.parametrize("text", ["{}", '{"finish_reason": null}', '{"nudges": {}}', '{"mutated": true}'])
def test_what_is_a_context(text: str) -> None:
    assert not context_problem(text)


def test_buttons_of_the_page(author: Client, viewer: Client, acme: Tenant) -> None:
    chat = make_chat(acme)
    make_rule(acme)
    where = "/t/acme/rules/ACME-01/tests"
    answer = author.post(where, {"fire": f"{chat.pk}.1.1-final"}, headers={"HX-Request": "true"})
    assert answer.status_code == 200
    assert "it fires" in answer.content.decode()
    answer = author.post(where, {"not": "context", "test_context": "{"}, headers={"HX-Request": "true"})
    assert answer.status_code == 422
    assert "not JSON" in answer.content.decode()
    author.post(where, {"fire": "999.1.1-final"})
    assert viewer.post(where, {"fire": f"{chat.pk}.1.1-final"}).status_code == 403
    with scope(tenant=acme):
        kept = RuleTest.objects.get()
    author.post(where, {"remove": str(kept.pk)})
    with scope(tenant=acme):
        assert not RuleTest.objects.exists()


def test_a_button_without_script_saves_what_is_typed_as_well(author: Client, acme: Tenant) -> None:
    chat = make_chat(acme)
    rule = make_rule(acme)
    typed = {"revision": 1, "stage": "final", "max_nudges": 1, "expression": NEVER, "prompt_en": "Typed."}
    author.post("/t/acme/rules/ACME-01/edit", typed | {"not": f"{chat.pk}.1.1-final"})
    with scope(tenant=acme):
        assert RuleDraft.objects.get(rule=rule).prompt_en == "Typed."
        assert outcomes(acme, rule) == [("false", True)]


def test_the_command_says_what_is_not_in_order(acme: Tenant) -> None:
    with scope(tenant=acme):
        make_chat(acme)
        publish(acme, make_rule(acme, "GOOD", expression=NEVER))
        rule = make_rule(acme, "RED", expression=ALWAYS)
        keep(acme, rule, should_fire=False)
    said = StringIO()
    call_command("check_rules", tenant="acme", stdout=said)
    assert "1 rules are in order" in said.getvalue()
    with pytest.raises(CommandError):
        call_command("check_rules", tenant="acme", drafts=True, stdout=said)
    assert "RED: test" in said.getvalue()
    with pytest.raises(CommandError):
        call_command("check_rules", tenant="nobody")
