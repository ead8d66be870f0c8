"""What a check finds: a code, the place in the source, the arguments of its message, and a repair if there is one.

No sentences here: a message is rendered from `code` and `args` in the reader's language (rule-engine.md section 2.5).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Severity = Literal["error", "warning"]
Span = tuple[int, int]

MESSAGE_ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    # syntax
    "expected": ("expected", "found"),
    "trailing": ("found",),
    "unterminated-string": ("quote",),
    "bad-escape": ("escape", "reason"),
    "bad-char": ("char",),
    "unsupported": ("feature", "found"),
    "chained": ("first", "second"),
    # limits
    "too-long": ("length", "limit"),
    "too-deep": ("limit",),
    "too-complex": ("limit",),
    "too-big": ("what", "found", "limit"),
    # names
    "unknown-name": ("name",),
    "unknown-field": ("name",),
    "unknown-function": ("name",),
    # types
    "type": ("expected", "found"),
    "arity": ("name", "expected", "found"),
    "not-bool": ("found",),
    "literal": ("expected", "found"),
    "list": ("expected", "found"),
    "empty-list": (),
    "overflow": ("low", "high", "limit"),
    # patterns; as a warning "regex" has the reason "ascii-boundary" or "backspace"
    "regex": ("reason", "fragment", "at"),
    "regex-too-large": ("what", "found", "limit"),
    "regex-slow": ("found", "limit"),
    # warnings
    "unknown-code": ("name",),
    "constant": ("value", "whole"),
    "later-counter": ("name",),
}
"""Every code that a check can give, with the names of the arguments of its message."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding. `start` and `end` are code points in the source; `replace` is the text that repairs that span."""

    code: str
    start: int
    end: int
    args: Mapping[str, Any] = field(default_factory=dict)
    severity: Severity = "error"
    replace: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The form of rule-engine.md section 2.5; `hint` is null when there is no repair."""
        return {
            "severity": self.severity,
            "code": self.code,
            "start": self.start,
            "end": self.end,
            "args": dict(self.args),
            "hint": None if self.replace is None else {"replace": self.replace},
        }


class SyntaxProblem(Exception):
    """Carries the one diagnostic with which lexing or parsing ends; never leaves `check`."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.code)
        self.diagnostic = diagnostic


def in_reading_order(diagnostics: list[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Errors before warnings, each in the order of the text, without repetitions."""
    seen: dict[tuple[str, int, int], Diagnostic] = {}
    for diagnostic in diagnostics:
        seen.setdefault((diagnostic.code, diagnostic.start, diagnostic.end), diagnostic)
    return tuple(sorted(seen.values(), key=lambda d: (d.severity != "error", d.start, d.end)))
