"""Three ways to settle order, caps and counters give the same: the definition, the walk, and rule by rule."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.domain.deciding import replay
from rules.domain.language import check
from rules.domain.rule import ContinuationRule
from rules.domain.scalar import compile_scalar
from rules.domain.settling import (
    NONE,
    Rule,
    candidates,
    codes_of,
    matched,
    reads_later,
    settle_by_walk,
    settle_rule_by_rule,
)
from tests.rules.domain.corpora import random_walk, views_of
from tests.rules.domain.language.random_predicates import CODES, Predicates


def tree_of(source: str):
    checked = check(source)
    assert checked.tree is not None, (source, checked.diagnostics)
    return checked.tree


def random_rules(rng: random.Random, *, later: bool) -> list[Rule]:
    """Rules of both stages; each may read its own counter and, with `later`, any other."""
    rules: list[Rule] = []
    for number in range(rng.randint(1, 8)):
        code = CODES[number] if number < len(CODES) else f"R-{number}"
        readable = [*CODES, "R-5", "nobody"] if later else [rule.code for rule in rules] + [code, "nobody"]
        counter = f'nudged("{rng.choice(readable)}")'
        clause = rng.choice(
            [
                "true",
                f"!({counter} > 0 && ctx.tool_calls_since_user == 0)",
                f"{counter} < {rng.randint(0, 2)}",
                f"{counter} + 1 == {rng.randint(1, 3)} || ctx.mutated",
                f"(ctx.mutated ? {counter} : 1 - {counter}) in [0, 2]",
                f'"{rng.choice(readable)}" in ctx.nudges',
                f"({counter} >= 1) != ctx.verify_failed",
                f"-{counter} > -2",
            ]
        )
        plain = Predicates(rng.randrange(10**9)).flag() if rng.random() < 0.7 else "ctx.final_text.contains('a')"
        rules.append(Rule(code, rng.choice(["final", "round"]), rng.randint(0, 3), tree_of(f"({plain}) && ({clause})")))
    return rules


def by_definition(walks, rules):
    """Outcome, and points where each rule matches, by the reference replay of single points."""
    scalar = [ContinuationRule(r.code, r.max_nudges, compile_scalar(r.tree), "", r.stage) for r in rules]
    place = {rule.code: at for at, rule in enumerate(rules)}
    decisions = [decision for walk in walks for decision in replay(walk, scalar)]
    fired = [NONE if d.fired is None else place[d.fired] for d in decisions]
    matches = [
        [n for n, d in enumerate(decisions) if any(r.code == rule.code and r.outcome != "false" for r in d.rules)]
        for rule in rules
    ]
    return fired, matches


@settings(deadline=None, max_examples=300)
@given(st.integers(0, 10**9), st.booleans())
def test_definition_walk_and_arrays_agree(seed, later):
    rng = random.Random(seed)
    walks = [random_walk(rng) for _ in range(rng.randint(1, 6))]
    rules = random_rules(rng, later=later)
    fired, matches = by_definition(walks, rules)
    [view] = views_of(walks)
    found = [candidates(rule, view, codes_of(rules)) for rule in rules]
    walked = settle_by_walk(view.columns, view, rules, found)
    assert walked.tolist() == fired
    for at in range(len(rules)):
        assert matched(view.columns, view, rules, at, found[at], walked).tolist() == matches[at]
    if reads_later(rules):
        with pytest.raises(ValueError, match="later"):
            settle_rule_by_rule(view.columns, view, rules, found)
    else:
        assert settle_rule_by_rule(view.columns, view, rules, found).tolist() == fired


def test_a_part_of_the_rules_can_be_settled_again():
    rng = random.Random(5)
    walks = [random_walk(rng) for _ in range(30)]
    rules = [rule for rule in random_rules(rng, later=False) if rule.stage == "final"] or random_rules(rng, later=False)
    [view] = views_of(walks)
    found = [candidates(rule, view, codes_of(rules)) for rule in rules]
    whole = settle_rule_by_rule(view.columns, view, rules, found)
    half = len(rules) // 2
    kept = whole.copy()
    kept[kept >= half] = NONE
    again = settle_rule_by_rule(view.columns, view, rules, found, kept, range(half, len(rules)))
    assert np.array_equal(again, whole)
