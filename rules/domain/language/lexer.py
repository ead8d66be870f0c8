"""Characters to tokens. Each token knows its place in code points; a lexical error is the last token of the list."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from rules.domain.language.diagnostics import Diagnostic
from rules.domain.language.environment import MAX_INTEGER

TokenKind = Literal["int", "string", "name", "op", "end", "error"]


@dataclass(frozen=True, slots=True)
class Token:
    """`places[i]` is where the i-th character of a string's value stands in the source; one more ends the list."""

    kind: TokenKind
    text: str
    start: int
    end: int
    value: int | str | None = None
    places: tuple[int, ...] = ()
    raw: bool = False
    problem: Diagnostic | None = None


_SPACE = re.compile(r"(?:[ \t\r\n\f]+|//[^\n]*)+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER = re.compile(r"0x[0-9A-Fa-f]+|[0-9]+")
_FLOAT = re.compile(r"[0-9]+(?:\.[0-9]+(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)|\.[0-9]+(?:[eE][+-]?[0-9]+)?")
_STRING_PREFIX = re.compile(r"([rRbB]{0,2})(\"\"\"|'''|\"|')")
_OPERATOR = re.compile(r"&&|\|\||==|!=|<=|>=|[<>!+\-?:.,()\[\]{}*/%]")
_HEX_ESCAPES = {"x": 2, "X": 2, "u": 4, "U": 8}
_SIMPLE_ESCAPES = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "`": "`",
    "?": "?",
}
_MISSPELT = (
    ("===", "=="),
    ("!==", "!="),
    ("<>", "!="),
    ("=<", "<="),
    ("=>", ">="),
    ("=", "=="),
    ("&", "&&"),
    ("|", "||"),
    ("≤", "<="),
    ("≥", ">="),
    ("≠", "!="),
    ("¬", "!"),
    ("∧", "&&"),
    ("∨", "||"),
    ("−", "-"),
    ("–", "-"),
    ("“", '"'),
    ("”", '"'),
    ("«", '"'),
    ("»", '"'),
    ("‘", "'"),
    ("’", "'"),
    ("\u00a0", " "),
    ("\u202f", " "),
    ("\u200b", ""),
    ("\ufeff", ""),
    (";", ""),
)


def tokens(source: str) -> Iterator[Token]:
    """All tokens of `source`, ended by one of kind "end", or by one of kind "error" that carries the diagnostic.

    One by one, so that a parser that stops early has not paid for the rest.
    """
    at = 0
    while True:
        if space := _SPACE.match(source, at):
            at = space.end()
        if at >= len(source):
            yield Token("end", "", len(source), len(source))
            return
        token = _token(source, at)
        yield token
        if token.kind == "error":
            return
        at = token.end


def _token(source: str, at: int) -> Token:
    char = source[at]
    if char in "()[],?:+":
        return Token("op", char, at, at + 1)
    if char in "rRbB\"'" and (prefix := _STRING_PREFIX.match(source, at)):
        return _string(source, at, prefix[1], prefix[2])
    if name := _NAME.match(source, at):
        return Token("name", name[0], at, name.end())
    if char.isascii() and (char.isdigit() or char == "."):
        return _number(source, at)
    for wrong, right in _MISSPELT:
        if source.startswith(wrong, at) and not source.startswith((wrong + "=", wrong * 2), at):
            return _failed(source, "bad-char", at, at + len(wrong), {"char": wrong}, right)
    if operator := _OPERATOR.match(source, at):
        return Token("op", operator[0], at, operator.end())
    if char == "`":
        return _unsupported(source, "quoted-name", at, at + 1)
    return _failed(source, "bad-char", at, at + 1, {"char": _printable(char)})


def _number(source: str, at: int) -> Token:
    if real := _FLOAT.match(source, at):
        whole = real[0].partition(".")
        is_whole = whole[0].isdigit() and whole[2].isdigit() and not whole[2].strip("0")
        return _unsupported(source, "float", at, real.end(), whole[0] if is_whole else None)
    number = _NUMBER.match(source, at)
    if number is None:
        return Token("op", ".", at, at + 1)
    end = number.end()
    if source[end : end + 1] in ("u", "U"):
        return _unsupported(source, "unsigned", at, end + 1, number[0])
    if (name := _NAME.match(source, end)) is not None:
        return _failed(source, "bad-char", name.start(), name.end(), {"char": name[0]})
    digits = number[0].lower()
    # Python refuses to convert thousands of digits, and nobody needs their value.
    value = MAX_INTEGER + 1 if len(digits.lstrip("0x")) > 12 else int(digits, 16 if "x" in digits else 10)
    if value > MAX_INTEGER:
        args: dict[str, str | int] = {"what": "integer", "found": number[0][:40], "limit": MAX_INTEGER}
        return _failed(source, "too-big", at, end, args)
    return Token("int", number[0], at, end, value)


