"""Points where a predicate is false and one atomic clause alone is to blame (rule-engine.md section 6)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rules.domain.atoms import Flags
from rules.domain.language.tree import Node
from rules.domain.masks import Points, mask
from rules.domain.settling import Places

_STRUCTURE = frozenset({"and", "or", "not", "choice"})


@dataclass(frozen=True, slots=True)
class Clause:
    """An atomic clause: `missed` are the points that it alone keeps from matching, as places among the points given.

    `matters` tells whether its value changes the result at any of them.
    """

    node: Node
    missed: Places
    matters: bool


def clauses_of(tree: Node) -> Iterator[Node]:
    """The atomic clauses of a predicate, in the order of the text: what `&&`, `||`, `!` and `? :` put together."""
    if tree.type == "bool" and tree.kind in _STRUCTURE:
        for child in tree.children:
            yield from clauses_of(child)
    else:
        yield tree


def near_misses(tree: Node, points: Points) -> tuple[list[Clause], Flags]:
    """Each clause with its near misses, and where the predicate holds. Counters are those of `points`."""
    clauses = list(clauses_of(tree))
    values = [mask(clause, points) for clause in clauses]
    holds = _combined(tree, iter(values), len(points))
    found = []
    for at, clause in enumerate(clauses):
        flipped = [~value if number == at else value for number, value in enumerate(values)]
        otherwise = _combined(tree, iter(flipped), len(points))
        found.append(Clause(clause, np.flatnonzero(otherwise & ~holds), bool((otherwise != holds).any())))
    return found, holds


def _combined(tree: Node, values: Iterator[Flags], count: int) -> Flags:
    """The predicate from the values of its clauses, in the order of `clauses_of`."""
    if tree.type != "bool" or tree.kind not in _STRUCTURE:
        return next(values)
    parts = [_combined(child, values, count) for child in tree.children]
    match tree.kind:
        case "and":
            return np.asarray(np.logical_and.reduce(parts), dtype=np.bool_)
        case "or":
            return np.asarray(np.logical_or.reduce(parts), dtype=np.bool_)
        case "not":
            return ~parts[0]
        case _:
            return (parts[0] & parts[1]) | (~parts[0] & parts[2])
