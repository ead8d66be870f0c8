"""Two versions of a record path by path, for the page on which a person decides between them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from chats.domain.wrapper_settings import NOT_PRESENT
from chats.wrapper_forms.settings import FIELDS

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


@dataclass(frozen=True)
class ConflictRow:
    """One path that differs: `key` names it in the form; a side that has nothing there is None."""

    key: str
    theirs: str | None
    mine: str | None
    base: str | None = None
    has_base: bool = False

    @property
    def both(self) -> bool:
        """Both sides changed it, each in its own way."""
        return self.has_base and self.base not in (self.theirs, self.mine)

    @property
    def chosen(self) -> str:
        """What is chosen until somebody says otherwise: mine, except where only they changed something."""
        return "theirs" if self.has_base and self.mine == self.base else "mine"


def conflict_rows(
    theirs: Mapping[str, str], mine: Mapping[str, str], base: Mapping[str, str] | None = None
) -> list[ConflictRow]:
    """Every path at which the two differ, by field and then by key; with what stood there before, if that is known."""
    before = _values(base) if base else {}
    return [
        ConflictRow(".".join(path), _shown(a), _shown(b), _shown(_at(before, path)), bool(base))
        for path, a, b in _differences(_values(theirs), _values(mine))
    ]


def _at(values: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        values = values.get(key, _MISSING) if isinstance(values, Mapping) else _MISSING
    return values


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
        if _is_object(below, a, b):
            yield from _differences(a if a is not _MISSING else {}, b if b is not _MISSING else {}, below)
        elif a is _MISSING or b is _MISSING or json.dumps(a) != json.dumps(b):
            yield below, a, b


def _is_object(path: tuple[str, ...], a: Any, b: Any) -> bool:
    """Whether both sides are compared key by key: objects of the settings even where one side says nothing of them."""
    sides = [side for side in (a, b) if side is not _MISSING]
    if not all(isinstance(side, Mapping) and NOT_PRESENT not in side for side in sides):
        return False
    if path[0] == "settings" and len(path) > 1:
        return all(sides) and any(field.path[: len(path) - 1] == path[1:] != field.path for field in FIELDS.values())
    return len(path) == 1 or (path[0] == "options" and len(sides) == 2)


def _shown(value: Any) -> str | None:
    if value is _MISSING:
        return None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
