"""Branches of a conversation that is stored as nodes with parents (section 1, Trees)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Nodes = dict[str, dict[str, Any]]
Parent = Callable[[dict[str, Any]], str | None]


def branch(leaf: str | None, nodes: Nodes, parent: Parent) -> list[str]:
    """The ids from the root to a leaf. Missing nodes end the walk, circles too."""
    path: list[str] = []
    seen: set[str] = set()
    step = leaf
    while step is not None and step in nodes and step not in seen:
        seen.add(step)
        path.append(step)
        step = parent(nodes[step])
    return path[::-1]


def leaves(nodes: Nodes, parent: Parent) -> list[str]:
    """The ids that are nobody's parent, in the order of the file."""
    parents: set[str | None] = {parent(n) for n in nodes.values()}
    return [i for i in nodes if i not in parents]


def chosen_last(all_leaves: Iterable[str], chosen: str | None) -> list[str]:
    """The leaves with the chosen one at the end; without one, the last leaf is taken."""
    rest = [leaf for leaf in all_leaves if leaf != chosen]
    if chosen is None:
        return rest
    return [*rest, chosen]
