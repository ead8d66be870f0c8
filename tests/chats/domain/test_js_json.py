"""JSON as JavaScript prints it; the expected texts were printed by Node."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chats.domain.js_json import ABSENT, js_number, js_trim, json_compact, json_dumps, parse_json, replace_marker

json_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**53), 2**53),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=5),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=4), inner, max_size=4)),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.0, "1"),
        (-0.0, "0"),
        (0.00001, "0.00001"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (1.5e-8, "1.5e-8"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (123456789.123, "123456789.123"),
        (9007199254740993, "9007199254740992"),
        (12345678901234567890, "12345678901234567000"),
        (5e-324, "5e-324"),
        (10**400, "Infinity"),
    ],
)
def test_numbers_are_spelled_as_in_javascript(number: float, text: str) -> None:
    assert js_number(number) == text


@given(json_values)
def test_what_is_printed_is_read_back(value: object) -> None:
    # Doubles from 2^53 on print as integers, which Python would read as such.
    assert json.loads(json_dumps(value), parse_int=float) == value
    assert json.loads(json_compact(value), parse_int=float) == value


def test_keys_like_array_indexes_come_first() -> None:
    given_value = {"b": 1, "10": 2, "9": 3, "01": 4, "-1": 5, "4294967295": 6, "4294967294": 7}
    assert json_compact(given_value) == '{"9":3,"10":2,"4294967294":7,"b":1,"01":4,"-1":5,"4294967295":6}'


def test_absent_values_have_no_key_and_are_null_in_lists() -> None:
    assert json_dumps({"a": ABSENT, "b": [ABSENT, 1]}) == '{"b": [null, 1]}'
    with pytest.raises(ValueError, match="absent"):
        json_dumps(ABSENT)


def test_strings_keep_non_ascii_and_escape_lone_surrogates() -> None:
    assert json_dumps("é\u007f\u2028😀\ud83d\x1b") == '"é\u007f\u2028😀\\ud83d\\u001b"'


def test_trimming_knows_javascript_white_space() -> None:
    assert js_trim("\ufeff\u00a0\u3000a\u0085\u001c ") == "a\u0085\u001c"


def test_dollar_signs_in_a_replacement_are_special() -> None:
    assert replace_marker("<{{m}}>", "{{m}}", "$$ $& $1 $` $'") == "<$ {{m}} $1 < >>"
    assert replace_marker("a-b-c", "-", "$`") == "aaba-bc"


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", "{", "01", "'a'", "[" * 100_000])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  the message is Python's own for most of them
        parse_json(text)
