"""The columnar evaluator agrees with the scalar one at every point."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.domain.atoms import atoms_of
from rules.domain.language import check
from rules.domain.masks import bounds, mask
from rules.domain.points import Defaults
from rules.domain.scalar import compile_scalar
from tests.rules.domain.corpora import contexts_of, corpus_walks, random_walk, views_of
from tests.rules.domain.language.random_predicates import CODES, Predicates
from tests.shared_data import needs_shared


def tree_of(source: str):
    checked = check(source)
    assert checked.tree is not None, (source, checked.diagnostics)
    return checked.tree


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**9), st.sampled_from([1, 7, 65_536]))
def test_columns_agree_with_the_scalar_evaluator(seed, limit):
    rng = random.Random(seed)
    defaults = Defaults(rng.choice([None, 4]), rng.choice([None, True]), rng.choice([None, True]))
    walks = [random_walk(rng) for _ in range(rng.randint(1, 4))]
    contexts = contexts_of(walks, defaults)
    views = views_of(walks, defaults, limit)
    for number in range(3):
        source = Predicates(seed + number).one()
        tree = tree_of(source)
        found = [bool(value) for view in views for value in mask(tree, view)]
        assert found == [compile_scalar(tree)(context) for context in contexts], source


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 10**9))
def test_open_counters_bound_the_predicate(seed):
    rng = random.Random(seed)
    walks = [random_walk(rng) for _ in range(3)]
    [view] = views_of(walks)
    source = Predicates(seed).one()
    tree = tree_of(source)
    open_codes = frozenset(rng.sample(CODES, 2))
    found = bounds(tree, view, open_codes)
    for _ in range(5):
        own = {
            code: np.array([rng.choice([0, 0, 1, 2]) for _ in range(len(view))], dtype=np.int64) for code in open_codes
        }
        counters = {code: view.counter(code) + extra for code, extra in own.items()}
        exact = mask(tree, type(view)(view.columns, view.atoms, view.selection, counters))
        assert not (found.sure & ~exact).any(), source
        assert not (exact & ~found.may).any(), source


@needs_shared
def test_both_evaluators_and_cel_agree_on_the_made_up_corpus():
    from tests.rules.domain.language.cel_oracle import Oracle

    walks = corpus_walks(200)
    views, contexts = views_of(walks), contexts_of(walks)
    assert len(contexts) == 4014
    oracle, rng = Oracle(), random.Random(3)
    sample = sorted(rng.sample(range(len(contexts)), 120))
    for seed in range(24):
        source = Predicates(50_000 + seed).one()
        tree = tree_of(source)
        found = [bool(value) for view in views for value in mask(tree, view)]
        assert found == [compile_scalar(tree)(context) for context in contexts], source
        assert [found[at] for at in sample] == oracle.holds(source, [contexts[at] for at in sample]), source


def test_cheap_conjuncts_spare_the_texts_of_the_other_points():
    walks = [random_walk(random.Random(seed)) for seed in range(40)]
    [view] = views_of(walks)
    tree = tree_of("ctx.tool_calls_total == 300 && ctx.mutated && ctx.final_text.contains('a')")
    found = mask(tree, view)
    assert list(found) == [compile_scalar(tree)(context) for context in contexts_of(walks)]
    assert view.atoms.fresh == set()
    mask(tree_of("ctx.final_text.contains('a')"), view)
    assert len(view.atoms.fresh) == 1


def test_filling_finds_the_same_bits_as_asking_term_by_term():
    walks = [random_walk(random.Random(seed)) for seed in range(30)]
    trees = [tree_of(f"{name}({text})") for name in ("asks_user", "announces_action", "is_go_ahead")
             for text in ("ctx.final_text", "last_paragraph(ctx.final_text)", "ctx.user_text")]  # fmt: skip
    trees.append(tree_of("size(ctx.user_text) > 3 || ctx.final_text.contains('a')"))
    [filled], [asked] = views_of(walks), views_of(walks)
    filled.atoms.fill(trees)
    bits = filled.atoms.take_fresh()
    for tree in trees:
        for key, term in atoms_of(tree).items():
            assert list(mask(term, filled)) == list(mask(term, asked))
            assert bits[key] == asked.atoms.packed(key)
    filled.atoms.fill(trees)
    assert filled.atoms.take_fresh() == {}
