"""JSON as it may be stored: no NUL, no lone surrogates, no NaN, bounded depth and numbers; each change is counted."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from chats.domain.formats.limits import Limits
from chats.domain.formats.problems import ImportReport, LimitPassed, ReadingProblem

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class Cleaner:
    """Parses and cleans for one import, counting into its report.

    Python's own parser is used, with hooks, since it alone lets us count repeated keys, see lone surrogates and read
    NaN. Control characters inside strings are let through and NUL among them replaced.
    """

    def __init__(self, limits: Limits, report: ImportReport) -> None:
        self.limits = limits
        self.report = report
        self.decoder = json.JSONDecoder(
            object_pairs_hook=self._object,
            parse_int=self._integer,
            parse_float=self._real,
            parse_constant=self._constant,
            strict=False,
        )

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) != len(pairs):
            self.report.duplicate_keys += len(pairs) - len(value)
        return value

    def _integer(self, digits: str) -> int:
        self._count_digits(digits)
        return int(digits)

    def _count_digits(self, number: str) -> None:
        if len(number) > self.limits.digits and sum(map(str.isdigit, number)) > self.limits.digits:
            raise LimitPassed("digits", self.limits.digits)

    def _real(self, digits: str) -> float | None:
        self._count_digits(digits)
        value = float(digits)
        if math.isfinite(value):
            return value
        self._constant(digits)
        return None

    def _constant(self, _name: str) -> None:
        self.report.numbers_read_as_null += 1

    def parse(self, text: str) -> Any:
        """The cleaned value of a whole JSON text. Raises ReadingProblem, LimitPassed for a limit."""
        try:
            value = self.decoder.decode(text)
        except json.JSONDecodeError as error:
            raise invalid_json(error) from error
        except RecursionError as error:
            raise LimitPassed("depth", self.limits.depth) from error
        return self.clean(value, texts=may_hold_unstorable(text))

    def parse_object(self, text: str) -> dict[str, Any] | None:
        """The object that a text is, or None when it isn't one: call arguments and the like, which may be anything."""
        if text.lstrip()[:1] != "{":
            return None
        try:
            value = self.parse(text)
        except LimitPassed:
            raise
        except ReadingProblem:
            return None
        return value if isinstance(value, dict) else None

    def parse_if_json(self, text: str) -> Any:
        """The object or list that a text is, else the text itself."""
        if text.lstrip()[:1] not in ("{", "["):
            return text
        try:
            return self.parse(text)
        except LimitPassed:
            raise
        except ReadingProblem:
            return text

    def clean(self, value: Any, *, texts: bool = True) -> Any:
        """The value with unstorable characters replaced; containers are changed in place.

        `texts=False` only measures the depth. Raises LimitPassed when it is nested too deeply.
        """
        return self._clean(value, self.limits.depth, texts)

    def _clean(self, value: Any, depth: int, texts: bool) -> Any:
        if isinstance(value, str):
            return self.text(value) if texts else value
        if isinstance(value, dict):
            if depth <= 0:
                raise LimitPassed("depth", self.limits.depth)
            if texts and any(not k.isascii() or "\0" in k for k in value):
                value = {self.text(k): v for k, v in value.items()}
            for key, item in value.items():
                if isinstance(item, (dict, list)):
                    value[key] = self._clean(item, depth - 1, texts)
                elif texts and isinstance(item, str):
                    value[key] = self.text(item)
            return value
        if isinstance(value, list):
            if depth <= 0:
                raise LimitPassed("depth", self.limits.depth)
            for i, item in enumerate(value):
                if isinstance(item, (dict, list)) or (texts and isinstance(item, str)):
                    value[i] = self._clean(item, depth - 1, texts)
            return value
        return value

    def text(self, text: str) -> str:
        """The text with NUL and lone surrogates replaced by U+FFFD, counted."""
        if text.isascii() and "\0" not in text:
            return text
        cleaned, count = _UNSTORABLE.subn(REPLACEMENT, text)
        self.report.replaced_characters += count
        return cleaned


def may_hold_unstorable(text: str) -> bool:
    """Whether JSON text can decode to NUL or a lone surrogate: only from an escape, or from NUL itself."""
    return "\\u" in text or "\0" in text


def invalid_json(error: json.JSONDecodeError) -> ReadingProblem:
    return ReadingProblem("invalid_json", reason=error.msg, offset=error.pos)
