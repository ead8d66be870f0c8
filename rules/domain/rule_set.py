"""A rule set as plain values: what a replay freezes, and what compiles to rules."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from rules.domain.language import check
from rules.domain.rule import ContinuationRule
from rules.domain.scalar import compile_scalar


class RuleSpec(BaseModel):
    """One rule of a set. `version` is the version that it is, or that a draft is based on (0: none)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    code: str
    stage: Literal["final", "round"]
    max_nudges: int
    expression: str
    prompt: str
    version: int = 0
    draft: bool = False


class BrokenRule(ValueError):
    """An expression with an error can't be evaluated; `code` names the rule."""

    def __init__(self, code: str) -> None:
        super().__init__(f"the expression of {code} has an error")
        self.code = code


def compile_rule(spec: RuleSpec) -> ContinuationRule:
    """The rule with its predicate compiled. Raises BrokenRule when the expression has an error."""
    checked = check(spec.expression, stage=spec.stage)
    if checked.tree is None or any(d.severity == "error" for d in checked.diagnostics):
        raise BrokenRule(spec.code)
    return ContinuationRule(
        code=spec.code,
        max_nudges=spec.max_nudges,
        predicate=compile_scalar(checked.tree),
        prompt=spec.prompt,
        stage=spec.stage,
    )


def compile_rules(specs: Sequence[RuleSpec]) -> list[ContinuationRule]:
    return [compile_rule(spec) for spec in specs]


def rule_set_digest(specs: Sequence[RuleSpec]) -> str:
    """SHA-256 over everything that decides, in order: code, stage, cap, expression. Prompts decide nothing."""
    content = [[s.code, s.stage, s.max_nudges, s.expression] for s in specs]
    return hashlib.sha256(json.dumps(content, ensure_ascii=True, separators=(",", ":")).encode()).hexdigest()
