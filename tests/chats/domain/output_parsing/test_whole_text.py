"""Whole answers: text, segments and calls with their places."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chats.domain.history_items import FunctionCall, Segment
from chats.domain.js_json import ABSENT
from chats.domain.output_parsing.whole_text import ParsedEntry, parse_output, segment_text
from chats.domain.wrapper_settings import BASE_SETTINGS, ChatWrapperSettings
from chats.domain.wrappers import WRAPPERS, ChatWrapper, build_wrapper

QWEN = build_wrapper("QwenChatWrapper")
BASE = BASE_SETTINGS
_TEMPLATE_OPTIONS = {
    "template": "{{history}}{{completion}}<end>",
    "historyTemplate": {"system": "{{message}}", "user": "{{message}}", "model": "{{message}}"},
}
_OPTIONS: dict[str, list[dict[str, Any]]] = {
    "DeepSeekChatWrapper": [
        {},
        {"functionCallingSyntax": "simplified"},
        {"functionCallingSyntax": "original", "parallelFunctionCalling": True},
    ],
    "FunctionaryChatWrapper": [{"variation": "v3"}, {"variation": "v2.llama3"}, {"variation": "v2"}],
    "Llama3ChatWrapper": [{}, {"parallelFunctionCalling": False}],
    "QwenChatWrapper": [{}, {"variation": "3.5"}],
    "TemplateChatWrapper": [
        _TEMPLATE_OPTIONS,
        {
            **_TEMPLATE_OPTIONS,
            "functionCallMessageTemplate": {
                "call": "[[call: {{functionName}}({{functionParams}})]]",
                "result": " [[result: {{functionCallResult}}]]",
            },
        },
    ],
}
BUILT_IN = [
    pytest.param(build_wrapper(wrapper_id, options), id=f"{wrapper_id}-{number}")
    for wrapper_id in WRAPPERS
    for number, options in enumerate(_OPTIONS.get(wrapper_id, [{}]))
]
HEADERS = {"Harmony": ["<|start|>assistant<|channel|>commentary"]}
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,12}", fullmatch=True)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False)
)
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12)


def entries(text: str, wrapper_settings: ChatWrapperSettings, functions: Any = None) -> list[Any]:
    return [item.entry for item in parse_output(text, wrapper_settings, functions)]


def calls_in(parsed: list[ParsedEntry]) -> list[tuple[str, Any]]:
    return [(item.entry.name, item.entry.params) for item in parsed if isinstance(item.entry, FunctionCall)]


@pytest.mark.parametrize("wrapper", BUILT_IN)
@settings(max_examples=20)
@given(name=NAMES, params=JSON)
def test_a_rendered_call_parses_back_to_itself(wrapper: ChatWrapper, name: str, params: Any) -> None:
    text = str(wrapper.generate_function_call(name, params))
    *before, parsed = parse_output(text, wrapper.settings, {name: {}})
    # Harmony's calls begin with a message header, which its settings don't have.
    assert [item.entry for item in before] == HEADERS.get(wrapper.wrapper_name, [])
    assert isinstance(parsed.entry, FunctionCall)
    assert (parsed.entry.name, parsed.entry.params) == (name, params)
    assert (parsed.end, parsed.complete) == (len(text), True)
    assert parsed.entry.raw_call is not None
    assert str(parsed.entry.raw_call) == text[parsed.start :]


@pytest.mark.parametrize("wrapper", BUILT_IN)
@settings(max_examples=20)
@given(names=st.lists(NAMES, min_size=1, max_size=3), params=JSON)
def test_calls_of_a_rendered_response_parse_back(wrapper: ChatWrapper, names: list[str], params: Any) -> None:
    calls = [FunctionCall(name, params, result=1) for name in names]
    text = str(wrapper.generate_model_response_text(["Hello", *calls]))
    assert calls_in(parse_output(text, wrapper.settings, {name: {} for name in names})) == [
        (name, params) for name in names
    ]


@pytest.mark.parametrize("wrapper", BUILT_IN)
def test_absent_params_come_back_as_their_placeholder(wrapper: ChatWrapper) -> None:
    placeholder = wrapper.settings.functions.call.empty_call_params_placeholder
    text = str(wrapper.generate_function_call("f"))
    assert calls_in(parse_output(text, wrapper.settings, {"f": {}})) == [
        ("f", ABSENT if placeholder == "" else placeholder)
    ]


PIECES = st.sampled_from(
    [
        "<think>\n",
        "\n</think>",
        '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>',
        '<tool_call>\n{"name',
        "x",
        "\n",
        " ",
        "}",
    ]
)


@given(st.lists(PIECES).map("".join))
def test_entries_cover_the_text_in_order(text: str) -> None:
    parsed = parse_output(text, QWEN.settings)
    assert [item.start for item in parsed] == [0, *[item.end for item in parsed]][: len(parsed)]
    assert (parsed[-1].end if parsed else 0) == len(text)
    without_calls = parse_output(text, QWEN.settings, {})
    assert [item.entry for item in without_calls] == segment_text(text, QWEN.settings)


def test_a_call_stands_between_the_texts_around_it() -> None:
    text = 'Let me see. ||call: getWeather({"city": "Rome"}) Done.'
    before, call, after = parse_output(text, BASE)
    assert (before.entry, after.entry) == ("Let me see. ", " Done.")
    assert text[call.start : call.end] == '||call: getWeather({"city": "Rome"})'


@pytest.mark.parametrize(
    "text",
    [
        "||call: getWeather(",
        "||call: getWeather({broken})",
        "||call: getWeather({} trailing)",
        "||call: get weather({})",
        "||call: other({})",
        "||call: getWeather({}, {})",
        "||call: getWeather(NaN)",
        "||call: getWeather(" + "[" * 100_000,
    ],
)
def test_what_only_looks_like_a_call_is_text(text: str) -> None:
    assert entries(text, BASE, {"getWeather": {}}) == [text]


def test_without_functions_nothing_is_a_call() -> None:
    assert entries("||call: f()", BASE, {}) == ["||call: f()"]


def test_other_spellings_and_a_space_before_the_name_are_understood() -> None:
    assert calls_in(parse_output("||call:f(1)", BASE)) == [("f", 1)]
    assert calls_in(parse_output("||call:  f(1)", BASE)) == [("f", 1)]


def test_the_longest_known_name_wins() -> None:
    assert calls_in(parse_output("||call: pingAll()", BASE, {"ping": {}, "pingAll": {}})) == [("pingAll", ABSENT)]


def test_the_end_of_a_call_may_be_cut_off_with_the_answer() -> None:
    llama = build_wrapper("Llama3_1ChatWrapper")
    [call] = parse_output('<function=f>{"a": 1}</function>', llama.settings)
    assert not call.complete
    assert isinstance(call.entry, FunctionCall)
    assert call.entry.params == {"a": 1}


def test_calls_of_one_section_are_told_from_those_of_another() -> None:
    mistral = build_wrapper("MistralChatWrapper")
    one = '{"name": "f", "arguments": {}}'
    text = f"[TOOL_CALLS][{one}, {one}]EOS[TOOL_CALLS][{one}]EOS"
    chunks = [call.starts_new_chunk for call in entries(text, mistral.settings) if isinstance(call, FunctionCall)]
    assert chunks == [True, None, True]


def test_a_call_inside_a_thought_interrupts_it() -> None:
    call = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'
    first, made, rest, answer = entries(f"<think>\na{call}b\n</think>c", QWEN.settings)
    assert (first, rest, answer) == (Segment("thought", "a", False), Segment("thought", "b", True), "c")
    assert isinstance(made, FunctionCall)


def test_a_thought_may_end_right_after_a_call() -> None:
    call = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'
    assert entries(f"<think>\na{call}\n</think>c", QWEN.settings)[2:] == [Segment("thought", "", True), "c"]
