"""A folder of recorded wrapper results: its inputs, and wrappers that speak as the original does."""

import json
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from chats.domain.history_items import HistoryItem, history_from_json
from chats.domain.wrappers import ChatWrapper, Clock, build_wrapper
from tests.golden._wrapper_cases.reference_wording import ReferenceWording


class GoldenFolder:
    """`path` holds `settings.json`, `render/` and so on."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._loaded: dict[str, Any] = {}

    def load(self, relative: str) -> Any:
        """A file as JSON, or None if the folder hasn't got it."""
        if relative not in self._loaded:
            file = self.path / relative
            self._loaded[relative] = json.loads(file.read_text("utf-8")) if file.is_file() else None
        return self._loaded[relative]

    @cached_property
    def clock(self) -> Clock:
        """The frozen moment of the recording, in UTC as the recording was."""
        meta = self.load("meta.json") or {}
        return Clock(datetime.fromisoformat(meta.get("now", "2025-03-09T12:34:56.789Z")), UTC)

    @cached_property
    def options(self) -> dict[tuple[str, str], dict[str, Any]]:
        """Options by class and variant."""
        variants = (self.load("settings.json") or {"variants": []})["variants"]
        return {(row["wrapper"], row["variant"]): row["options"] for row in variants}

    @cached_property
    def _reference_wording(self) -> ReferenceWording:
        return ReferenceWording(self.load, self.options)

    def wrapper(self, wrapper_id: str, options: dict[str, Any]) -> ChatWrapper:
        """A fresh wrapper with the original's wording."""
        wording = self._reference_wording.of(wrapper_id, options)
        return build_wrapper(wrapper_id, options, wording=wording, clock=self.clock)

    def history_json(self, history_id: str) -> Any:
        return self.load("histories.json")[history_id]["history"]

    def history(self, history_id: str) -> list[HistoryItem]:
        return history_from_json(self.history_json(history_id))

    def functions(self, functions_id: str) -> Any:
        return self.load("functions.json")[functions_id]


def shown(value: Any) -> str:
    """JSON for a message, not too long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 1500 else f"{text[:1500]}…"


def mismatch(got: Any, expected: Any) -> str | None:
    """What to say of two JSON values that should be equal, or None if they are."""
    if json.dumps(got, sort_keys=True) == json.dumps(expected, sort_keys=True):
        return None
    return f"got      {shown(got)}\n  expected {shown(expected)}"
