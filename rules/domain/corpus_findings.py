"""What a corpus tells about a predicate: warnings that need its points, and the values that its fields take.

The warnings come with the effect of an edit, not with its check (rule-engine.md section 2.5).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from rules.domain.columns import is_known
from rules.domain.context import Stage
from rules.domain.language.diagnostics import Diagnostic
from rules.domain.language.environment import FIELDS, FINISH_REASONS
from rules.domain.language.tree import Node
from rules.domain.masks import Points
from rules.domain.near_misses import near_misses

_REASONS: Final = (None, *FINISH_REASONS)
_MOST_VALUES: Final = 8


@dataclass(frozen=True, slots=True)
class Observed:
    """A value that a field takes, at how many points of a stage. None: unknown there."""

    value: bool | int | str | None
    count: int


def observed_values(views: Sequence[Points], field: str, stage: Stage) -> tuple[Observed, ...]:
    """The commonest values of a field at the points of a stage; empty for texts and for `nudges`."""
    if FIELDS[field] not in ("bool", "int", "string?"):
        return ()
    counts: Counter[Any] = Counter()
    for view in views:
        at_stage = view.at_stage(stage)
        known = is_known(view.columns, field) & at_stage
        values, numbers = np.unique(view.field(field)[known], return_counts=True)
        for value, number in zip(values.tolist(), numbers.tolist(), strict=True):
            counts[_REASONS[value] if field == "finish_reason" else value] += number
        counts[None] += int(np.count_nonzero(at_stage)) - int(np.count_nonzero(known))
    common = sorted(((v, n) for v, n in counts.items() if n), key=lambda item: (-item[1], str(item[0])))
    return tuple(Observed(value, number) for value, number in common[:_MOST_VALUES])


def corpus_warnings(
    tree: Node, views: Sequence[Points], stage: Stage, language_of: Callable[[str], str] | None = None
) -> list[Diagnostic]:
    """Warnings `never-seen`, `one-value`, `no-effect` and, with a guesser of languages, `one-language`."""
    at_stage = [np.flatnonzero(view.at_stage(stage)) for view in views]
    if not any(len(places) for places in at_stage):
        return []
    found = _fields(tree, views, stage)
    told = {d.start for d in found}
    found += [d for d in _idle_clauses(tree, views, at_stage) if d.start not in told]
    if language_of is not None:
        found += _one_language(tree, language_of)
    return sorted(found, key=lambda d: (d.start, d.end))


def _fields(tree: Node, views: Sequence[Points], stage: Stage) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    told: set[str] = set()
    for node in tree.walk():
        name = str(node.value)
        if node.kind != "field" or node.type not in ("bool", "int", "string?") or name in told:
            continue
        told.add(name)
        values = observed_values(views, name, stage)
        if [v.value for v in values] == [None]:
            found.append(Diagnostic("never-seen", *node.span, {"name": name}, "warning"))
        elif len(values) == 1:
            args = {"name": name, "value": values[0].value}
            found.append(Diagnostic("one-value", *node.span, args, "warning"))
    return found


def _idle_clauses(tree: Node, views: Sequence[Points], at_stage: Sequence[Any]) -> list[Diagnostic]:
    """Clauses whose value changes the result at no point. A predicate of one clause has none: it is its result."""
    matters: list[bool] = []
    clauses: list[Node] = []
    for view, places in zip(views, at_stage, strict=True):
        found, _ = near_misses(tree, view.among(places))
        clauses = [clause.node for clause in found]
        matters = [c.matters or before for c, before in zip(found, matters or [False] * len(found), strict=True)]
    return [
        Diagnostic("no-effect", *clause.span, {}, "warning")
        for clause, does in zip(clauses, matters, strict=True)
        if not does
    ]


def _one_language(tree: Node, language_of: Callable[[str], str]) -> list[Diagnostic]:
    """Phrases that the predicate looks for, when all whose language can be told are of one."""
    phrases = [
        node.children[1]
        for node in tree.walk()
        if node.kind == "call" and node.value in ("contains", "startsWith", "endsWith", "matches")
    ]
    languages = {language for node in phrases if (language := language_of(str(node.value)))}
    if len(languages) != 1:
        return []
    [language] = languages
    span = phrases[0].span
    return [Diagnostic("one-language", *span, {"language": language}, "warning")]
