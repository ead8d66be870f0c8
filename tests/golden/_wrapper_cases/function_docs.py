"""Descriptions of functions."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from chats.domain import functions
from tests.golden._wrapper_cases.folder import GoldenFolder, mismatch

PATTERN = "function-docs.json"
_METHODS: dict[str, Callable[..., str]] = {
    "getTypeScriptFunctionSignatures": functions.typescript_signatures,
    "getTypeScriptFunctionTypes": functions.typescript_types,
    "getLlama3_1FunctionSignatures": functions.llama_3_1_signatures,
    "getLlama3_2LightweightFunctionSignatures": functions.llama_3_2_signatures,
    "getQwenFunctionSignatures": functions.qwen_signatures,
    "getSeedFunctionSignatures": functions.seed_signatures,
}


def check(path: Path, folder: GoldenFolder) -> Iterator[tuple[str, str | None]]:
    for case in json.loads(path.read_text("utf-8"))["cases"]:
        yield f"{case['functions']}/{case['method']}/{case['options']}", _difference(case, folder)


def _difference(case: Any, folder: GoldenFolder) -> str | None:
    chosen = folder.functions(case["functions"])
    options = case["options"]
    arguments: dict[str, Any] = {"document_params": options["documentParams"]}
    if "reservedFunctionNames" in options:
        arguments["reserved"] = options["reservedFunctionNames"]
    if case.get("hasAnyFunctions", bool(chosen)) != bool(chosen):
        return "disagrees about whether there are functions"
    try:
        got = _METHODS[case["method"]](chosen, **arguments)
    except functions.ReservedName as error:
        expected = case.get("error", {}).get("message")
        return None if str(error) == expected else f"failed: {error}"
    return mismatch(got, case["output"])
