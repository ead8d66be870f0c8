"""Prompts rendered with templates."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chats.domain.wrappers.jinja import JinjaTemplateChatWrapper
from tests.golden._jinja_folder import jinja_wrapper
from tests.golden._wrapper_cases.folder import GoldenFolder, mismatch

PATTERN = "render/JinjaTemplateChatWrapper.json"
JINJA = True


def check(path: Path, folder: GoldenFolder) -> Iterator[tuple[str, str | None]]:
    data = json.loads(path.read_text("utf-8"))
    wrappers = dict(_wrappers(folder))
    for case in data["cases"]:
        wrapper = wrappers[case["wrapper"]]
        if isinstance(wrapper, str):
            yield case["id"], f"the wrapper can't be built: {wrapper}"
        else:
            yield case["id"], _difference(case, data["rests"], wrapper, folder)


def _wrappers(folder: GoldenFolder) -> Iterator[tuple[str, JinjaTemplateChatWrapper | str]]:
    for row in folder.load("jinja-wrappers.json")["wrappers"]:
        tokens = (row.get("tokenizer") or {}).get("specialTokens")
        try:
            yield row["id"], jinja_wrapper(folder, row["template"], row["options"], tokens)
        except ValueError as error:
            yield row["id"], str(error)


def _difference(case: Any, rests: list[Any], wrapper: JinjaTemplateChatWrapper, folder: GoldenFolder) -> str | None:
    functions = folder.functions(case["functions"]) if "functions" in case else None
    documented = case.get("documentFunctionParams", True)
    try:
        state = wrapper.generate_context_state(folder.history(case["history"]), functions, documented)
    except (ValueError, TypeError) as error:
        return None if "error" in case else f"failed: {error}"
    if "error" in case:
        return "should fail"
    wrong = mismatch(state.context_text.to_json(), case["output"]["contextText"])
    return wrong or mismatch(state.rest_to_json(), rests[case["output"]["rest"]])
