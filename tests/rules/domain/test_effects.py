"""The live effect equals the difference of two replays, whatever is edited, and gets there step by step."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.domain.comparing import compare, counterfactual, translation
from rules.domain.deciding import replay
from rules.domain.effects import LiveEffects
from rules.domain.language import check
from rules.domain.near_misses import near_misses
from rules.domain.replaying import COUNTED, findings, pack_outcome, replay_segment, unpack_outcome
from rules.domain.rule import ContinuationRule
from rules.domain.scalar import compile_scalar
from rules.domain.settling import NONE, Rule
from tests.rules.domain.corpora import contexts_of, random_walk, views_of
from tests.rules.domain.language.random_predicates import CODES, Predicates
from tests.rules.domain.test_settling import by_definition, random_rules


def tree_of(source: str):
    checked = check(source)
    assert checked.tree is not None, (source, checked.diagnostics)
    return checked.tree


def random_edit(rng: random.Random, rules: list[Rule]) -> tuple[list[Rule], str]:
    """Another rule list, and the rule that was edited, put in, moved or got another cap or stage."""
    edited = list(rules)
    at = rng.randrange(len(edited))
    predicate = tree_of(Predicates(rng.randrange(10**9)).one(2))
    match rng.randrange(6):
        case 0:
            edited[at] = replace(edited[at], tree=predicate)
        case 1:
            edited[at] = replace(edited[at], max_nudges=rng.randint(0, 3))
        case 2:
            edited[at] = replace(edited[at], stage="round" if edited[at].stage == "final" else "final")
        case 3:
            edited.insert(at, Rule("NEW", rng.choice(["final", "round"]), 1, predicate))
        case 4:
            return edited[:at] + edited[at + 1 :], edited[at].code
        case _:
            moved = edited.pop(at)
            at = rng.randint(0, len(edited))
            edited.insert(at, moved)
    return edited, edited[at].code


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**9), st.booleans())
def test_an_effect_is_the_difference_of_two_replays(seed, later):
    rng = random.Random(seed)
    walks = [random_walk(rng) for _ in range(rng.randint(1, 8))]
    rules = random_rules(rng, later=later)
    live = LiveEffects(views_of(walks, limit=20), rules)
    before = [replay_segment(view, rules).outcome for view in views_of(walks, limit=20)]
    for _ in range(3):
        edited, code = random_edit(rng, rules)
        results = [replay_segment(view, edited) for view in views_of(walks, limit=20)]
        effect = live.effect(edited, code)
        pairs = list(zip(before, results, strict=True))
        differences = [compare(old, rules, new.outcome, edited, code) for old, new in pairs]
        assert effect.exact
        is_gone = all(rule.code != code for rule in edited)
        counts = [dict.fromkeys(COUNTED, 0) if is_gone else result.counts["rules"][code] for result in results]
        for name in ("fires", "matches", "shadowed", "capped"):
            assert getattr(effect, name) == sum(count[name] for count in counts), name
        for name in ("newly", "gone", "same"):
            assert getattr(effect, name) == sum(len(getattr(d, name)) for d in differences), name
        assert is_gone or effect.points == sum(count["points"] for count in counts)
        others: dict[str, int] = {}
        for difference in differences:
            for other, delta in difference.others.items():
                others[other] = others.get(other, 0) + delta
        assert dict(effect.others) == {other: delta for other, delta in others.items() if delta}


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 10**9))
def test_an_estimate_covers_whole_turns_and_becomes_exact(seed):
    rng = random.Random(seed)
    walks = [random_walk(rng) for _ in range(40)]
    rules = random_rules(rng, later=False)
    code = rules[0].code
    views = views_of(walks, limit=60)
    live = LiveEffects(views, rules)
    edited = [
        replace(rules[0], tree=tree_of("ctx.final_text.matches('[ae]') && !ctx.user_text.contains('k')")),
        *rules[1:],
    ]
    wanted = LiveEffects(views_of(walks, limit=60), rules).effect(edited, code)
    effect = live.effect(edited, code, seconds=0)
    steps = 1
    while not effect.exact:
        assert effect.low <= effect.fires <= effect.high
        assert effect.seen <= effect.points == wanted.points
        following = live.effect(edited, code, seconds=0)
        assert following.seen >= effect.seen
        effect, steps = following, steps + 1
        assert steps < 1000
    assert effect == replace(wanted, ms=effect.ms)
    assert live.effect(edited, code, seconds=0).exact


def test_counts_equal_those_of_the_reference_replay():
    rng = random.Random(21)
    walks = [random_walk(rng) for _ in range(60)]
    rules = random_rules(rng, later=False)
    scalar = [ContinuationRule(r.code, r.max_nudges, compile_scalar(r.tree), "", r.stage) for r in rules]
    decisions = [decision for walk in walks for decision in replay(walk, scalar)]
    [view] = views_of(walks)
    result = replay_segment(view, rules)
    for rule in rules:
        counts = result.counts["rules"][rule.code]
        own = [r.outcome for d in decisions for r in d.rules if r.code == rule.code]
        assert counts["points"] == len(own)
        for outcome in ("fires", "shadowed", "capped"):
            assert counts[outcome] == own.count(outcome)
        for status in ("reproduced", "different", "new"):
            assert counts[status] == sum(d.fired == rule.code and d.status == status for d in decisions)
    alone = [d.recorded for d in decisions if d.status == "recorded_only"]
    assert result.counts["recorded_only"] == {code: alone.count(code) for code in CODES if code in alone}
    found = list(findings(view, rules, result.outcome))
    assert [(f.code, f.recorded) for f in found] == [(d.fired, d.recorded) for d in decisions if d.status]
    assert list(findings(view, rules, result.outcome, after=found[4].point)) == found[5:]


@pytest.mark.parametrize("highest", [0, 254, 255, 3000])
def test_outcomes_survive_storage(highest):
    outcome = np.array([NONE, 0, highest, NONE], dtype=np.uint16)
    assert unpack_outcome(pack_outcome(outcome)).tolist() == outcome.tolist()


def test_the_same_segment_and_rules_give_the_same_bytes():
    rng = random.Random(2)
    walks = [random_walk(rng) for _ in range(20)]
    rules = random_rules(rng, later=True)
    first, second = (replay_segment(views_of(walks)[0], rules) for _ in range(2))
    assert (first.packed(), first.counts) == (second.packed(), second.counts)


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 10**9))
def test_near_misses_are_what_flipping_one_clause_alone_would_change(seed):
    rng = random.Random(seed)
    walks = [random_walk(rng) for _ in range(4)]
    contexts = contexts_of(walks)
    [view] = views_of(walks)
    tree = tree_of("(ctx.mutated || ctx.tool_calls_total > 2) && !ctx.verify_failed && "
                   "(ctx.audit_mode ? ctx.final_text == '' : ctx.final_text.contains('a'))")  # fmt: skip
    clauses, holds = near_misses(tree, view)
    assert list(holds) == [compile_scalar(tree)(context) for context in contexts]
    assert len(clauses) == 6

    def plain(ctx, flip):
        mutated, many, failed, audit, empty, has_a = (
            value != (at == flip)
            for at, value in enumerate((ctx.mutated, ctx.tool_calls_total > 2, ctx.verify_failed, ctx.audit_mode,
                                        ctx.final_text == "", "a" in ctx.final_text))
        )  # fmt: skip
        return (mutated or many) and not failed and (empty if audit else has_a)

    for at, clause in enumerate(clauses):
        flipped = [plain(ctx, at) for ctx in contexts]
        missed = [n for n, ctx in enumerate(contexts) if flipped[n] and not plain(ctx, None)]
        assert clause.missed.tolist() == missed
        assert clause.matters == (flipped != [plain(ctx, None) for ctx in contexts])


def test_points_outside_the_scope_of_a_corpus_count_nowhere():
    rng = random.Random(33)
    walks = [random_walk(rng) for _ in range(30)]
    rules = random_rules(rng, later=False)
    inside = [number % 3 > 0 for number in range(len(walks))]
    [view] = views_of(walks)
    scope = np.array([kept for walk, kept in zip(walks, inside, strict=True) for _ in walk.points])
    [alone] = views_of([walk for walk, kept in zip(walks, inside, strict=True) if kept])
    scoped = replace(view, scope=scope)
    assert replay_segment(scoped, rules).counts == replay_segment(alone, rules).counts
    edited = [*rules, Rule("NEW", "final", 1, tree_of("ctx.mutated || 'USER-01' in ctx.nudges"))]
    ours, theirs = (LiveEffects([points], rules).effect(edited, "NEW") for points in (scoped, alone))
    assert ours == replace(theirs, ms=ours.ms)


def test_points_after_a_change_in_their_turn_are_counterfactual():
    rng = random.Random(8)
    walks = [random_walk(rng) for _ in range(20)]
    before = [Rule("A", "final", 2, tree_of("ctx.mutated")), Rule("B", "round", 2, tree_of("true"))]
    after = [Rule("B", "round", 2, tree_of("true")), Rule("A", "final", 1, tree_of("ctx.mutated"))]
    [view] = views_of(walks)
    old, new = (replay_segment(view, rules).outcome for rules in (before, after))
    found = counterfactual(view.columns, old, new, translation(before, after))
    expected, turn, changed = [], -1, False
    for place, its_turn in enumerate(view.columns.field("turn").tolist()):
        changed = changed and its_turn == turn
        turn = its_turn
        expected.append(changed)
        fired_before, fired_after = ("AB"[old[place]] if old[place] != NONE else None,
                                     "BA"[new[place]] if new[place] != NONE else None)  # fmt: skip
        changed = changed or fired_before != fired_after
    assert found.tolist() == expected
    assert any(expected)


def effect_of(walks, source, stage="final"):
    rule = Rule("X", stage, 1, tree_of(source))
    return LiveEffects(views_of(walks), []).effect([rule], "X")


def test_the_three_kinds_of_nought_are_told_apart():
    rng = random.Random(1)
    walks = [random_walk(rng) for _ in range(30)]
    assert effect_of(walks, "ctx.tool_calls_total > 1000").zero == "zero"
    assert effect_of(walks, "ctx.tool_calls_total > 1").zero is None
    assert effect_of([], "ctx.mutated").zero == "no-data"
    unknown = [replace(walk, facts=replace(walk.facts, step_budget=None, tools_known=False)) for walk in walks]
    assert effect_of(unknown, "ctx.budget_low").zero == "not-evaluable"
    assert effect_of(unknown, "ctx.budget_low && ctx.tool_calls_total > 1000").zero == "not-evaluable"
    assert effect_of(unknown, "ctx.tools_available && ctx.tool_calls_total > 1000").zero == "not-evaluable"
    only_rounds = [replace(w, points=[p._replace(stage="round") for p in w.points]) for w in walks]
    assert effect_of(only_rounds, "ctx.mutated").zero == "no-data"


def test_an_effect_is_json():
    rng = random.Random(1)
    shown = effect_of([random_walk(rng) for _ in range(30)], "ctx.mutated").as_json()
    names = "fires matches shadowed capped points newly gone same others exact seen low high zero ms"
    assert set(shown) == set(names.split())
    assert shown["newly"] == shown["fires"] > 0
    assert by_definition([], []) == ([], [])
