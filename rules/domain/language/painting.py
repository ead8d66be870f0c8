"""What each stretch of an expression is, for the editor's overlay. Works on text that has errors, too."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rules.domain.language.environment import FIELDS, FUNCTIONS
from rules.domain.language.lexer import tokens

_COMMENT = re.compile(r"//[^\n]*")
_KEYWORDS = frozenset({"true", "false", "null", "in", "ctx"})
MAX_PAINTED = 2_000


def painted(source: str) -> Iterator[tuple[int, int, str]]:
    """(start, end, kind) in code points, in order.

    A kind is field, function, string, number, operator, keyword or comment.

    Longer texts than the language reads aren't painted.
    """
    if len(source) > MAX_PAINTED:
        return
    at = 0
    for token in tokens(source):
        for comment in _COMMENT.finditer(source, at, token.start):
            yield comment.start(), comment.end(), "comment"
        at = token.end
        kind = _kind(token.kind, token.text)
        if kind and token.end > token.start:
            yield token.start, token.end, kind


def _kind(kind: str, text: str) -> str:
    if kind == "int":
        return "number"
    if kind == "string":
        return "string"
    if kind == "op":
        return "operator" if text not in "().,[]" else ""
    if kind != "name":
        return ""
    if text in _KEYWORDS:
        return "keyword"
    if text in FIELDS:
        return "field"
    return "function" if text in FUNCTIONS else ""
