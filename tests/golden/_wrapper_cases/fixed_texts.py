"""Blocks that introduce functions, with the original's wording."""

import json
from collections.abc import Iterator
from pathlib import Path

from chats.domain.history_items import history_from_json, history_to_json
from tests.golden._wrapper_cases.folder import GoldenFolder, mismatch

PATTERN = "fixed-texts.json"
_HISTORY = [{"type": "system", "text": "SYSTEM_MARK"}, {"type": "user", "text": "USER_MARK"}]


def check(path: Path, folder: GoldenFolder) -> Iterator[tuple[str, str | None]]:
    for row in json.loads(path.read_text("utf-8"))["cases"]:
        wrapper = folder.wrapper(row["wrapper"], row["options"])
        functions = row["functions"]
        history = history_from_json(_HISTORY)
        with_functions = wrapper.add_available_functions_system_message_to_history(history, functions)
        got = {
            "functionsText": wrapper.generate_available_functions_system_text(functions).to_json(),
            "historyWithFunctions": history_to_json(with_functions),
            "initialHistory": history_to_json(wrapper.generate_initial_chat_history()),
        }
        yield f"{row['wrapper']}/{row['variant']}", mismatch(got, row["output"])
