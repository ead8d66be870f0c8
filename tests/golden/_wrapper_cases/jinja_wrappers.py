"""Settings that were found out from templates."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.golden._jinja_folder import internals, jinja_wrapper
from tests.golden._wrapper_cases.folder import GoldenFolder, mismatch

PATTERN = "jinja-wrappers.json"
JINJA = True


def check(path: Path, folder: GoldenFolder) -> Iterator[tuple[str, str | None]]:
    for row in json.loads(path.read_text("utf-8"))["wrappers"]:
        yield row["id"], _difference(row, folder)


def _difference(row: Any, folder: GoldenFolder) -> str | None:
    tokens = (row.get("tokenizer") or {}).get("specialTokens")
    try:
        wrapper = jinja_wrapper(folder, row["template"], row["options"], tokens)
    except ValueError as error:
        return None if "error" in row else f"failed: {error}"
    if "error" in row:
        return "should fail"
    got = {
        "settings": wrapper.settings.to_json(),
        "usingJinjaFunctionCallTemplate": wrapper.using_jinja_function_call_template,
        "keepOnlyLastThought": wrapper.keep_only_last_thought,
        "trimLeadingWhitespaceInResponses": wrapper.options.trim_leading_whitespace_in_responses,
        "internal": internals(wrapper),
    }
    return mismatch(got, row["output"])
