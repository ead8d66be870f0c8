"""Histories as OpenAI messages, and back."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chats.domain.history_items import history_to_json
from chats.domain.js_json import ABSENT
from chats.domain.openai_format import ImportedChat, from_openai_chat, to_openai_chat
from tests.golden._js_values import js_values
from tests.golden._wrapper_cases.folder import GoldenFolder, mismatch

PATTERN = "openai-format.json"


def check(path: Path, folder: GoldenFolder) -> Iterator[tuple[str, str | None]]:
    for case in json.loads(path.read_text("utf-8"))["cases"]:
        yield f"{case['wrapper']}/{case['history']}", _difference(case, folder)


def _difference(case: Any, folder: GoldenFolder) -> str | None:
    options = next(options for (wrapper, _), options in folder.options.items() if wrapper == case["wrapper"])
    wrapper = folder.wrapper(case["wrapper"], options)
    functions = folder.functions(case["functions"]) if "functions" in case else None
    chat = to_openai_chat(folder.history(case["history"]), wrapper.settings, functions)
    wrong = mismatch(chat, case["output"])
    if wrong is not None or "back" not in case:
        return wrong
    back = from_openai_chat(case["output"], wrapper.settings, wrapper.generate_function_call)
    return mismatch(js_values(_to_json(back)), js_values(case["back"]))


def _to_json(chat: ImportedChat) -> dict[str, Any]:
    calls = []
    for call in chat.calls:
        params = {} if call.params is ABSENT else {"params": call.params}
        calls.append({"functionName": call.name, **params, "raw": call.raw.to_json()})
    functions = {} if chat.functions is None else {"functions": chat.functions}
    return {"chatHistory": history_to_json(chat.history), "functionCalls": calls, **functions}
