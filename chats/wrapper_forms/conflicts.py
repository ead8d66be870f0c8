"""Two versions of a record path by path, for the page on which a person decides between them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

_OBJECTS: Final = (
    "options",
    "settings",
    "wording",
    "named_templates",
    "template_tokens",
    "template_kwargs",
    "serving",
    "silenced",
)
_MISSING: Final = object()
_DEEP: Final = ("settings", "options")


@dataclass(frozen=True)
class ConflictRow:
    """One path that differs: `key` names it in the form; a side that has nothing there is None."""

    key: str
    theirs: str | None
    mine: str | None


def conflict_rows(theirs: Mapping[str, str], mine: Mapping[str, str]) -> list[ConflictRow]:
    """Every path at which the two differ, by field and then by key."""
    return [
        ConflictRow(".".join(path), _shown(a), _shown(b)) for path, a, b in _differences(_values(theirs), _values(mine))
    ]


def merged_content(theirs: Mapping[str, str], mine: Mapping[str, str], taken: set[str]) -> dict[str, str]:
    """Their content with my values at the paths in `taken`."""
    out = _values(theirs)
    for path, _theirs, value in list(_differences(_values(theirs), _values(mine))):
        if ".".join(path) not in taken:
            continue
        there: Any = out
        for key in path[:-1]:
            there = there.setdefault(key, {})
        if value is _MISSING:
            there.pop(path[-1], None)
        else:
            there[path[-1]] = value
    return {name: json.dumps(value) if name in _OBJECTS else str(value) for name, value in out.items()}


def _values(content: Mapping[str, str]) -> dict[str, Any]:
    return {name: json.loads(text or "{}") if name in _OBJECTS else text for name, text in content.items()}


def _differences(
    theirs: Mapping[str, Any], mine: Mapping[str, Any], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    for key in dict.fromkeys([*theirs, *mine]):
        a, b = theirs.get(key, _MISSING), mine.get(key, _MISSING)
        below = (*path, key)
        deep = not path or below[0] in _DEEP
        if isinstance(a, Mapping) and isinstance(b, Mapping) and deep:
            yield from _differences(a, b, below)
        elif a is _MISSING or b is _MISSING or json.dumps(a) != json.dumps(b):
            yield below, a, b


def _shown(value: Any) -> str | None:
    if value is _MISSING:
        return None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
