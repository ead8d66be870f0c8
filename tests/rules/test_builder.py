"""The visual builder's fields: nothing is lost between an expression and its rows, and buttons alone are enough."""

from __future__ import annotations

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from eleanor_site.tenants.models import Tenant
from rules.builder_fields import NEW_ROWS, Row, builder_rows, built_source
from rules.domain.catalogue import default_rule_texts
from rules.domain.language import check
from rules.domain.language.tree import Node, canonical
from tests.factories import make_rule
from tests.rules.domain.language.random_predicates import Predicates


def posted(row: Row) -> dict[str, str]:
    """What a browser sends for these rows."""
    found = {f"{row.name}.kind": row.kind, f"{row.name}.value": row.value}
    for name, choices in (("group", row.groups), ("subject", row.subjects), ("op", row.operators)):
        found |= {f"{row.name}.{name}": choice.value for choice in choices if choice.chosen}
    for entry in row.entries:
        found |= posted(entry)
    return found


def tree_of(source: str) -> Node:
    tree = check(source).tree
    assert tree is not None
    return tree


def through(source: str, action: str = "", **more: str) -> str:
    rows = builder_rows(source, ["EAI-GOV-03"])
    assert rows is not None
    built = built_source(posted(rows) | more, action)
    assert built is not None
    return built


@pytest.mark.parametrize("text", default_rule_texts(), ids=lambda text: text.code)
def test_the_default_rules_come_back_as_they_are(text) -> None:
    assert through(text.expression) == text.expression


def test_no_expression_is_lost() -> None:
    drawn = Predicates(11)
    for _number in range(300):
        source = drawn.one()
        assert canonical(tree_of(through(source))) == canonical(tree_of(source)), source


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("remove:0", "ctx.verify_failed && !ctx.audit_mode"),
        ("up:1", "ctx.verify_failed && ctx.mutated && !ctx.audit_mode"),
        ("down:0", "ctx.verify_failed && ctx.mutated && !ctx.audit_mode"),
        ("up:0", "ctx.mutated && ctx.verify_failed && !ctx.audit_mode"),
        ("wrap:1", "ctx.mutated && (ctx.verify_failed || ctx.tools_available) && !ctx.audit_mode"),
        ("unwrap:2", "ctx.mutated && ctx.verify_failed && ctx.audit_mode"),
        ("remove:9", "ctx.mutated && ctx.verify_failed && !ctx.audit_mode"),
        ("nonsense:x", "ctx.mutated && ctx.verify_failed && !ctx.audit_mode"),
    ],
)
def test_buttons(action: str, expected: str) -> None:
    assert through("ctx.mutated && ctx.verify_failed && !ctx.audit_mode", action) == expected


@pytest.mark.parametrize("kind", NEW_ROWS)
def test_every_new_row_is_an_expression(kind: str) -> None:
    assert not check(through("", "add:", new=kind)).errors


def test_the_group_changes_its_kind() -> None:
    assert through("ctx.mutated && ctx.verify_failed", **{"b.group": "none"}) == "!(ctx.mutated || ctx.verify_failed)"


@pytest.mark.parametrize(
    ("source", "name", "typed", "expected"),
    [
        ('ctx.finish_reason == "stop"', "b.0.value", "length", 'ctx.finish_reason == "length"'),
        ('ctx.finish_reason in ["stop"]', "b.0.value", "stop, length", 'ctx.finish_reason in ["stop", "length"]'),
        ('ctx.final_text.contains("a")', "b.0.value", "it's done", 'ctx.final_text.contains("it\'s done")'),
        ("ctx.tool_calls_total > 2", "b.0.value", "3", "ctx.tool_calls_total > 3"),
    ],
)
def test_words_are_taken_as_meant(source: str, name: str, typed: str, expected: str) -> None:
    built = through(source, **{name: typed})
    assert canonical(tree_of(built)) == canonical(tree_of(expected))


@pytest.mark.parametrize("fields", [{}, {"b.kind": "flag"}, {"b.0.kind": "flag"}])
def test_other_fields_are_no_builder(fields: dict[str, str]) -> None:
    assert built_source(fields) is None


@given(
    st.dictionaries(st.sampled_from(["b.kind", "b.group", "b.0.kind", "b.0.subject", "b.0.op", "b.0.value"]), st.text())
)
def test_any_fields_are_read(fields: dict[str, str]) -> None:
    built_source(fields | {"b.kind": "group"}, "up:0")


def test_a_button_of_the_builder_works_without_script_and_saves_nothing(author: Client, acme: Tenant) -> None:
    make_rule(acme, expression="ctx.mutated && ctx.verify_failed")
    rows = builder_rows("ctx.mutated && ctx.verify_failed")
    assert rows is not None
    form = {"revision": 1, "stage": "final", "max_nudges": 1, "expression": "ctx.mutated && ctx.verify_failed"}
    answer = author.post(
        "/t/acme/rules/ACME-01/edit", form | posted(rows) | {"build": "remove:0", "prompt_en": "Typed."}
    )
    text = answer.content.decode()
    assert answer.status_code == 200
    assert "ctx.verify_failed</textarea>" in text
    assert "Typed." in text
    shown = author.get("/t/acme/rules/ACME-01/edit").content.decode()
    assert "ctx.mutated &amp;&amp; ctx.verify_failed</textarea>" in shown
