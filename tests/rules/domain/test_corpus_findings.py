"""What a corpus tells about a predicate while it is edited."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np

from rules.domain.corpus_findings import Observed, corpus_warnings, observed_values
from rules.domain.digests import corpus_digest, result_digest
from rules.domain.language import check
from rules.domain.replaying import replay_segment
from rules.domain.segment_cache import SegmentCache
from tests.rules.domain.corpora import contexts_of, random_walk, views_of
from tests.rules.domain.test_settling import random_rules


def walks_of(seed: int, count: int = 40):
    rng = random.Random(seed)
    return [random_walk(rng) for _ in range(count)]


def warnings_of(walks, source, stage="final", **options):
    tree = check(source).tree
    found = corpus_warnings(tree, views_of(walks, limit=50), stage, **options)
    return [(d.code, source[d.start : d.end], dict(d.args)) for d in found]


def test_observed_values_are_counted_at_the_stage():
    walks = walks_of(1)
    points = [p for w in walks for p in w.points if p.stage == "final"]
    found = observed_values(views_of(walks, limit=50), "finish_reason", "final")
    assert {o.value: o.count for o in found} == {
        reason: sum(p.finish_reason == reason for p in points) for reason in {p.finish_reason for p in points}
    }
    assert [o.count for o in found] == sorted((o.count for o in found), reverse=True)
    assert observed_values(views_of(walks), "final_text", "final") == ()


def test_unknown_values_are_told_as_unknown():
    walks = [replace(walk, facts=replace(walk.facts, verify_available=False)) for walk in walks_of(1)]
    [found] = observed_values(views_of(walks), "mutated", "final")
    assert found == Observed(None, sum(p.stage == "final" for w in walks for p in w.points))


def test_fields_that_say_nothing_are_warned_of():
    walks = walks_of(2)
    silent = [replace(w, facts=replace(w.facts, step_budget=None), points=[p._replace(mutated=True) for p in w.points])
              for w in walks]  # fmt: skip
    known = [replace(w, facts=replace(w.facts, verify_available=True)) for w in silent]
    assert warnings_of(known, "ctx.budget_low || ctx.mutated") == [
        ("never-seen", "ctx.budget_low", {"name": "budget_low"}),
        ("one-value", "ctx.mutated", {"name": "mutated", "value": True}),
    ]
    assert warnings_of([], "ctx.budget_low") == []


def test_clauses_without_effect_are_those_whose_flip_changes_nothing():
    walks = walks_of(3)
    source = "ctx.tool_calls_total > 500 && ctx.verify_failed && ctx.read_only_rounds > 400"
    assert all(c.tool_calls_total <= 500 for c in contexts_of(walks))
    assert [w[:2] for w in warnings_of(walks, source)] == [
        ("no-effect", "ctx.tool_calls_total > 500"),
        ("no-effect", "ctx.verify_failed"),
        ("no-effect", "ctx.read_only_rounds > 400"),
    ]
    assert warnings_of(walks, "ctx.verify_failed") == []


def test_phrases_in_one_language_are_warned_of():
    def guess(text):
        return "fr" if "é" in text else "en" if "the" in text else ""

    one = "ctx.final_text.contains('the rest') || ctx.final_text.contains('!')"
    assert ("one-language", "'the rest'", {"language": "en"}) in warnings_of(walks_of(3), one, language_of=guess)
    both = one + " || ctx.final_text.contains('été')"
    assert "one-language" not in [w[0] for w in warnings_of(walks_of(3), both, language_of=guess)]


def test_a_tenant_never_finds_what_another_one_loaded():
    cache = SegmentCache(100)
    assert cache.get("a", 1, lambda: ("of a", 10)) == "of a"
    assert cache.get("b", 1, lambda: ("of b", 10)) == "of b"
    assert cache.get("a", 1, lambda: ("again", 10)) == "of a"
    cache.drop("a")
    assert cache.get("a", 1, lambda: ("again", 10)) == "again"


def test_a_greedy_tenant_gives_way_and_the_other_keeps_its_share():
    cache = SegmentCache(100)
    for key in range(4):
        cache.get("small", key, lambda: ("kept", 10))
    for key in range(50):
        cache.get("greedy", key, lambda: ("x", 10))
    assert cache.size <= 100
    assert all(cache.get("small", key, lambda: ("loaded", 10)) == "kept" for key in range(4))
    assert cache.get("greedy", 49, lambda: ("loaded", 10)) == "x"
    assert cache.get("greedy", 0, lambda: ("loaded", 10)) == "loaded"


def test_one_entry_above_the_limit_is_kept_as_long_as_it_is_the_newest():
    cache = SegmentCache(100)
    cache.get("a", 1, lambda: ("large", 500))
    assert cache.get("a", 1, lambda: ("again", 500)) == "large"
    cache.get("a", 2, lambda: ("other", 10))
    assert cache.get("a", 1, lambda: ("again", 500)) == "again"


def test_digests_name_the_corpus_and_the_result():
    some, all_ = np.array([True, False]), np.array([True, True])
    assert corpus_digest([("a", None), ("b", some)]) == corpus_digest([("a", all_), ("b", some)])
    assert corpus_digest([("a", None)]) != corpus_digest([("a", some)])
    assert corpus_digest([("a", None), ("b", None)]) != corpus_digest([("b", None), ("a", None)])
    walks, rules = walks_of(5), random_rules(random.Random(5), later=False)
    first, second = ([replay_segment(view, rules) for view in views_of(walks, limit=40)] for _ in range(2))
    assert result_digest(first) == result_digest(second)
    assert result_digest(first) != result_digest(first[1:])
