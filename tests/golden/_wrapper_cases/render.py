"""Rendered prompts."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chats.domain.history_items import history_from_json, history_to_json
from chats.domain.wrappers import WRAPPERS
from tests.golden._wrapper_cases.folder import GoldenFolder, mismatch

PATTERN = "render/*.json"


def check(path: Path, folder: GoldenFolder) -> Iterator[tuple[str, str | None]]:
    data = json.loads(path.read_text("utf-8"))
    wrapper_id = data["wrapper"]
    if wrapper_id not in WRAPPERS:
        yield wrapper_id, "no such wrapper"
        return
    for case in data["cases"]:
        name = case.get("id") or "/".join([wrapper_id, case["variant"], case["history"], case.get("functions", "")])
        yield name, _difference(wrapper_id, case, data["rests"], folder)


def _difference(wrapper_id: str, case: Any, rests: list[Any], folder: GoldenFolder) -> str | None:
    history = history_from_json(folder.history_json(case["history"]))
    unchanged = history_to_json(history)
    functions = copy.deepcopy(folder.functions(case["functions"])) if "functions" in case else None
    try:
        wrapper = folder.wrapper(wrapper_id, folder.options[wrapper_id, case["variant"]])
        state = wrapper.generate_context_state(history, functions, case.get("documentFunctionParams", True))
    except ValueError as error:
        expected = case.get("error", {}).get("message")
        return None if str(error) == expected else f"failed: {error}"
    if "error" in case:
        return f"should fail: {case['error']['message']}"
    if history_to_json(history) != unchanged or (functions and functions != folder.functions(case["functions"])):
        return "rendering changed its input"
    output = case["output"]
    wrong = mismatch(state.context_text.to_json(), output["contextText"])
    if wrong is None and "contextTextString" in output:
        wrong = mismatch(str(state.context_text), output["contextTextString"])
    return wrong or mismatch(state.rest_to_json(), rests[output["rest"]])
