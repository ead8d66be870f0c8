"""Assistant texts cut into segments."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chats.domain.history_items import response_to_json
from chats.domain.output_parsing.whole_text import parse_output, segment_text
from tests.golden._wrapper_cases.folder import GoldenFolder, mismatch

PATTERN = "parse-text.json"


def check(path: Path, folder: GoldenFolder) -> Iterator[tuple[str, str | None]]:
    for case in json.loads(path.read_text("utf-8"))["cases"]:
        yield f"{case['wrapper']}/{case['variant']}/{case['text']!r}", _difference(case, folder)


def _difference(case: Any, folder: GoldenFolder) -> str | None:
    settings = folder.wrapper(case["wrapper"], folder.options[case["wrapper"], case["variant"]]).settings
    text = case["text"]
    wrong = mismatch(response_to_json(segment_text(text, settings)), case["output"])
    if wrong is not None:
        return wrong
    # With no functions there are no calls, and the same entries have places that cover the text.
    parsed = parse_output(text, settings, {})
    return mismatch(response_to_json([item.entry for item in parsed]), case["output"])
