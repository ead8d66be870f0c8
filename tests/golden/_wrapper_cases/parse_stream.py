"""Answers followed token by token."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chats.domain.history_items import history_from_json, history_to_json, response_to_json
from chats.domain.js_json import ABSENT
from chats.domain.llama_text import LlamaText, SpecialToken, SpecialTokensText
from chats.domain.output_parsing.generated import Generated, GeneratedCall, GenerationOptions
from chats.domain.output_parsing.generation import Generation
from chats.domain.output_parsing.segments import StreamEvent
from chats.domain.output_parsing.vocabulary import Token, Vocabulary
from chats.domain.wrappers import ChatWrapper
from tests.golden._jinja_folder import jinja_wrapper
from tests.golden._js_values import js_values
from tests.golden._wrapper_cases.folder import GoldenFolder, mismatch

PATTERN = "parse-stream.json"
# Ids of the recorded tokenizer.
_ROLES = ("BOS", "EOS", "NL", "EOT", "SEP")
_FIRST_ROLE, _FIRST_SPECIAL = 10, 1000


def check(path: Path, folder: GoldenFolder) -> Iterator[tuple[str, str | None]]:
    for case in json.loads(path.read_text("utf-8"))["cases"]:
        yield case["note"], _difference(case, folder)


def _difference(case: Any, folder: GoldenFolder) -> str | None:
    try:
        got = _followed(case, folder)
    except ValueError as error:
        expected = case.get("error", {}).get("message")
        return None if str(error) == expected else f"failed: {error}"
    return "should fail" if "error" in case else mismatch(js_values(got), js_values(case["output"]))


def _followed(case: Any, folder: GoldenFolder) -> dict[str, Any]:
    generation = Generation(
        _wrapper(case, folder),
        history_from_json(case["history"]),
        case.get("functions"),
        case.get("documentFunctionParams", True),
        Vocabulary(case["specialTokens"]),
        _options(case.get("options") or {}),
        lambda: folder.load("meta.json")["now"],
    )
    tokens = [token for item in case["script"] for token in _tokens(item)]
    events = generation.feed_tokens(tokens)
    result = generation.result
    if result is None:
        raise ValueError("the script ran out of tokens")
    return {
        **_result_to_json(result, case["specialTokens"]),
        "cleanHistory": history_to_json(generation.history()),
        "events": [_event_to_json(event) for event in events],
        "onFunctionCall": [_call_to_json(call) for call in generation.finished_calls],
        "consumedTokens": generation.consumed,
        "totalTokens": len(tokens),
        "evaluationContexts": [context.to_json() for context in generation.contexts],
    }


def _wrapper(case: Any, folder: GoldenFolder) -> ChatWrapper:
    options = case.get("wrapperOptions") or {}
    if "jinja" in case:
        return jinja_wrapper(folder, case["jinja"], options)
    return folder.wrapper(case["wrapper"], options)


def _options(options: Any) -> GenerationOptions:
    budgets = options.get("budgets") or {}
    return GenerationOptions(
        trim_end=options.get("trimWhitespaceSuffix", False),
        stop_triggers=[LlamaText.from_json(trigger) for trigger in options.get("customStopTriggers") or ()],
        max_tokens=options.get("maxTokens"),
        max_parallel_calls=options.get("maxParallelFunctionCalls"),
        budgets={"thought": budgets.get("thoughtTokens"), "comment": budgets.get("commentTokens")},
        budgets_include_response=budgets.get("includeCurrentResponse") is not False,
        record_contexts=True,
    )


def _tokens(item: Any) -> list[Token]:
    if isinstance(item, str):
        return list(item)
    return [SpecialTokensText(item["special"]) if "special" in item else SpecialToken(item["builtin"])]


def _result_to_json(result: Generated, special_tokens: list[str]) -> dict[str, Any]:
    json_form: dict[str, Any] = {"response": result.text, "fullResponse": response_to_json(result.entries)}
    if result.calls is not None:
        json_form["functionCalls"] = [_call_to_json(call) for call in result.calls]
    json_form["stopReason"] = result.stop_reason
    if result.stop_trigger is not None:
        json_form["customStopTrigger"] = [_token_to_json(token, special_tokens) for token in result.stop_trigger]
    return json_form


def _token_to_json(token: Token, special_tokens: list[str]) -> str | int:
    if isinstance(token, str):
        return token
    if isinstance(token, SpecialToken):
        return _FIRST_ROLE + _ROLES.index(token.value)
    return _FIRST_SPECIAL + special_tokens.index(token.value)


def _call_to_json(call: GeneratedCall) -> dict[str, Any]:
    params = {} if call.params is ABSENT else {"params": call.params}
    return {"functionName": call.name, **params, "raw": call.raw.to_json()}


def _event_to_json(event: StreamEvent) -> dict[str, Any]:
    marks = {name: True for name in ("start", "end") if getattr(event, name)}
    return {"segment": event.segment, "text": event.text, **marks}
