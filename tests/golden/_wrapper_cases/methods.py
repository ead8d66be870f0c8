"""Single methods of the wrappers."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from chats.domain.history_items import function_call_from_json, history_from_json, history_to_json, response_from_json
from chats.domain.js_json import ABSENT
from chats.domain.wrappers import ChatWrapper
from tests.golden._wrapper_cases.folder import GoldenFolder, mismatch

PATTERN = "methods/*.json"


def check(path: Path, folder: GoldenFolder) -> Iterator[tuple[str, str | None]]:
    data = json.loads(path.read_text("utf-8"))
    wrapper_id = data["wrapper"]
    wrappers = {}
    for index, case in enumerate(data["cases"]):
        variant = case["variant"]
        if variant not in wrappers:
            wrappers[variant] = folder.wrapper(wrapper_id, folder.options[wrapper_id, variant])
        name = f"{wrapper_id}/{variant}/{case['method']}/{index}"
        yield name, _difference(wrappers[variant], case, folder)


def _difference(wrapper: ChatWrapper, case: Any, folder: GoldenFolder) -> str | None:
    try:
        got = _METHODS[case["method"]](wrapper, case["input"], folder)
    except ValueError as error:
        expected = case.get("error", {}).get("message")
        return None if str(error) == expected else f"failed: {error}"
    if "error" in case:
        return f"should fail: {case['error']['message']}"
    expected = case["output"]
    if case["method"].startswith(("addAvailable", "generateInitial")):
        # Texts of the input needn't be in normal form.
        expected = history_to_json(history_from_json(expected))
    return mismatch(got, expected)


def _call(wrapper: ChatWrapper, given: Any, folder: GoldenFolder) -> Any:
    return wrapper.generate_function_call(given["name"], given.get("params", ABSENT)).to_json()


def _result(wrapper: ChatWrapper, given: Any, folder: GoldenFolder) -> Any:
    params, result = given.get("params", ABSENT), given.get("result", ABSENT)
    return wrapper.generate_function_call_result(given["name"], params, result).to_json()


def _calls(wrapper: ChatWrapper, given: Any, folder: GoldenFolder) -> Any:
    calls = [function_call_from_json(call) for call in given["functionCalls"]]
    return wrapper.generate_function_calls_and_results(calls, given["useRawCall"]).to_json()


def _response(wrapper: ChatWrapper, given: Any, folder: GoldenFolder) -> Any:
    response = response_from_json(given["modelResponse"])
    return wrapper.generate_model_response_text(response, given["useRawValues"]).to_json()


def _functions(wrapper: ChatWrapper, given: Any, folder: GoldenFolder) -> Any:
    functions = folder.functions(given["functions"])
    document = given["options"].get("documentParams", True)
    return wrapper.generate_available_functions_system_text(functions, document).to_json()


def _add(wrapper: ChatWrapper, given: Any, folder: GoldenFolder) -> Any:
    functions = folder.functions(given["functions"])
    history = folder.history(given["history"])
    return history_to_json(wrapper.add_available_functions_system_message_to_history(history, functions))


def _initial(wrapper: ChatWrapper, given: Any, folder: GoldenFolder) -> Any:
    prompt = (given.get("options") or {}).get("systemPrompt")
    return history_to_json(wrapper.generate_initial_chat_history(prompt))


_METHODS: dict[str, Callable[[ChatWrapper, Any, GoldenFolder], Any]] = {
    "generateFunctionCall": _call,
    "generateFunctionCallResult": _result,
    "generateFunctionCallsAndResults": _calls,
    "generateModelResponseText": _response,
    "generateAvailableFunctionsSystemText": _functions,
    "addAvailableFunctionsSystemMessageToHistory": _add,
    "generateInitialChatHistory": _initial,
}
