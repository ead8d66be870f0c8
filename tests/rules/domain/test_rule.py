"""Applying one rule, choosing the first, and predicates that misbehave."""

from types import MappingProxyType

import pytest

from rules.domain import ContinuationRule, TurnContext, default_rules, first_applicable
from rules.domain.catalogue import default_prompts, default_rule_texts
from rules.domain.rule import PredicateProblem


def rule(code="A", max_nudges=1, predicate=lambda ctx: True, stage="final"):
    return ContinuationRule(code, max_nudges, predicate, "prompt", stage)


def fails(ctx):
    raise LookupError("no such thing")


def test_every_field_of_a_context_may_be_left_out():
    ctx = TurnContext()
    assert (ctx.final_text, ctx.finish_reason, ctx.tool_calls_total, ctx.mutated, ctx.nudges) == (
        "",
        None,
        0,
        False,
        {},
    )
    assert ctx.verified_after_mutation
    assert TurnContext().nudges is not TurnContext().nudges


def test_a_rule_applies_below_its_ceiling_only():
    ctx = TurnContext(nudges=MappingProxyType({"A": 1, "B": 9}))
    assert not rule(max_nudges=1).applies(ctx)
    assert rule(max_nudges=2).applies(ctx)
    assert not rule(max_nudges=0).applies(TurnContext())


def test_above_the_ceiling_the_predicate_is_not_called():
    assert not rule(max_nudges=0, predicate=fails).applies(TurnContext())


def test_a_predicate_that_raises_or_gives_no_boolean_is_false_and_the_next_rule_is_tried():
    broken, odd, good = rule("A", predicate=fails), rule("B", predicate=lambda ctx: 1), rule("C")
    assert broken.holds(TurnContext()) == PredicateProblem("raised", "LookupError: no such thing")
    assert odd.holds(TurnContext()) == PredicateProblem("not-bool", "int")
    assert first_applicable([broken, odd, good], TurnContext(), "final") is good


def test_only_rules_of_the_stage_are_tried():
    final, other = rule("A"), rule("B", stage="round")
    assert first_applicable([final, other], TurnContext(), "round") is other
    assert first_applicable([final, other], TurnContext(), "nowhere") is None
    assert rule().stage == ContinuationRule("A", 1, bool, "").stage == "final"


@pytest.mark.parametrize("code", ["", " A", "A\n", "x" * 65])
def test_codes_that_are_refused(code):
    with pytest.raises(ValueError, match="code"):
        rule(code)


def test_a_negative_ceiling_is_refused():
    with pytest.raises(ValueError, match="negative"):
        rule(max_nudges=-1)


def test_the_default_rules_come_in_their_order_and_in_two_languages():
    english, french = default_rules(), default_rules("fr")
    assert [r.code for r in english] == [f"EAI-GOV-{n:02}" for n in range(1, 12)] == [r.code for r in french]
    assert [r.max_nudges for r in english] == [2, 2, 2, 2, 2, 1, 2, 2, 2, 1, 1]
    assert {r.code for r in english if r.stage == "round"} == {"EAI-GOV-09", "EAI-GOV-10", "EAI-GOV-11"}
    assert all(one.prompt != other.prompt for one, other in zip(english, french, strict=True))
    assert {(r.prompt, r.code) for r in english + french} == set(default_prompts())
    assert all(
        text.title_fr and text.explanation_fr and text.title_en and text.explanation_en for text in default_rule_texts()
    )


@pytest.mark.parametrize(
    ("code", "fields", "changed"),
    [
        ("EAI-GOV-01", {"final_text": "x", "finish_reason": "length"}, {"finish_reason": "stop"}),
        ("EAI-GOV-02", {}, {"finish_reason": "content_filter"}),
        (
            "EAI-GOV-03",
            {"final_text": "x", "tools_available": True, "mutated": True, "verify_failed": True},
            {"mutated": False},
        ),
        (
            "EAI-GOV-04",
            {"final_text": "x", "tools_available": True, "mutated": True, "verified_after_mutation": False},
            {"nudges": {"EAI-GOV-04": 1}},
        ),
        ("EAI-GOV-05", {"final_text": "x", "tools_available": True, "require_delivery": True}, {"tool_calls_total": 1}),
        (
            "EAI-GOV-06",
            {"final_text": "Fine.", "tools_available": True, "user_text": "ok"},
            {"final_text": "Which one?"},
        ),
        ("EAI-GOV-07", {"final_text": "I will fix it.", "tools_available": True}, {"finish_reason": "tool_calls"}),
        (
            "EAI-GOV-08",
            {"final_text": "Next steps: docs.", "tools_available": True, "tool_calls_since_user": 1},
            {"budget_low": True},
        ),
        ("EAI-GOV-09", {"no_progress_rounds": 2}, {"no_progress_rounds": 1}),
        ("EAI-GOV-10", {"budget_low": True}, {"nudges": {"EAI-GOV-10": 1}}),
        ("EAI-GOV-11", {"read_only_rounds": 7}, {"audit_mode": True}),
    ],
)
def test_each_default_rule_fires_alone_and_one_field_keeps_it_silent(code, fields, changed):
    stage = "round" if code >= "EAI-GOV-09" else "final"
    found = first_applicable(default_rules(), TurnContext(**fields), stage)
    assert found is not None
    assert found.code == code
    assert first_applicable(default_rules(), TurnContext(**fields | changed), stage) is None
