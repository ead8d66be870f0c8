"""Laws that hold for every predicate: it prints back, survives the builder, and never raises however it is spoilt."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.domain.language import check, print_tree
from rules.domain.language.builder import NotABuilderForm, builder_form, builder_source
from rules.domain.language.completion import complete
from rules.domain.language.environment import MAX_CHARACTERS
from rules.domain.language.printer import tightened
from rules.domain.language.tree import atom_key, canonical, same
from tests.rules.domain.language.random_predicates import Predicates

DEFAULT_RULES = (
    'ctx.finish_reason == "length"',
    'ctx.final_text == "" && !(ctx.finish_reason in ["length", "tool_calls", "content_filter"])',
    "ctx.tools_available && ctx.mutated && ctx.verify_failed "
    '&& !(nudged("EAI-GOV-03") > 0 && ctx.tool_calls_since_user == 0)',
    "ctx.tools_available && ctx.tool_calls_total == 0 && is_go_ahead(ctx.user_text) && !asks_user(ctx.final_text)",
    'ctx.tools_available && ctx.finish_reason != "tool_calls" && announces_action(last_paragraph(ctx.final_text)) '
    '&& !asks_user(ctx.final_text) && !(nudged("EAI-GOV-07") > 0 && ctx.tool_calls_since_user == 0)',
    "ctx.read_only_rounds >= (ctx.audit_mode ? 8 : 4)",
)


def tree_of(source: str):
    checked = check(source)
    assert checked.tree is not None, (source, checked.diagnostics)
    return checked.tree


@pytest.mark.parametrize("source", DEFAULT_RULES)
def test_rules_of_the_catalogue_print_as_they_are_written(source):
    assert print_tree(tree_of(source)) == source


@settings(deadline=None, max_examples=300)
@given(st.integers(0, 10**9))
def test_printing_parses_to_the_same_tree(seed):
    tree = tree_of(Predicates(seed).one())
    assert same(tree_of(print_tree(tree)), tree)
    assert same(tree_of(tightened(print_tree(tree))), tree)


@settings(deadline=None, max_examples=300)
@given(st.integers(0, 10**9))
def test_the_builder_loses_nothing(seed):
    tree = tree_of(Predicates(seed).one())
    form = builder_form(tree)
    assert same(tree_of(builder_source(form)), tree)
    assert builder_form(tree_of(builder_source(form))) == form


def test_builder_shows_groups_and_rows():
    source = "ctx.mutated && !(is_go_ahead(ctx.user_text) || size(ctx.final_text) > 3) && ctx.tool_calls_total + 1 > 2"
    assert builder_form(tree_of(source)) == {
        "group": "all",
        "entries": [
            {"row": "flag", "field": "mutated"},
            {
                "group": "none",
                "entries": [
                    {"row": "call", "function": "is_go_ahead", "text": {"field": "user_text"}},
                    {
                        "row": "compare",
                        "left": {"size": {"field": "final_text"}},
                        "operator": ">",
                        "right": {"constant": 3},
                    },
                ],
            },
            {"row": "text", "source": "ctx.tool_calls_total + 1 > 2"},
        ],
    }


@pytest.mark.parametrize(
    "form",
    [
        None,
        [],
        {},
        {"group": "most", "entries": []},
        {"group": "all", "entries": {}},
        {"row": "compare", "left": {"field": "a.b"}, "operator": "==", "right": {"constant": 1}},
        {"row": "compare", "left": {"field": "mutated"}, "operator": "|| true ||", "right": {"constant": 1}},
        {"row": "call", "function": "__import__", "text": {"field": "final_text"}},
        {"row": "compare", "left": {"constant": 1.5}, "operator": "==", "right": {"constant": 1}},
    ],
)
def test_what_is_no_builder_form_is_refused(form):
    with pytest.raises(NotABuilderForm):
        builder_source(form)


def test_deeply_nested_builder_forms_are_refused():
    form: dict = {"row": "flag", "field": "mutated"}
    for _ in range(5000):
        form = {"group": "none", "entries": [form]}
    with pytest.raises(NotABuilderForm):
        builder_source(form)


def test_a_text_row_cannot_reach_into_its_neighbours():
    rows = [{"row": "flag", "field": "mutated"}, {"row": "text", "source": "ctx.budget_low || ctx.audit_mode"}]
    tree = tree_of(builder_source({"group": "all", "entries": rows}))
    assert print_tree(tree) == "ctx.mutated && (ctx.budget_low || ctx.audit_mode)"
    rows[1]["source"] = "ctx.budget_low) || (ctx.audit_mode"
    rows[0]["source"] = "ctx.mutated // and"
    rows[0]["row"] = "text"
    assert "ctx.mutated // and\n && (" in builder_source({"group": "all", "entries": rows})


@pytest.mark.parametrize(("group", "value"), [("all", "true"), ("any", "false"), ("none", "true")])
def test_an_empty_group_says_what_it_says_of_nothing(group, value):
    assert builder_source({"group": group, "entries": []}) == value


@settings(deadline=None, max_examples=300)
@given(st.text(max_size=60))
def test_any_text_is_read_without_an_exception(source):
    checked = check(source)
    assert (checked.tree is None) == bool(checked.errors)
    assert all(0 <= d.start <= d.end <= len(source) for d in checked.diagnostics)
    complete(source, len(source) // 2, codes=["X"])


@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=80), st.sampled_from(["utf-8", "latin-1", "utf-16-le"]))
def test_random_bytes_are_read_without_an_exception(data, encoding):
    source = data.decode(encoding, "surrogatepass" if encoding == "utf-16-le" and len(data) % 2 == 0 else "replace")
    checked = check(source)
    assert checked.tree is not None or checked.errors


PIECES = (
    "(",
    ")",
    "!",
    "&&",
    "||",
    "?",
    ":",
    '"',
    "'",
    "\\",
    "//",
    ".",
    ",",
    "[",
    "]",
    "in",
    "ctx",
    "0x",
    "\0",
    "😀",
    "=",
)


@settings(deadline=None, max_examples=400)
@given(st.integers(0, 10**9))
def test_spoilt_predicates_give_a_diagnostic_or_a_tree(seed):
    rng = random.Random(seed)
    source = Predicates(seed).one(3)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(source) + 1)
        match rng.randrange(4):
            case 0:
                source = source[:at]
            case 1:
                source = source[:at] + source[at + rng.randint(1, 4) :]
            case 2:
                source = source[:at] + rng.choice(PIECES) + source[at:]
            case _:
                source = source[at:] + source[:at]
    checked = check(source)
    assert (checked.tree is None) == bool(checked.errors)
    for diagnostic in checked.diagnostics:
        assert 0 <= diagnostic.start <= diagnostic.end <= len(source)
        assert diagnostic.as_json()["code"] == diagnostic.code
    if checked.tree is not None:
        assert same(tree_of(print_tree(checked.tree)), checked.tree)
    complete(source, rng.randrange(len(source) + 1), codes=["EAI-GOV-01"])


def test_printing_stays_within_the_length_limit():
    source = "||".join(["1<2&&2<3"] * 24) + "&&ctx.final_text=='" + "\t" * 1700 + "'"
    tree = tree_of(source)
    assert len(print_tree(tree)) <= MAX_CHARACTERS
    assert same(tree_of(print_tree(tree)), tree)
    packed = "&&".join(["ctx.finish_reason in['" + "x" * 360 + "']"] * 5)
    assert same(tree_of(builder_source(builder_form(tree_of(packed)))), tree_of(packed))


def test_groups_are_flat_whatever_the_parentheses():
    flat = tree_of("ctx.mutated && ctx.budget_low && ctx.audit_mode")
    assert len(flat.children) == 3
    assert same(tree_of("ctx.mutated && (ctx.budget_low && ctx.audit_mode)"), flat)
    assert same(tree_of("((ctx.mutated && ctx.budget_low) && ctx.audit_mode)"), flat)


def test_methods_and_functions_of_one_meaning_are_one_tree():
    assert same(tree_of("ctx.final_text.size() == 1"), tree_of("size(ctx.final_text)==0x1"))
    assert same(tree_of(r"ctx.final_text.contains('\u00e9')"), tree_of("ctx.final_text.contains(r'é') // same"))


def test_atom_keys_name_the_term_and_the_versions_of_its_helpers(monkeypatch):
    first = tree_of("is_go_ahead( ctx.user_text )")
    assert atom_key(first) == atom_key(tree_of("is_go_ahead(ctx.user_text)"))
    assert atom_key(first) != atom_key(tree_of("is_go_ahead(ctx.final_text)"))
    plain, before = tree_of("ctx.user_text.contains('a')"), atom_key(first)
    plain_before = atom_key(plain)
    monkeypatch.setitem(__import__("rules.domain.language.tree", fromlist=["x"]).HELPER_VERSIONS, "is_go_ahead", 999)
    assert atom_key(first) != before
    assert atom_key(plain) == plain_before
    assert canonical(first) == canonical(tree_of("(is_go_ahead(ctx.user_text))"))


def test_completion_offers_what_fits_at_the_caret():
    def texts(source, **options):
        return [c.text for c in complete(source, len(source), **options).candidates]

    assert texts("ctx.mut") == ["mutated", "verified_after_mutation"]
    assert texts("ctx.final_text.st") == ["startsWith()"]
    assert texts("ctx.finish_reason == 'le") == ["length"]
    assert texts("nudged(", codes=["A", "B"]) == ['"A"', '"B"']
    assert texts('nudged("b', codes=["A", "B"]) == ["B"]
    assert "ctx.tool_calls_total" in texts("ctx.mutated && tool")
    assert "ctx.mutated" not in texts("is_go_ahead(")
    assert "&&" in texts("ctx.mutated ")


def test_completion_says_type_description_and_what_is_replaced():
    found = complete("😀 is 1 // no\n", 3)
    assert found.candidates == ()
    found = complete("!ctx.muta && true", 9)
    assert (found.start, found.end) == (5, 9)
    assert found.candidates[0].as_json() == {
        "text": "mutated",
        "kind": "field",
        "type": "bool",
        "description": "field.mutated",
        "caret": 7,
    }
