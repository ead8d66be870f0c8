"""Reading loosely typed JSON: each function gives the value when it has the wanted type, else the empty one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

_EPOCH: Final = re.compile(r"[0-9]{9,20}(?:\.[0-9]{1,9})?\Z")


def mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def sequence(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def mappings(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; anything else in it is left out."""
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []


def text(value: Any) -> str | None:
    """A text that isn't empty."""
    return value if isinstance(value, str) and value else None


def label(value: Any) -> str | None:
    """An id or name: text, or a whole number as text."""
    if isinstance(value, str):
        return value or None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return None


def whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def at(value: Any, *path: str | int) -> Any:
    """The value at a path of keys and indices, or None."""
    for step in path:
        if isinstance(step, str) and isinstance(value, dict):
            value = value.get(step)
        elif isinstance(step, int) and isinstance(value, list) and -len(value) <= step < len(value):
            value = value[step]
        else:
            return None
    return value


def shown(value: Any) -> str:
    """A value as the text of a tool result: text as it is, null empty, the rest as JSON in its own key order."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def scalars(value: Mapping[str, Any], *, without: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The entries of an object that are texts, numbers or booleans."""
    return {k: v for k, v in value.items() if k not in without and isinstance(v, (str, int, float, bool)) and v != ""}


def moment(value: Any) -> datetime | None:
    """A time with zone, from ISO text with a zone, epoch seconds, or milliseconds. Unknown otherwise: none is invented.

    Numbers are told apart by size: 10^11 seconds lie 3,000 years ahead, 10^11 milliseconds in 1973.
    """
    if isinstance(value, str):
        return _moment_of_text(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
        return None
    seconds = float(value)
    for _ in range(3):
        if seconds < 1e11:
            break
        seconds /= 1000
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return None


def _moment_of_text(value: str) -> datetime | None:
    given = value.strip()
    if _EPOCH.match(given):
        return moment(float(given))
    try:
        found = datetime.fromisoformat(given)
    except ValueError:
        return None
    return found if found.tzinfo is not None else None
