"""Texts of the settings with their template parameters, prepared for filling in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from chats.domain.history_items import FunctionCall
from chats.domain.js_json import ABSENT, json_dumps, replace_marker
from chats.domain.llama_text import LlamaText, Piece

_NAME = "{{functionName}}"
_PARAMS = "{{functionParams}}"
_MARKERS = re.compile(r"\{\{function(?:Name|Params)\}\}")


class Fillable:
    """A text of the settings with its template parameters, prepared for filling in."""

    def __init__(self, text: LlamaText, inserts: bool) -> None:
        self.values = text.values
        self._inserts = inserts
        plain = [piece for piece in text.values if isinstance(piece, str)]
        self._marked = [isinstance(piece, str) and _MARKERS.search(piece) is not None for piece in text.values]
        self._has_name = any(_NAME in piece for piece in plain)
        self._has_params = any(_PARAMS in piece for piece in plain)

    def with_name(self, name: str) -> Sequence[Piece]:
        return self._filled({_NAME: name}) if self._has_name else self.values

    def with_call(self, call: FunctionCall) -> Sequence[Piece]:
        if not self._has_params and not (self._has_name and _PARAMS in call.name):
            return self.with_name(call.name)
        params = "" if call.params is ABSENT else json_dumps(call.params)
        return self._filled({_NAME: call.name, _PARAMS: params})

    def _filled(self, contents: Mapping[str, str]) -> list[Piece]:
        fill = _inserted if self._inserts else _replaced
        return [
            fill(str(piece), contents) if is_marked else piece
            for piece, is_marked in zip(self.values, self._marked, strict=True)
        ]


def _replaced(text: str, contents: Mapping[str, str]) -> str:
    """One marker after the other, so that a marker in a name is replaced, too, as in the original."""
    for marker, content in contents.items():
        text = replace_marker(text, marker, content)
    return text


def _inserted(text: str, contents: Mapping[str, str]) -> str:
    """All markers at once; the contents stay as they are."""
    if text in contents:
        return contents[text]
    return _MARKERS.sub(lambda found: contents.get(found[0], found[0]), text)
