"""Following a model token by token."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chats.domain.history_items import ModelItem, Segment, UserItem, history_from_json, response_to_json
from chats.domain.js_json import ABSENT
from chats.domain.llama_text import LlamaText, SpecialToken, SpecialTokensText
from chats.domain.output_parsing.generated import GenerationError, GenerationOptions
from chats.domain.output_parsing.generation import Generation
from chats.domain.output_parsing.segments import StreamEvent
from chats.domain.output_parsing.vocabulary import Vocabulary
from chats.domain.wrappers import build_wrapper
from tests.shared_data import SHARED, needs_shared

CHATML = build_wrapper("ChatMLChatWrapper")
QWEN = build_wrapper("QwenChatWrapper")
FUNCTIONS: dict[str, dict[str, Any]] = {
    "getWeather": {"params": {"type": "object", "properties": {"city": {"type": "string"}}}},
    "getDate": {},
}
CHAT = [UserItem("Hi"), ModelItem(())]
EOS = SpecialToken("EOS")


def answer(wrapper: Any, *chunks: Any, functions: Any = None, **options: Any) -> Generation:
    generation = Generation(wrapper, CHAT, functions, options=GenerationOptions(**options))
    for chunk in chunks:
        generation.feed(chunk)
    return generation


def ended(generation: Generation) -> tuple[list[Any], str]:
    assert generation.result is not None
    return generation.result.entries, generation.result.stop_reason


def test_text_ends_at_a_stop_text_and_what_follows_is_left_alone() -> None:
    generation = answer(CHATML, "Hello<|im_end|>ignored", EOS)
    assert ended(generation) == (["Hello"], "stopGenerationTrigger")
    assert generation.consumed == len("Hello<|im_end|>")


def test_a_stop_text_that_comes_to_nothing_is_released() -> None:
    assert ended(answer(CHATML, "a <|im_e", "nough", EOS)) == (["a <|im_enough"], "eogToken")


def test_plain_text_is_never_a_special_token() -> None:
    vocabulary = Vocabulary(["<think>", "</think>", "<|im_end|>"])
    generation = Generation(QWEN, CHAT, vocabulary=vocabulary)
    generation.feed("<think>\nno")
    generation.feed(SpecialTokensText("<|im_end|>"))
    assert ended(generation) == (["<think>\nno"], "stopGenerationTrigger")


def test_events_tell_of_text_as_soon_as_it_is_certain() -> None:
    generation = Generation(QWEN, CHAT)
    assert generation.feed("A<thi") == [StreamEvent(None, "A")]
    assert generation.feed("nk>\nhm") == [StreamEvent("thought", "hm", start=True)]
    assert generation.feed("\n</think>") == [StreamEvent("thought", "", end=True)]
    assert generation.feed("b") == [StreamEvent(None, "b")]


def test_a_call_ends_the_answer() -> None:
    generation = answer(CHATML, 'Ok ||call: getWeather\n{"city": "Rome"}\n\n\n\n', functions=FUNCTIONS)
    assert ended(generation) == (["Ok "], "functionCalls")
    [call] = generation.finished_calls
    assert (call.name, call.params, str(call.raw)) == (
        "getWeather",
        {"city": "Rome"},
        '||call: getWeather({"city": "Rome"})',
    )


def test_a_function_without_params_needs_none() -> None:
    [call] = answer(CHATML, "||call: getDate\n", functions=FUNCTIONS).finished_calls
    assert (call.name, call.params) == ("getDate", ABSENT)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("||call: nope\n", 'Function name "nope" is not in the supplied functions object'),
        ('||call: getWeather\n{"city": 5}\n\n\n\n', 'Expected type "string" but got "number"'),
        ("||call: getWeather\n \n\n\n\n", 'Expected function call params for function "getWeather" to not be empty'),
    ],
)
def test_calls_that_cannot_be_made_are_errors(output: str, message: str) -> None:
    with pytest.raises(GenerationError, match=message):
        answer(CHATML, output, functions=FUNCTIONS)


def test_an_impossible_function_name_is_refused_at_once() -> None:
    with pytest.raises(GenerationError, match="contains spaces"):
        Generation(CHATML, CHAT, {"a b": {}})


def test_the_limit_of_tokens_drops_what_was_held_back() -> None:
    assert ended(answer(CHATML, "abc<|im", max_tokens=6)) == (["abc"], "maxTokens")


def test_an_open_thought_goes_on_and_is_joined_with_what_was_there() -> None:
    history = [UserItem("Hi"), ModelItem((Segment("thought", "I was", False),))]
    generation = Generation(QWEN, history, now=lambda: "now")
    generation.feed(LlamaText(" thinking\n</think>Done", EOS))
    assert response_to_json(generation.history()[-1].response) == [  # type: ignore[union-attr]
        {"type": "segment", "segmentType": "thought", "text": "I was thinking", "ended": True, "endTime": "now"},
        "Done",
    ]


def test_a_thought_that_used_up_its_budget_is_closed() -> None:
    generation = answer(QWEN, "<think>\nabcdef", EOS, budgets={"thought": 3})
    entries, _ = ended(generation)
    assert [(entry.text, entry.ended) if isinstance(entry, Segment) else entry for entry in entries] == [
        "",
        ("abc", True),
        "def",
    ]


CHUNKS = st.lists(
    st.sampled_from(["<think>\n", "\n</think>", "a", "<|im_", "end|>", "||call: ", "<tool_call>", "\n", '{"name": "'])
)


@given(CHUNKS, st.data())
def test_it_does_not_matter_how_the_output_is_cut(chunks: list[str], data: st.DataObject) -> None:
    text = "".join(chunks)
    cut = []
    rest = text
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        cut.append(rest[:size])
        rest = rest[size:]
    assert _followed(*cut) == _followed(text)


def _followed(*chunks: str) -> Any:
    try:
        return _outcome(answer(QWEN, *chunks, EOS, functions=FUNCTIONS))
    except GenerationError as error:
        return str(error)


def _outcome(generation: Generation) -> Any:
    if generation.result is None:
        return None
    entries = [
        (entry.segment_type, entry.text, entry.ended, entry.raw) if isinstance(entry, Segment) else entry
        for entry in generation.result.entries
    ]
    return entries, generation.result.stop_reason, generation.result.calls


def _recorded() -> Iterator[Any]:
    path = SHARED / "peers" / "node-llama-cpp" / "golden" / "parse-stream.json"
    for case in json.loads(path.read_text("utf-8"))["cases"]:
        if "output" in case and "jinja" not in case:
            yield case


@needs_shared
def test_recording_contexts_does_not_change_an_answer() -> None:
    # The recorded results are compared with contexts on; without them less is rendered again.
    for case in _recorded():
        wrapper = build_wrapper(case["wrapper"], case.get("wrapperOptions"))
        generation = Generation(
            wrapper,
            history_from_json(case["history"]),
            case.get("functions"),
            vocabulary=Vocabulary(case["specialTokens"]),
            options=_options(case.get("options") or {}),
            now=lambda: "2025-03-09T12:34:56.789Z",
        )
        for item in case["script"]:
            if isinstance(item, str):
                generation.feed(item)
            else:
                generation.feed(
                    SpecialTokensText(item["special"]) if "special" in item else SpecialToken(item["builtin"])
                )
        assert generation.result is not None, case["note"]
        assert response_to_json(generation.result.entries) == case["output"]["fullResponse"], case["note"]
        assert generation.result.stop_reason == case["output"]["stopReason"], case["note"]
        assert generation.contexts == []


def _options(options: Any) -> GenerationOptions:
    return GenerationOptions(
        trim_end=options.get("trimWhitespaceSuffix", False),
        stop_triggers=options.get("customStopTriggers", ()),
        max_tokens=options.get("maxTokens"),
        max_parallel_calls=options.get("maxParallelFunctionCalls"),
        budgets={"thought": (options.get("budgets") or {}).get("thoughtTokens")},
    )
