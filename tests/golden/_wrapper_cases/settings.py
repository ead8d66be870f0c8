"""Names, settings and public properties of every variant, or why it can't be built."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chats.domain.wrapper_settings import ChatWrapperSettings
from tests.golden._wrapper_cases.folder import GoldenFolder, mismatch

PATTERN = "settings.json"


def check(path: Path, folder: GoldenFolder) -> Iterator[tuple[str, str | None]]:
    for row in json.loads(path.read_text("utf-8"))["variants"]:
        yield f"{row['wrapper']}/{row['variant']}", _difference(row, folder)


def _difference(row: Any, folder: GoldenFolder) -> str | None:
    try:
        wrapper = folder.wrapper(row["wrapper"], row["options"])
    except ValueError as error:
        expected = row.get("error", {}).get("message")
        return None if str(error) == expected else f"failed: {error}"
    if "error" in row:
        return f"should fail: {row['error']['message']}"
    if ChatWrapperSettings.from_json(row["settings"]).to_json() != row["settings"]:
        return "settings don't survive reading and writing"
    got = {
        "wrapperName": wrapper.wrapper_name,
        "settings": wrapper.settings.to_json(),
        "properties": wrapper.properties_to_json(),
    }
    return mismatch(got, {key: row[key] for key in got})
