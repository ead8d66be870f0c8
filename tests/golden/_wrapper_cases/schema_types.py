"""TypeScript types of schemas."""

import json
from collections.abc import Iterator
from pathlib import Path

from chats.domain.functions import schema_type
from tests.golden._wrapper_cases.folder import GoldenFolder, mismatch, shown

PATTERN = "schema-types.json"


def check(path: Path, folder: GoldenFolder) -> Iterator[tuple[str, str | None]]:
    for case in json.loads(path.read_text("utf-8"))["cases"]:
        yield shown(case["schema"]), mismatch(schema_type(case["schema"]), case["output"])
