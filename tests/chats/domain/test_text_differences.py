"""Where texts differ: what is left out of both is equal, and lines tell what went and what came."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from chats.domain.text_differences import Range, diff_rows, differing_ranges, merged

texts = st.text(alphabet="ab\n<|>[]X", max_size=60)


def without(text: str, ranges: list[Range]) -> str:
    kept = []
    at = 0
    for start, end in ranges:
        kept.append(text[at:start])
        at = end
    return "".join([*kept, text[at:]])


@given(texts, texts)
def test_what_is_not_marked_is_the_same_in_both(first: str, second: str) -> None:
    left, right = differing_ranges(first, second)
    assert without(first, merged(left)) == without(second, merged(right))
    if first == second:
        assert left == right == []


@given(texts, texts)
def test_rows_give_both_texts_back(first: str, second: str) -> None:
    rows = diff_rows(first, second)
    if first == second:
        assert rows == []
    if any(row.kind == "skip" for row in rows) or first == second:
        return
    assert "\n".join(row.text for row in rows if row.kind in ("same", "gone")) == first
    assert "\n".join(row.text for row in rows if row.kind in ("same", "added")) == second


def test_the_marker_stands_at_the_token_that_differs() -> None:
    left, right = differing_ranges("<|im_start|>user\nhello<|im_end|>", "<|im_start|>user\nhello<|eot|>")
    assert [("<|im_start|>user\nhello<|im_end|>")[a:b] for a, b in left] == ["im_end"]
    assert [("<|im_start|>user\nhello<|eot|>")[a:b] for a, b in right] == ["eot"]


def test_long_texts_of_one_repeated_line_are_told_apart_quickly() -> None:
    first, second = "x\n" * 100_000, "x\n" * 99_999 + "y\n"
    assert differing_ranges(first, second) == ([(199_998, 199_999)], [(199_998, 199_999)])
