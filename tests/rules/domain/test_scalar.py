"""The scalar evaluator against CEL, and the tree that tells why."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.domain import phrases
from rules.domain.context import TurnContext
from rules.domain.language import check, print_tree
from rules.domain.scalar import compile_scalar, trace
from tests.rules.domain.language.random_predicates import Predicates, random_context


def tree_of(source: str):
    checked = check(source)
    assert checked.tree is not None, (source, checked.diagnostics)
    return checked.tree


def why(source: str, **fields):
    return trace(tree_of(source), TurnContext(**fields))


def states(source: str, **fields) -> list[tuple[str, str]]:
    return [(source[slice(*part.node.span)], part.state) for part in why(source, **fields).walk()]


def test_scalar_values_equal_those_of_the_cel_implementation():
    from tests.rules.domain.language.cel_oracle import Oracle

    oracle = Oracle()
    rng = random.Random(11)
    contexts = [random_context(rng) for _ in range(40)]
    both = set()
    for seed in range(400):
        source = Predicates(seed).one()
        expected = oracle.holds(source, contexts)
        tree = tree_of(source)
        evaluate = compile_scalar(tree)
        assert [evaluate(context) for context in contexts] == expected, source
        both.update(expected)
        if seed % 10 == 0:
            assert oracle.holds(print_tree(tree), contexts) == expected, source
    assert both == {True, False}


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 10**9))
def test_the_trace_gives_the_value_of_the_predicate_and_of_each_part(seed):
    rng = random.Random(seed)
    context = random_context(rng)
    tree = tree_of(Predicates(seed).one())
    traced = trace(tree, context)
    assert traced.result is compile_scalar(tree)(context)
    for part in traced.walk():
        if part.evaluated and part.node.type in ("bool", "int"):
            assert part.result == compile_scalar(part.node)(context)
        for mark in part.marks:
            assert 0 <= mark.start < mark.end <= len(getattr(context, mark.field))


def test_operands_after_the_deciding_one_are_not_evaluated():
    assert states("ctx.mutated && ctx.budget_low", mutated=False, budget_low=True) == [
        ("ctx.mutated && ctx.budget_low", "false"),
        ("ctx.mutated", "false"),
        ("ctx.budget_low", "not-evaluated"),
    ]
    assert states("ctx.mutated || size(ctx.final_text) > 2", mutated=True) == [
        ("ctx.mutated || size(ctx.final_text) > 2", "true"),
        ("ctx.mutated", "true"),
        ("size(ctx.final_text) > 2", "not-evaluated"),
        ("size(ctx.final_text)", "not-evaluated"),
        ("ctx.final_text", "not-evaluated"),
        ("2", "not-evaluated"),
    ]


def test_the_branch_not_taken_is_not_evaluated():
    assert states("ctx.read_only_rounds >= (ctx.audit_mode ? 8 : 4)", read_only_rounds=5) == [
        ("ctx.read_only_rounds >= (ctx.audit_mode ? 8 : 4)", "true"),
        ("ctx.read_only_rounds", "value"),
        ("ctx.audit_mode ? 8 : 4", "value"),
        ("ctx.audit_mode", "false"),
        ("8", "not-evaluated"),
        ("4", "value"),
    ]


def marked(source: str, **fields) -> list[str]:
    return [fields[m.field][m.start : m.end] for part in why(source, **fields).walk() for m in part.marks]


def test_texts_that_made_a_term_true_are_marked():
    text = "😀 École : étapes, étapes"
    assert marked("ctx.final_text.contains('étapes')", final_text=text) == ["étapes", "étapes"]
    assert marked("ctx.final_text.matches('(?i)é[ct]')", final_text=text) == ["Éc", "ét", "ét"]
    assert marked("ctx.final_text.startsWith('😀 É')", final_text=text) == ["😀 É"]
    assert marked("ctx.final_text.endsWith('s')", final_text=text) == ["s"]
    assert marked("ctx.final_text.contains('x')", final_text=text) == []
    assert marked("!ctx.final_text.contains('x')", final_text=text) == []


def test_marks_of_phrase_functions_are_those_of_the_detector():
    text = "Voilà.\n\nI will now fix the parser."
    [span] = phrases.find_announces_action(text)
    traced = why("announces_action(ctx.final_text)", final_text=text)
    assert [(m.field, m.start, m.end) for m in traced.marks] == [("final_text", *span)]
    assert marked("announces_action(last_paragraph(ctx.final_text))", final_text=text) == [text[slice(*span)]]


def test_marks_in_a_last_paragraph_are_places_of_the_whole_text():
    text = "I will wait.\n\nI will. Done\n\nLet me know if you need anything else."
    [mark] = (
        why("last_paragraph(ctx.final_text).contains('will')", final_text=text).children[0].marks
        or why("last_paragraph(ctx.final_text).contains('will')", final_text=text).marks
    )
    assert text[mark.start : mark.end] == "will"
    assert mark.start == text.index("will.")


@pytest.mark.parametrize(
    ("source", "fields", "value"),
    [
        ("ctx.finish_reason == null", {}, True),
        ("ctx.finish_reason != 'stop'", {}, True),
        ("ctx.finish_reason in ['stop']", {}, False),
        ("is_go_ahead(ctx.finish_reason)", {}, False),
        ("size(ctx.final_text) == 2", {"final_text": "😀é"}, True),
        ("nudged('A') == 0", {}, True),
        ("'A' in ctx.nudges", {"nudges": {"A": 1}}, True),
        ("ctx.final_text.matches('a.b')", {"final_text": "a\nb"}, False),
        ("ctx.final_text.contains('\\x00')", {"final_text": "a\0b"}, True),
        ("ctx.final_text == 'e\\u0301'", {"final_text": "é"}, False),
        ("1 - 2 - 3 == -4", {}, True),
        ("ctx.final_text.matches('a')", {"final_text": "\ud800a"}, True),
    ],
)
def test_values(source, fields, value):
    assert compile_scalar(tree_of(source))(TurnContext(**fields)) is value


def test_a_trace_is_json():
    assert why("ctx.mutated && size(ctx.final_text) > 1", mutated=True, final_text="abc").as_json() == {
        "kind": "and",
        "value": None,
        "type": "bool",
        "span": [0, 39],
        "state": "true",
        "result": True,
        "marks": [],
        "children": [
            {"kind": "field", "value": "mutated", "type": "bool", "span": [0, 11], "state": "true", "result": True,
             "marks": [], "children": []},
            {"kind": "compare", "value": ">", "type": "bool", "span": [15, 39], "state": "true", "result": True,
             "marks": [], "children": [
                 {"kind": "call", "value": "size", "type": "int", "span": [15, 35], "state": "value", "result": 3,
                  "marks": [], "children": [
                      {"kind": "field", "value": "final_text", "type": "string", "span": [20, 34], "state": "value",
                       "result": None, "marks": [], "children": []}]},
                 {"kind": "int", "value": 1, "type": "int", "span": [38, 39], "state": "value", "result": 1,
                  "marks": [], "children": []}]},
        ],
    }  # fmt: skip
