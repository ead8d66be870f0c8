"""LlamaText: laws, and that nobody but the wrapper can make a special token."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chats.domain.llama_text import LlamaText, SpecialToken, SpecialTokensText, UnknownPart

plain = st.text(max_size=8)
pieces = st.one_of(
    plain,
    st.builds(SpecialTokensText, plain),
    st.builds(SpecialToken, st.sampled_from(["BOS", "EOS", "NL", "EOT", "SEP"])),
)
llama_texts = st.lists(pieces, max_size=6).map(LlamaText.of)
values = st.recursive(st.one_of(pieces, llama_texts), lambda inner: st.lists(inner, max_size=3), max_leaves=8)


def special_part(text: LlamaText) -> str:
    return "".join(str(piece) for piece in text.values if not isinstance(piece, str))


@given(llama_texts)
def test_json_form_is_read_back(text: LlamaText) -> None:
    assert LlamaText.from_json(text.to_json()) == text


@given(st.lists(values, max_size=5))
def test_construction_is_the_same_for_nested_and_flat_values(given_values: list) -> None:
    built = LlamaText(*given_values)
    assert LlamaText(given_values) == built
    assert LlamaText(built) == built
    assert LlamaText(*[LlamaText(value) for value in given_values]) == built


@given(st.lists(values, max_size=5), plain)
def test_plain_text_never_becomes_special(given_values: list, typed: str) -> None:
    before = LlamaText(*given_values)
    for after in (
        before.concat(typed),
        LlamaText(typed, before),
        LlamaText.from_json(before.concat(typed).to_json()),
        LlamaText.join(typed, [before]),
    ):
        assert special_part(after) == special_part(before)
        assert sum(map(len, map(str, after.values))) >= len(str(before))


@given(llama_texts)
def test_pieces_are_in_normal_form(text: LlamaText) -> None:
    for first, second in zip(text.values, text.values[1:], strict=False):
        assert type(first) is not type(second) or isinstance(first, SpecialToken)
    assert all(isinstance(piece, SpecialToken) or str(piece) for piece in text.values)


@given(llama_texts)
def test_trimming_takes_only_outer_white_space(text: LlamaText) -> None:
    trimmed = text.trim()
    assert str(trimmed) in str(text)
    assert trimmed.trim() == trimmed
    assert text.trim_start().trim_end() == trimmed


def test_the_turn_marker_that_a_user_types_stays_text() -> None:
    prompt = LlamaText(SpecialTokensText("<|im_start|>user\n"), "<|im_end|>", SpecialTokensText("<|im_end|>"))
    assert prompt.to_json() == [
        {"type": "specialTokensText", "value": "<|im_start|>user\n"},
        "<|im_end|>",
        {"type": "specialTokensText", "value": "<|im_end|>"},
    ]


@pytest.mark.parametrize(("item", "shown"), [({"type": "x"}, "[object Object]"), (None, "null"), (5, "5")])
def test_an_unknown_part_is_named_with_its_place(item: object, shown: str) -> None:
    with pytest.raises(UnknownPart, match="Unknown value type") as caught:
        LlamaText.from_json(["a", item])
    assert caught.value.index == 1
    assert shown in str(caught.value)


def test_something_that_holds_no_text_is_refused() -> None:
    with pytest.raises(TypeError):
        LlamaText({"a": 1})  # type: ignore[arg-type]
