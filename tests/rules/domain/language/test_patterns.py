"""Patterns: RE2 only, bounded in size and speed (rule-engine.md section 2.3)."""

from __future__ import annotations

import pytest

from rules.domain.language import check, patterns
from rules.domain.language.patterns import found_in, problem_in, sample_of, spans_in


def test_twelve_alternative_phrases_fit():
    phrases = ("unable to", "cannot", "je ne peux pas", "impossible de", "no access to", "pas accès à", "not able to",
               "could not", "failed to", "sorry", "désolé", "hors de portée")  # fmt: skip
    assert problem_in(f"(?i)({'|'.join(phrases)}) ") is None


def test_what_python_takes_minutes_for_is_quick():
    assert problem_in(r"(\w+\s?)+:$") is None
    assert not found_in(r"(\w+\s?)+:$", "a" * 100_000)
    assert found_in("(a+)+$", "a" * 100_000)


def test_a_pattern_that_is_slow_on_the_corpus_is_refused(monkeypatch):
    monkeypatch.setattr(patterns, "MIN_SPEED", 10**6)
    sample = sample_of([f"{number} the quick brown fox" for number in range(999)])
    found = problem_in("quick brown cat$", sample)
    assert found is not None
    assert (found.code, found.args["limit"]) == ("regex-slow", 10**6)
    [error] = check("ctx.final_text.matches('quick brown cat$')", sample=sample).errors
    assert (error.code, error.start, error.end) == ("regex-slow", 23, 41)


def test_samples_of_equal_texts_are_equal():
    assert sample_of(["a", "b"]) == sample_of(["a", "b"])
    assert sample_of(["a", "b"]) != sample_of(["ab"])
    assert sample_of([]) == sample_of([""]) == patterns.built_in_sample()


def test_spans_are_code_points():
    assert spans_in("é+", "😀éé aé") == [(1, 3), (5, 6)]
    assert spans_in("x*", "aaa") == []
    assert spans_in("a", "a" * 500, most=3) == [(0, 1), (1, 2), (2, 3)]


def test_the_boundary_that_is_offered_as_a_repair_is_accepted_and_finds_the_word():
    source = r"ctx.final_text.matches(r'\bétapes')"
    [warning] = check(source).diagnostics
    repaired = check(source[: warning.start] + warning.replace + source[warning.end :])
    assert repaired.diagnostics == ()
    pattern = repaired.tree.children[1].value
    assert found_in(pattern, "les étapes")
    assert not found_in(pattern, "désétapes")
    assert not found_in(r"\bétapes", "les étapes")


@pytest.mark.parametrize("pattern", [r"([^\pL\pN_]){20}", r"\pL{3}"])
def test_other_large_tables_stay_refused(pattern):
    found = problem_in(pattern)
    assert found is not None
    assert found.code == "regex-too-large"


def test_of_a_text_above_a_megabyte_only_the_beginning_is_searched():
    text = "é" * 499_999 + "ax" + "z"
    assert found_in("a", text)
    assert found_in("x", text)
    assert not found_in("z", text)
    assert not found_in("é", "a" * 999_999 + "é")


def test_lone_surrogates_in_a_text_are_no_error():
    assert found_in("a.b", "a\ud800b")
    assert spans_in("b", "a\ud800b") == [(2, 3)]
