"""JSON and strings the way JavaScript prints them (chat-wrappers.md sections 2 and 5).

The models were trained on prompts printed that way, so numbers, key order and escapes are part of a prompt's text.
"""

from __future__ import annotations

import enum
import json
import math
import re
from collections.abc import Iterable, Mapping
from json.encoder import encode_basestring
from typing import Any, Final

# White space of String.prototype.trim; Python's str.strip() takes other characters away.
JS_WHITESPACE: Final = (
    "\t\n\v\f\r \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
_MAX_SAFE_INTEGER = 2**53
_ARRAY_INDEX = re.compile(r"(?:0|[1-9][0-9]{0,9})\Z")
_MAX_ARRAY_INDEX = 2**32 - 2
_SURROGATE = re.compile("[\ud800-\udfff]")
_DOLLAR = re.compile(r"\$[$&`']")


class Absence(enum.Enum):
    """The type of ABSENT, so that type checkers can tell it from every value."""

    ABSENT = "absent"

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = Absence.ABSENT
"""JavaScript's `undefined`: a value that isn't there, which is not the same as None (`null`)."""


def json_dumps(value: Any) -> str:
    """One line of JSON with `", "` and `": "` between parts (`jsonDumps`, chat-wrappers.md section 5).

    Keys whose value is ABSENT are left out; an ABSENT in a list prints `null`. Raises ValueError for an absent value
    and TypeError for what JSON can't hold.
    """
    return _top_level(value, ", ", ": ")


def json_compact(value: Any) -> str:
    """As `json_dumps`, without white space (`JSON.stringify`)."""
    return _top_level(value, ",", ":")


def _top_level(value: Any, comma: str, colon: str) -> str:
    if value is ABSENT:
        raise ValueError("an absent value has no JSON text")
    return _dump(value, comma, colon)


def _dump(value: Any, comma: str, colon: str) -> str:
    # Rendering a long chat spends most of its time here, hence the order of the cases and the shortcuts for leaves.
    kind = type(value)
    if kind is str:
        return encode_basestring(value) if value.isascii() else json_string(value)
    if kind is int:
        return str(value) if -_MAX_SAFE_INTEGER <= value <= _MAX_SAFE_INTEGER else js_number(value, "null")
    if kind is dict:
        parts = []
        for key, item in value.items():
            if "0" <= key[:1] <= "9" and _is_array_index(key):
                return _dump_pairs(js_ordered(value), comma, colon)
            quoted = encode_basestring(key) if key.isascii() else json_string(key)
            if type(item) is str and item.isascii():
                parts.append(quoted + colon + encode_basestring(item))
            elif item is not ABSENT:
                parts.append(quoted + colon + _dump(item, comma, colon))
        return "{" + comma.join(parts) + "}"
    if kind is list or kind is tuple:
        return "[" + comma.join([_dump(None if item is ABSENT else item, comma, colon) for item in value]) + "]"
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if kind is float:
        return js_number(value, not_finite="null")
    if isinstance(value, str):
        return json_string(value)
    if isinstance(value, Mapping):
        return _dump_pairs(js_ordered(value), comma, colon)
    raise TypeError(f"JSON can't hold a {kind.__name__}")


def _dump_pairs(pairs: Iterable[tuple[str, Any]], comma: str, colon: str) -> str:
    parts = [f"{json_string(k)}{colon}{_dump(v, comma, colon)}" for k, v in pairs if v is not ABSENT]
    return "{" + comma.join(parts) + "}"


def json_string(text: str) -> str:
    """A quoted JSON string: non-ASCII characters stay as they are, lone surrogates are escaped."""
    quoted = encode_basestring(text)
    if text.isascii() or _SURROGATE.search(quoted) is None:
        return quoted
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)


def js_number(value: float, not_finite: str | None = None) -> str:
    """The number as JavaScript prints it; integers beyond 2^53 are rounded to a double first, as parsing them does.

    `not_finite` is printed for NaN and the infinities (JSON has `null` there); without it they print by name.
    """
    if isinstance(value, int):
        if -_MAX_SAFE_INTEGER <= value <= _MAX_SAFE_INTEGER:
            return str(value)
        try:
            value = float(value)
        except OverflowError:
            value = math.inf if value > 0 else -math.inf
    if not math.isfinite(value):
        if not_finite is not None:
            return not_finite
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "0"
    mantissa, _, exponent = f"{value!r}".partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    if fraction == "0":
        fraction = ""
    # The value is 0.DIGITS times ten to the power of `point`.
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    count = len(digits)
    if count <= point <= 21:
        return sign + digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    power = point - 1
    head = digits if count == 1 else f"{digits[0]}.{digits[1:]}"
    return f"{sign}{head}e{'+' if power > 0 else '-'}{abs(power)}"


def _is_array_index(key: str) -> bool:
    return _ARRAY_INDEX.match(key) is not None and int(key) <= _MAX_ARRAY_INDEX


def js_ordered(mapping: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The pairs in JavaScript's order: canonical array indexes by number, then the rest as they were inserted."""
    indexes = [key for key in mapping if _is_array_index(key)]
    if not indexes:
        return list(mapping.items())
    taken = set(indexes)
    first = [(key, mapping[key]) for key in sorted(indexes, key=int)]
    return first + [(key, value) for key, value in mapping.items() if key not in taken]


def parse_json(text: str) -> Any:
    """JSON text as JavaScript reads it: no NaN, no Infinity, integers of any length. Raises ValueError otherwise."""
    try:
        return json.loads(text, parse_constant=_no_constant, parse_int=_integer)
    except RecursionError as error:
        raise ValueError("the JSON text is nested too deeply") from error


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")


def _integer(digits: str) -> int | float:
    # Longer ones are doubles in JavaScript anyway, and Python refuses to convert very long ones to integers.
    return int(digits) if len(digits) < 17 else float(digits)


def js_trim(text: str) -> str:
    """`String.prototype.trim`."""
    return text.strip(JS_WHITESPACE)


def js_text(value: str | float) -> str:
    """A string, number or boolean turned into text as JavaScript does."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return js_number(value)


def replace_marker(text: str, marker: str, replacement: str) -> str:
    """`String.prototype.replaceAll` with strings: `$$`, `$&`, `` $` `` and `$'` in the replacement are special."""
    if "$" not in replacement:
        return text.replace(marker, replacement)
    parts = []
    end = 0
    while (start := text.find(marker, end)) >= 0:
        special = {"$$": "$", "$&": marker, "$`": text[:start], "$'": text[start + len(marker) :]}
        parts.append(text[end:start])
        parts.append(_DOLLAR.sub(lambda found, special=special: special[found[0]], replacement))  # type: ignore[misc]
        end = start + len(marker)
    parts.append(text[end:])
    return "".join(parts)
