"""Parts of model file names."""

import json
from collections.abc import Iterator
from pathlib import Path

from chats.domain.resolving.model_file_names import parse_model_file_name
from tests.golden._wrapper_cases.folder import GoldenFolder, mismatch

PATTERN = "model-file-names.json"


def check(path: Path, folder: GoldenFolder) -> Iterator[tuple[str, str | None]]:
    for case in json.loads(path.read_text("utf-8"))["cases"]:
        yield case["filename"], mismatch(parse_model_file_name(case["filename"]).to_json(), case["output"])
