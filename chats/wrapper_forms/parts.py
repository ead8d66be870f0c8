"""Texts as lists of parts, each plain text, special tokens, or a token by its role.

A form can't carry every character: browsers turn CR into CRLF and drop NUL. A part that holds such a character is
written as the inside of a JSON string, and says so (`as` is `json`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, Final

from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

Data = MutableMapping[str, str]
"""A form as a flat mapping of names to texts."""

KINDS: Final = (("text", _("Text")), ("special", _("Special tokens")), ("token", _("Token by its role")))
_JSON_TYPES: Final = {"special": "specialTokensText", "token": "specialToken"}
_KINDS_BY_TYPE: Final = {value: key for key, value in _JSON_TYPES.items()}
_UNPOSTABLE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029\ufffe\uffff]")
MAX_PARTS: Final = 60


@dataclass(frozen=True)
class PartView:
    """One part as the form shows it."""

    name: str
    index: int
    kind: str
    text: str
    encoded: bool
    is_first: bool
    is_last: bool

    @property
    def rows(self) -> int:
        return min(8, self.text.count("\n") + 1)


def encode_text(value: Any, name: str, data: Data) -> None:
    """Write a text in its JSON form into the form."""
    items = [value] if isinstance(value, str) else list(value)
    if items == [""]:
        items = []
    for index, item in enumerate(items):
        kind, text = ("text", item) if isinstance(item, str) else (_KINDS_BY_TYPE[item["type"]], item["value"])
        put_part(data, f"{name}.{index}", kind, text)


def put_part(data: Data, prefix: str, kind: str, text: str) -> None:
    data[f"{prefix}.kind"] = kind
    encoded = bool(_UNPOSTABLE.search(text))
    data[f"{prefix}.as"] = "json" if encoded else ""
    data[f"{prefix}.text"] = json.dumps(text)[1:-1] if encoded else text


def decode_text(name: str, data: Mapping[str, str]) -> Any:
    """Read a text back into its JSON form: a string, or a list of parts."""
    items: list[Any] = []
    for index in indexes(name, data):
        kind, text = data.get(f"{name}.{index}.kind", "text"), _text(data, f"{name}.{index}")
        items.append({"type": _JSON_TYPES[kind], "value": text} if kind in _JSON_TYPES else text)
    if not items:
        return ""
    return items[0] if len(items) == 1 and isinstance(items[0], str) else items


def part_views(name: str, data: Mapping[str, str]) -> list[PartView]:
    found = indexes(name, data)
    return [
        PartView(
            f"{name}.{index}",
            index,
            data.get(f"{name}.{index}.kind", "text"),
            data.get(f"{name}.{index}.text", ""),
            data.get(f"{name}.{index}.as") == "json",
            index == found[0],
            index == found[-1],
        )
        for index in found
    ]


def indexes(name: str, data: Mapping[str, str]) -> list[int]:
    """The numbers of the parts (or items) that a name has, in order."""
    start = f"{name}."
    found = {
        int(number)
        for key in data
        if key.startswith(start) and (number := key[len(start) :].split(".", 1)[0]).isdecimal() and len(number) < 4
    }
    return sorted(found)[:MAX_PARTS]


def add_part(name: str, data: Data) -> int:
    """An empty part at the end; returns its number."""
    index = max(indexes(name, data), default=-1) + 1
    put_part(data, f"{name}.{index}", "text", "")
    return index


def add_item(name: str, data: Data) -> int:
    """An empty text at the end of a list of texts; returns its number."""
    index = max(indexes(name, data), default=-1) + 1
    data[f"{name}.{index}.has"] = "1"
    put_part(data, f"{name}.{index}.0", "text", "")
    return index


def remove(name: str, index: int, data: Data) -> None:
    """Take part or item `index` away; the ones after it keep their numbers."""
    start = f"{name}.{index}."
    for key in [key for key in data if key.startswith(start)]:
        del data[key]


def move(name: str, index: int, step: int, data: Data) -> int:
    """Exchange part `index` with its neighbour; returns where it stands then."""
    found = indexes(name, data)
    at = found.index(index) if index in found else -1
    if at < 0 or not 0 <= at + step < len(found):
        return index
    other = found[at + step]
    mine, theirs = _under(name, index, data), _under(name, other, data)
    remove(name, index, data)
    remove(name, other, data)
    data.update({f"{name}.{other}.{rest}": value for rest, value in mine})
    data.update({f"{name}.{index}.{rest}": value for rest, value in theirs})
    return other


def clear(name: str, data: Data) -> None:
    """Forget everything below a name."""
    for key in [key for key in data if key == name or key.startswith(f"{name}.")]:
        del data[key]


def _under(name: str, index: int, data: Mapping[str, str]) -> list[tuple[str, str]]:
    start = f"{name}.{index}."
    return [(key[len(start) :], value) for key, value in data.items() if key.startswith(start)]


def _text(data: Mapping[str, str], prefix: str) -> str:
    text = data.get(f"{prefix}.text", "")
    if data.get(f"{prefix}.as") != "json":
        return text
    try:
        return str(json.loads(f'"{text}"'))
    except ValueError:
        # What was typed into it is no JSON any more: then it means what it says.
        return text


def posted_data(form: QueryDict) -> dict[str, str]:
    """What a browser posted, with line breaks as they were typed: forms send CRLF for each. NUL can't be typed."""
    return {name: str(value).replace("\r\n", "\n").replace("\0", "") for name, value in form.items()}
