"""What the lint of a template gives: facts, and findings with the texts that show them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Severity = Literal["error", "warning", "info"]
Fact = bool | str | None | list[str]
Argument = str | int | list[str]


@dataclass(frozen=True, slots=True)
class Sample:
    """One side of a comparison: which chat (`about`, a code), and its text, or the words of the error it raised."""

    about: str
    text: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about the template that its author should know. `check` is the number of the check, 1 to 20."""

    code: str
    check: int
    severity: Severity
    args: Mapping[str, Argument] = field(default_factory=dict)
    left: Sample | None = None
    right: Sample | None = None


@dataclass(frozen=True, slots=True)
class LintReport:
    """All that was found. `facts` is empty for a template that doesn't compile."""

    facts: Mapping[str, Fact]
    findings: tuple[Finding, ...]
