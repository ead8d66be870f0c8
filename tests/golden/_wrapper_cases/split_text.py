"""Splitting texts at separators."""

import json
from collections.abc import Iterator
from pathlib import Path

from chats.domain.text_splitting import split_text
from tests.golden._wrapper_cases.folder import GoldenFolder, mismatch, shown

PATTERN = "split-text.json"


def check(path: Path, folder: GoldenFolder) -> Iterator[tuple[str, str | None]]:
    for case in json.loads(path.read_text("utf-8"))["cases"]:
        parts = split_text(case["text"], case["separators"])
        got = [part if isinstance(part, str) else part.to_json() for part in parts]
        yield shown([case["text"], case["separators"]]), mismatch(got, case["output"])
