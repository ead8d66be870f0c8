"""`jsonDumps`; the input is JSON text, so that key order and number spelling survive."""

import json
from collections.abc import Iterator
from pathlib import Path

from chats.domain.js_json import json_dumps, parse_json
from tests.golden._wrapper_cases.folder import GoldenFolder, mismatch

PATTERN = "json-dumps.json"


def check(path: Path, folder: GoldenFolder) -> Iterator[tuple[str, str | None]]:
    for case in json.loads(path.read_text("utf-8"))["cases"]:
        yield case["json"], mismatch(json_dumps(parse_json(case["json"])), case["output"])
