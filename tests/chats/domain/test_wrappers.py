"""Rendering: recorded results where present, laws over generated chats, and what can be changed."""

import copy
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chats.domain import wording as words
from chats.domain.history_items import (
    FunctionCall,
    HistoryItem,
    ModelItem,
    Segment,
    SystemItem,
    UserItem,
    history_to_json,
)
from chats.domain.js_json import ABSENT
from chats.domain.llama_text import LlamaText, SpecialTokensText
from chats.domain.wrapper_settings import SettingsError
from chats.domain.wrappers import WRAPPERS, Clock, InvalidWrapper, OptionsError, build_wrapper
from tests.chats.domain.test_js_json import json_values
from tests.chats.domain.test_llama_text import special_part
from tests.golden import wrappers as golden_wrappers
from tests.shared_data import SHARED, needs_shared

OPTIONS: dict[str, Any] = {
    "TemplateChatWrapper": {
        "template": "{{systemPrompt}}\n{{history}}A: {{completion}}\nQ:",
        "historyTemplate": {"system": "S: {{message}}\n", "user": "Q: {{message}}\n", "model": "A: {{message}}\n"},
    },
    "JinjaTemplateChatWrapper": {"template": "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}"},
}
BUILT_IN = [wrapper_id for wrapper_id in WRAPPERS if wrapper_id != "JinjaTemplateChatWrapper"]
FUNCTIONS = {
    "getWeather": {
        "description": "Look it up",
        "params": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
    "ping": {},
}
CLOCK = Clock(datetime(2025, 3, 9, 12, 0, tzinfo=UTC), UTC)

words_typed = st.sampled_from(["", "Hi!", "<|im_end|>", "</s>[INST]", " \n", "$& {{functionName}}", "<think>x</think>"])
calls = st.builds(
    FunctionCall,
    name=st.sampled_from(["getWeather", "ping", "a$&b"]),
    params=st.one_of(st.just(ABSENT), json_values),
    result=st.one_of(st.just(ABSENT), json_values),
    starts_new_chunk=st.one_of(st.none(), st.booleans()),
)
segments = st.builds(
    Segment, segment_type=st.sampled_from(["thought", "comment"]), text=words_typed, ended=st.booleans()
)
items = st.one_of(
    st.builds(SystemItem, words_typed.map(LlamaText)),
    st.builds(UserItem, words_typed),
    st.builds(ModelItem, st.lists(st.one_of(words_typed, calls, segments), max_size=4).map(tuple)),
)
histories = st.lists(items, max_size=7)
wrapper_ids = st.sampled_from(BUILT_IN)


def built(wrapper_id: str, **changes: Any) -> Any:
    return build_wrapper(wrapper_id, OPTIONS.get(wrapper_id), clock=CLOCK, **changes)


@needs_shared
def test_recorded_results_are_reproduced() -> None:
    found = golden_wrappers.tallies(SHARED / "peers" / "node-llama-cpp" / "golden")
    failures = {tally.relative: tally.failures[:3] for tally in found if not tally.jinja and tally.failures}
    assert failures == {}


@given(wrapper_ids, histories, st.booleans())
def test_rendering_never_changes_its_input(wrapper_id: str, history: list[HistoryItem], has_functions: bool) -> None:
    before = copy.deepcopy(history_to_json(history))
    functions = copy.deepcopy(FUNCTIONS) if has_functions else None
    built(wrapper_id).generate_context_state(history, functions)
    assert history_to_json(history) == before
    assert functions is None or functions == FUNCTIONS


@given(wrapper_ids, histories, st.booleans(), st.data())
def test_a_chat_that_grew_is_rendered_as_from_the_start(
    wrapper_id: str, history: list[HistoryItem], has_functions: bool, data: st.DataObject
) -> None:
    functions = FUNCTIONS if has_functions else None
    grown = built(wrapper_id)
    for length in data.draw(st.lists(st.integers(0, len(history)), max_size=4)):
        part = history[:length]
        fresh = built(wrapper_id)
        assert grown.generate_context_state(part, functions) == fresh.generate_context_state(part, functions)


@given(wrapper_ids, histories, st.text(max_size=12))
def test_what_a_user_types_never_reaches_special_text(wrapper_id: str, history: list[HistoryItem], typed: str) -> None:
    def special_of(text: str) -> str:
        state = built(wrapper_id).generate_context_state([*history, UserItem(f"x{text}"), ModelItem(("ok",))])
        return special_part(state.context_text)

    assert special_of(typed) == special_of("")


@given(wrapper_ids, histories)
def test_pieces_before_gluing_make_the_same_text(wrapper_id: str, history: list[HistoryItem]) -> None:
    wrapper = built(wrapper_id)
    pieces = wrapper.context_pieces(history, FUNCTIONS)
    assert LlamaText.of(pieces) == wrapper.generate_context_state(history, FUNCTIONS).context_text


@settings(max_examples=20)
@given(wrapper_ids)
def test_overridden_settings_are_what_calls_are_written_with(wrapper_id: str) -> None:
    change = {"functions": {"call": {"prefix": "CALL ", "suffix": " END"}, "result": {"suffix": " RESULT-END"}}}
    wrapper = built(wrapper_id, settings_override=change)
    text = str(wrapper.generate_function_calls_and_results([FunctionCall("ping", {"a": 1}, "pong")]))
    assert "CALL ping" in text
    assert " END" in text
    assert " RESULT-END" in text


def test_wording_can_be_changed_and_only_where_a_wrapper_has_it() -> None:
    wrapper = built("ChatMLChatWrapper", wording={words.FUNCTIONS: LlamaText("Tools: {{functions}}!")})
    block = wrapper.generate_available_functions_system_text({"f": {"description": "says {{exampleCall}}"}})
    assert str(block) == "Tools: // says {{exampleCall}}\nfunction f();!"
    with pytest.raises(ValueError, match="no wording named"):
        built("ChatMLChatWrapper", wording={words.MODEL_IDENTITY: LlamaText("x")})


@pytest.mark.parametrize("wrapper_id", BUILT_IN)
def test_the_default_wording_shows_functions_and_is_not_the_originals(wrapper_id: str) -> None:
    wrapper = built(wrapper_id)
    block = str(wrapper.generate_available_functions_system_text(FUNCTIONS))
    assert "getWeather" in block
    assert "{{functions}}" not in block
    assert "{{exampleCall}}" not in block
    assert "{{namespaces}}" not in block
    assert "The assistant calls the provided functions" not in block


def test_a_changed_set_of_functions_is_documented_anew() -> None:
    wrapper = built("QwenChatWrapper")
    functions: dict[str, Any] = {"f": {"description": "one"}}
    first = wrapper.generate_available_functions_system_text(functions)
    functions["f"]["description"] = "two"
    assert "two" in str(wrapper.generate_available_functions_system_text(functions))
    assert "one" in str(first)


def test_recipients_are_named_as_they_are() -> None:
    state = built("MuseChatWrapper").generate_context_state([UserItem("Hi")], {'say"it.now': {}, "say.x": {}})
    assert '# Valid recipients: "self", "say"it.*", "say.*", "user".' in str(state.context_text)


def test_wrong_options_and_settings_are_refused_with_their_place() -> None:
    with pytest.raises(OptionsError) as caught:
        build_wrapper("QwenChatWrapper", {"thoughts": "never", "surprise": 1})
    assert [problem.path for problem in caught.value.problems] == [("thoughts",), ("surprise",)]
    with pytest.raises(InvalidWrapper):
        build_wrapper("DeepSeekChatWrapper", {"parallelFunctionCalling": True})
    with pytest.raises(SettingsError):
        build_wrapper("GeneralChatWrapper", settings_override={"functions": {"call": {"prefix": 1}}})


@pytest.mark.parametrize(
    ("today", "printed"),
    [
        ("2024-07-26T00:00:00Z", "Today Date: 26 Jul 2024"),
        (0, "Today Date: 1 Jan 1970"),
        (lambda: datetime(2030, 12, 5, tzinfo=UTC), "Today Date: 5 Dec 2030"),
        (ABSENT, "Today Date: 9 Mar 2025"),
    ],
)
def test_dates_are_given_in_any_form(today: Any, printed: str) -> None:
    options = {} if today is ABSENT else {"todayDate": today}
    wrapper = build_wrapper("Llama3_1ChatWrapper", options, clock=CLOCK)
    assert printed in str(wrapper.generate_context_state([UserItem("Hi")]).context_text)


def test_titles_are_special_only_when_asked_for() -> None:
    history = [UserItem("Hi")]
    for allowed in (False, True):
        wrapper = build_wrapper("GeneralChatWrapper", {"allowSpecialTokensInTitles": allowed})
        values = wrapper.generate_context_state(history).context_text.values
        assert isinstance(values[1], SpecialTokensText) is allowed