def _string(source: str, start: int, prefix: str, quote: str) -> Token:
    at = start + len(prefix) + len(quote)
    if len(quote) == 3:
        closed = source.find(quote, at)
        end = len(source) if closed < 0 else closed + 3
        inside = source[at : closed if closed >= 0 else at]
        fits = closed >= 0 and not prefix and "\n" not in inside and quote[0] not in inside
        return _unsupported(source, "triple-quotes", start, end, quote[0] + inside + quote[0] if fits else None)
    if prefix not in ("", "r"):
        end = _end_of_string(source, at, quote)
        is_bytes = "b" in prefix.lower()
        repaired = ("r" if "r" in prefix.lower() else "") + source[start + len(prefix) : end]
        return _unsupported(source, "bytes" if is_bytes else "raw-prefix", start, end, repaired)
    chars: list[str] = []
    places: list[int] = []
    while at < len(source) and source[at] not in "\r\n":
        char = source[at]
        if char == quote:
            places.append(at)
            return Token("string", source[start : at + 1], start, at + 1, "".join(chars), tuple(places), bool(prefix))
        if _refused(char):
            return _failed(source, "bad-char", at, at + 1, {"char": _printable(char)})
        places.append(at)
        if char != "\\" or prefix:
            chars.append(char)
            at += 1
            continue
        if source[at + 1 : at + 2] in ("", "\n", "\r"):
            return _failed(source, "unterminated-string", start, at + 1, {"quote": quote})
        value, end, reason = _escape(source, at)
        if value is None:
            return _bad_escape(source, at, end, reason)
        chars.append(value)
        at = end
    return _failed(source, "unterminated-string", start, at, {"quote": quote}, source[start:at] + quote)


def _escape(source: str, at: int) -> tuple[str | None, int, str]:
    """The character that the escape at `at` stands for, where it ends, and why there is none."""
    kind = source[at + 1 : at + 2]
    if kind in _SIMPLE_ESCAPES:
        return _SIMPLE_ESCAPES[kind], at + 2, ""
    if kind in _HEX_ESCAPES:
        width = _HEX_ESCAPES[kind]
        digits = re.compile(r"[0-9A-Fa-f]*").match(source, at + 2, at + 2 + width)
        end = digits.end() if digits else at + 2
        if end - at - 2 < width:
            return None, end, "short"
        number = int(source[at + 2 : end], 16)
    elif kind and kind in "01234567":
        octal = re.compile(r"[0-3][0-7]{2}").match(source, at + 1)
        if octal is None:
            return None, at + 2, "octal"
        number, end = int(octal[0], 8), octal.end()
    else:
        return None, at + 1 + len(kind), "unknown"
    if 0xD800 <= number < 0xE000:
        return None, end, "surrogate"
    if number > 0x10FFFF:
        return None, end, "range"
    return chr(number), end, ""


def _bad_escape(source: str, at: int, end: int, reason: str) -> Token:
    # What people mean by '\d' is the pattern \d, which takes two backslashes in an ordinary string.
    replace = "\\" + source[at:end] if reason == "unknown" else None
    return _failed(source, "bad-escape", at, end, {"escape": _printable(source[at:end]), "reason": reason}, replace)


def _end_of_string(source: str, at: int, quote: str) -> int:
    while at < len(source) and source[at] not in "\r\n" and source[at] != quote:
        at += 2 if source[at] == "\\" else 1
    return min(at + 1, len(source))


def _refused(char: str) -> bool:
    """NUL and other controls can't be stored everywhere, lone surrogates can't be encoded."""
    return (char < " " and char != "\t") or "\x7f" <= char < "\xa0" or "\ud800" <= char <= "\udfff"


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else f"U+{ord(c):04X}" for c in text)


def _unsupported(source: str, feature: str, start: int, end: int, replace: str | None = None) -> Token:
    args = {"feature": feature, "found": _printable(source[start:end][:40])}
    return _failed(source, "unsupported", start, end, args, replace)


def _failed(
    source: str, code: str, start: int, end: int, args: Mapping[str, str | int], replace: str | None = None
) -> Token:
    problem = Diagnostic(code, start, end, args, "error", replace)
    return Token("error", source[start:end], start, end, problem=problem)
