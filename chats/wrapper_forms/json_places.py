"""Where the text of the JSON tab breaks, as a place that an editor can go to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True)
class JsonProblem:
    """Where the JSON tab's text stops being JSON, or settings: character, line and column from 1."""

    message: str
    start: int
    line: int
    column: int


def json_words(error: json.JSONDecodeError) -> str:
    known = {
        "Expecting value": _("a value is missing here"),
        "Expecting ',' delimiter": _("a comma is missing here"),
        "Expecting ':' delimiter": _("a colon is missing here"),
        "Expecting property name enclosed in double quotes": _("a key in double quotes is missing here"),
        "Extra data": _("there is something after the end"),
        "Illegal trailing comma before end of object": _("there is a comma before the end"),
        "Illegal trailing comma before end of array": _("there is a comma before the end"),
        "Unterminated string starting at": _("this string has no end"),
    }
    return str(known.get(error.msg, error.msg))


def json_problem_at(text: str, at: int, message: str) -> JsonProblem:
    before = text[:at]
    return JsonProblem(message, at, before.count("\n") + 1, at - (before.rfind("\n") + 1) + 1)


def place_in_json(text: str, path: Sequence[str | int]) -> int:
    """The character at which the value of a path begins, as near as plain searching finds it."""
    at = 0
    for key in path:
        if isinstance(key, int):
            continue
        found = text.find(json.dumps(key, ensure_ascii=False), at)
        if found < 0:
            break
        at = found
    return at
