"""Calls compared as values, to tell whether a round repeats the one before (continuation.md section 6)."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any

from chats.domain.details import ToolCall


def multiset(items: Iterable[Hashable]) -> Hashable:
    return frozenset(Counter(items).items())


def call_key(call: ToolCall) -> Hashable:
    """Equal for calls of the same name with the same arguments, compared as values (section 6, repeats)."""
    if call.arguments_raw is None:
        return call.name, _comparable(call.arguments or {})
    try:
        return call.name, _comparable(json.loads(call.arguments_raw))
    except (ValueError, RecursionError):
        return call.name, "raw", unicodedata.normalize("NFC", call.arguments_raw)


def _comparable(value: Any) -> Hashable:
    """Key order and number form do not matter, list order does; text after NFC. True and 1 stay different."""
    if isinstance(value, str):
        return value if value.isascii() else unicodedata.normalize("NFC", value)
    if isinstance(value, bool):
        return "bool", value
    if isinstance(value, dict):
        return frozenset((_comparable(key), _comparable(item)) for key, item in value.items())
    if isinstance(value, list):
        return tuple(map(_comparable, value))
    return ("nan",) if value != value else value
