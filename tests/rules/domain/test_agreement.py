"""Intervals and agreement against published tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.domain.agreement import Share, agreed, cohen, fleiss, pairwise, precision, recall, wilson


# R. G. Newcombe, "Two-sided confidence intervals for the single proportion", 1998, table I, method 3.
@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_intervals_of_a_published_table(hits: int, n: int, low: float, high: float) -> None:
    assert wilson(hits, n) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_holds_the_share_and_mirrors(case: tuple[int, int]) -> None:
    hits, n = case
    low, high = wilson(hits, n)
    assert 0 <= low <= hits / n <= high <= 1
    other = wilson(n - hits, n)
    assert (1 - other[1], 1 - other[0]) == pytest.approx((low, high))
    # The ends are where the score test is just not rejected: the definition of the interval.
    for end in (low, high):
        if 0 < end < 1:
            assert abs(hits / n - end) == pytest.approx(1.959963984540054 * (end * (1 - end) / n) ** 0.5)


def test_too_few_labels() -> None:
    assert not Share(19, 19).is_enough
    assert Share(1, 20).is_enough
    assert Share(0, 0).value is None
    assert Share(0, 0).interval is None


# J. L. Fleiss, "Measuring nominal scale agreement among many raters", 1971: the table that is quoted most often.
FLEISS_TABLE = [
    (0, 0, 0, 0, 14), (0, 2, 6, 4, 2), (0, 0, 3, 5, 6), (0, 3, 9, 2, 0), (2, 2, 8, 1, 1),
    (7, 7, 0, 0, 0), (3, 2, 6, 3, 0), (2, 5, 3, 2, 2), (6, 5, 2, 1, 0), (0, 2, 2, 3, 7),
]  # fmt: skip


def test_fleiss_of_the_published_table() -> None:
    items = [[value for value, count in enumerate(row) for _ in range(count)] for row in FLEISS_TABLE]
    assert fleiss(items) == pytest.approx(0.210, abs=5e-4)


# J. Cohen's grants example as textbooks have it: 20 both yes, 15 both no, 5 and 10 apart.
def test_cohen_of_the_textbook_example() -> None:
    pairs = [("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15
    assert cohen(pairs) == pytest.approx(0.4)


def test_agreement_without_or_with_only_one_value() -> None:
    assert cohen([]) is None
    assert fleiss([["right"]]) is None
    assert cohen([("right", "right")]) == 1
    assert fleiss([["right", "right"], ["right", "right", "right"]]) == 1


def test_a_majority_settles_an_item() -> None:
    assert agreed(["right", "wrong", "right"]) == "right"
    assert agreed(["right", "wrong"]) is None
    assert agreed(["unsure", "wrong"]) == "wrong"
    assert agreed(["unsure"]) is None


def test_precision_and_recall_leave_open_items_out() -> None:
    items = [["right"], ["wrong"], ["right", "wrong"], ["unsure"], ["missed"], ["right", "right"]]
    assert precision(items) == Share(2, 3)
    assert recall(items) == Share(2, 3)


def test_pairs_of_reviewers() -> None:
    found = pairwise([{"a": "right", "b": "right"}, {"a": "wrong", "b": "right"}, {"a": "right", "c": "right"}])
    assert [(p.first, p.second, p.items, p.same) for p in found] == [("a", "b", 2, 1), ("a", "c", 1, 1)]
