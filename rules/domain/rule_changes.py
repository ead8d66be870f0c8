"""Two outcomes of the same points, rule by rule: how often each fires newly, and how often no longer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rules.domain.comparing import translation
from rules.domain.settling import NONE, Outcome, Rule


@dataclass(frozen=True, slots=True)
class RuleChange:
    """Of one rule: firings before and after, those that are new, and those that are gone."""

    before: int = 0
    after: int = 0
    newly: int = 0
    gone: int = 0

    def __add__(self, other: RuleChange) -> RuleChange:
        return RuleChange(
            self.before + other.before, self.after + other.after, self.newly + other.newly, self.gone + other.gone
        )


def rule_changes(
    before: Outcome, rules_before: Sequence[Rule], after: Outcome, rules_after: Sequence[Rule]
) -> dict[str, RuleChange]:
    """The change of every rule that either list holds, by code."""
    differs = np.flatnonzero(translation(rules_before, rules_after)[before] != after)
    old, new = _fired(before, rules_before), _fired(after, rules_after)
    gone, newly = _fired(before[differs], rules_before), _fired(after[differs], rules_after)
    codes = dict.fromkeys([rule.code for rule in (*rules_after, *rules_before)])
    return {
        code: RuleChange(old.get(code, 0), new.get(code, 0), newly.get(code, 0), gone.get(code, 0)) for code in codes
    }


def _fired(outcome: Outcome, rules: Sequence[Rule]) -> dict[str, int]:
    counts = np.bincount(outcome[outcome != NONE], minlength=len(rules)).tolist()
    return {rule.code: count for rule, count in zip(rules, counts, strict=True)}
