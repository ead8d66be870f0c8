"""Reading what clients send: JSON that can be stored as it is, or a problem that names the field.

A file's NUL characters and lone surrogates are replaced when it is imported; here they are an error, since a client can
mend them (architecture.md section 5.5).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, Final

from django.http import HttpRequest
from django.utils.datastructures import MultiValueDict
from django.utils.translation import gettext as _
from ninja.errors import ValidationError
from ninja.parser import Parser

from eleanor_site.api_problems import FieldProblem, Problem, path_of

MOST_LEVELS: Final = 64
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
MOST_DIGITS: Final = 100


class StrictParser(Parser):
    """The API's parser of bodies and addresses."""

    def parse_body(self, request: HttpRequest) -> Any:
        return read_json(request.body)

    def parse_querydict(self, data: MultiValueDict[str, Any], list_fields: list[str], request: HttpRequest) -> Any:
        for name in data:
            for value in data.getlist(name):
                if isinstance(value, str) and _UNSTORABLE.search(value):
                    error = {"loc": ("query", name), "type": "unstorable_character", "msg": _sentence()}
                    raise ValidationError([error])
        return super().parse_querydict(data, list_fields, request)


def read_json(body: bytes) -> Any:
    """The value of a body. Raises Problem for anything that isn't strict JSON in UTF-8, or can't be stored."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise Problem("malformed_json", _("The body isn't UTF-8.")) from None
    try:
        value = json.loads(
            text, object_pairs_hook=_object, parse_int=_integer, parse_float=_real, parse_constant=_constant
        )
    except json.JSONDecodeError as error:
        place = {"line": error.lineno, "column": error.colno}
        detail = _("The body isn't JSON: see line %(line)s, column %(column)s.") % place
        raise Problem("malformed_json", detail) from None
    except RecursionError:
        raise _too_deep() from None
    # Neither can be without an escape, the character itself, or many brackets.
    if "\\u" in text or "\x00" in text or text.count("{") + text.count("[") > MOST_LEVELS:
        errors = [
            FieldProblem(path=path_of(steps), code="unstorable_character", message=_sentence())
            for steps in _unstorable(value)
        ]
        if errors:
            raise Problem("invalid", errors=errors[:20])
    return value


def _unstorable(value: Any) -> Iterator[tuple[Any, ...]]:
    """Where text can't be stored. Raises Problem for what is nested too deeply."""
    waiting: list[tuple[tuple[Any, ...], Any]] = [((), value)]
    while waiting:
        steps, item = waiting.pop()
        if isinstance(item, str):
            if (not item.isascii() or "\x00" in item) and _UNSTORABLE.search(item):
                yield steps
        elif isinstance(item, (dict, list)):
            if len(steps) >= MOST_LEVELS:
                raise _too_deep()
            if isinstance(item, dict):
                for key, inner in item.items():
                    if _UNSTORABLE.search(key):
                        yield (*steps, key)
                    waiting.append(((*steps, key), inner))
            else:
                waiting.extend(((*steps, n), inner) for n, inner in enumerate(item))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _value in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise Problem("malformed_json", _("The key %(key)s stands twice in one object.") % {"key": json.dumps(twice)})
    return value


def _integer(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise Problem("malformed_json", _("A number in the body has too many digits."))
    return int(digits)


def _real(digits: str) -> float:
    value = float(digits) if len(digits) <= MOST_DIGITS else math.inf
    if not math.isfinite(value):
        raise Problem("malformed_json", _("A number in the body is too large."))
    return value


def _constant(name: str) -> Any:
    raise Problem("malformed_json", _("%(name)s isn't a JSON number.") % {"name": name})


def _too_deep() -> Problem:
    return Problem("malformed_json", _("The body has more than %(n)s levels.") % {"n": MOST_LEVELS})


def _sentence() -> str:
    return _("The text holds a NUL character or half of a surrogate pair. Remove it.")
