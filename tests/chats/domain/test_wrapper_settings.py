"""ChatWrapperSettings: JSON both ways, errors with their path, differences to a base."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chats.domain.js_json import ABSENT
from chats.domain.llama_text import LlamaText
from chats.domain.wrapper_settings import (
    BASE_SETTINGS,
    ChatWrapperSettings,
    SettingsError,
    apply_difference,
    difference,
)
from tests.chats.domain.test_js_json import json_values
from tests.chats.domain.test_llama_text import llama_texts

texts = llama_texts.map(LlamaText.to_json)


def objects(required: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(required, optional=optional)


thoughts = objects(
    {"prefix": st.one_of(texts, objects({"type": st.just("openedOnStart")}, {"afterFunctionCalls": st.booleans()}))},
    {"suffix": texts, "openOnResponseStart": st.booleans(), "reopenAfterFunctionCalls": st.booleans()},
)
settings_json = objects(
    {
        "supportsSystemMessages": st.booleans(),
        "functions": objects(
            {
                "call": objects(
                    {"optionalPrefixSpace": st.booleans(), "prefix": texts, "paramsPrefix": texts, "suffix": texts},
                    {"emptyCallParamsPlaceholder": json_values, "prefixAlternateMatches": st.lists(texts, max_size=2)},
                ),
                "result": objects({"prefix": texts, "suffix": texts}, {}),
            },
            {
                "parallelism": objects(
                    {
                        "call": objects(
                            {"sectionPrefix": texts},
                            {
                                "betweenCalls": texts,
                                "sectionSuffix": texts,
                                "sectionPrefixAlternateMatches": st.lists(texts, max_size=2),
                            },
                        )
                    },
                    {"result": objects({}, {"sectionPrefix": texts, "betweenResults": texts, "sectionSuffix": texts})},
                )
            },
        ),
    },
    {
        "segments": objects(
            {},
            {
                "closeAllSegments": texts,
                "reiterateStackAfterFunctionCalls": st.booleans(),
                "thought": thoughts,
                "comment": objects({"prefix": texts}, {"suffix": texts}),
            },
        )
    },
)


@given(settings_json)
def test_json_survives_reading_and_writing(json: dict[str, Any]) -> None:
    assert ChatWrapperSettings.from_json(json).to_json() == json


@given(settings_json, settings_json)
def test_a_difference_leads_from_the_base_to_the_settings(base: dict[str, Any], new: dict[str, Any]) -> None:
    first, second = ChatWrapperSettings.from_json(base), ChatWrapperSettings.from_json(new)
    assert apply_difference(first, difference(first, second)).to_json() == second.to_json()
    assert difference(first, first) == {}


def test_absent_and_null_placeholders_differ() -> None:
    json = BASE_SETTINGS.to_json()
    json["functions"]["call"]["emptyCallParamsPlaceholder"] = None
    assert ChatWrapperSettings.from_json(json).functions.call.empty_call_params_placeholder is None
    del json["functions"]["call"]["emptyCallParamsPlaceholder"]
    settings = ChatWrapperSettings.from_json(json)
    assert settings.functions.call.empty_call_params_placeholder is ABSENT
    assert difference(BASE_SETTINGS, settings) == {
        "functions": {"call": {"emptyCallParamsPlaceholder": {"$absent": True}}}
    }


@pytest.mark.parametrize(
    ("change", "path", "code"),
    [
        ({"supportsSystemMessages": 1}, "supportsSystemMessages", "not_a_boolean"),
        ({"surprise": 1}, "surprise", "unknown_key"),
        ({"functions": {"call": {"prefix": 5}}}, "functions.call.prefix", "not_a_text"),
        ({"functions": {"call": {"prefix": ["a", 5]}}}, "functions.call.prefix.1", "unknown_text_part"),
        (
            {"functions": {"call": {"prefixAlternateMatches": "a"}}},
            "functions.call.prefixAlternateMatches",
            "not_a_list",
        ),
        ({"functions": {"result": {"suffix": {"$absent": True}}}}, "functions.result.suffix", "missing_key"),
        ({"functions": {"parallelism": {"call": {}}}}, "functions.parallelism.call.sectionPrefix", "missing_key"),
        ({"functions": 7}, "functions", "not_an_object"),
        ({"segments": None}, "segments", "null_value"),
        ({"segments": {"thought": {"prefix": {"type": "x"}}}}, "segments.thought.prefix.type", "unknown_value"),
        ({"segments": {"comment": {"prefix": "", "sufix": ""}}}, "segments.comment.sufix", "unknown_key"),
    ],
)
def test_a_wrong_place_is_named(change: dict[str, Any], path: str, code: str) -> None:
    with pytest.raises(SettingsError) as caught:
        apply_difference(BASE_SETTINGS, change)
    assert [(problem.dotted_path, problem.code) for problem in caught.value.problems] == [(path, code)]
