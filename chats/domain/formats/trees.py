"""Branches of a conversation that is stored as nodes with parents (section 1, Trees).

All of it takes time in proportion to the number of nodes, since an upload may be a comb of any size.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from chats.domain.formats.drafts import ChatDraft, Reading
from chats.domain.formats.exchanges import set_aside
from chats.domain.formats.problems import Problem, ReadingProblem
from chats.domain.formats.reading_rows import Item

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


def ends(
    nodes: Nodes, parent: Parent, chosen: str | None, counts: Callable[[dict[str, Any]], bool] | None = None
) -> list[str]:
    """The ends of all branches in the order of the file, that of the chosen one last.

    Without a chosen node the last leaf is taken. Leaves that only go on from the chosen node are no other branches,
    nor are those on whose way nothing `counts`. Empty when there is no leaf.
    """
    parents: set[str | None] = {parent(n) for n in nodes.values()}
    leaves = [i for i in nodes if i not in parents]
    if counts is not None:
        telling = _with_one_above(nodes, parent, counts)
        leaves = [i for i in leaves if i in telling]
    if chosen not in nodes:
        chosen = leaves[-1] if leaves else None
    if chosen is None:
        return leaves
    below = _below(chosen, nodes, parent)
    return [*(i for i in leaves if i not in below), chosen]


def chats_of(
    found: list[str], reading: Reading, parent: Parent, nodes: Nodes, make: Callable[[list[dict[str, Any]]], ChatDraft]
) -> Iterator[Item]:
    """The chat of the chosen branch, the last of `found`; where all are wished those of the others before it, marked.

    `make` gets the nodes of one branch. A branch that can't be read costs only itself.
    """
    reading.report.other_branches += max(0, len(found) - 1)
    for end in found[:-1] if reading.options.all_branches else []:
        draft = make([nodes[i] for i in branch(end, nodes, parent)])
        draft.external_id = None
        try:
            yield set_aside(draft.record(), "branch", reading)
        except ReadingProblem as problem:
            lost = problem.at(reading.place)
            yield Problem(lost.code, lost.place, lost.args, chat_lost=False)
    yield make([nodes[i] for i in branch(found[-1], nodes, parent)]).record()


def _below(top: str, nodes: Nodes, parent: Parent) -> set[str]:
    """A node and everything that goes on from it."""
    children: dict[str | None, list[str]] = defaultdict(list)
    for i, node in nodes.items():
        children[parent(node)].append(i)
    found = {top}
    waiting = [top]
    while waiting:
        for child in children[waiting.pop()]:
            if child not in found:
                found.add(child)
                waiting.append(child)
    return found


def _with_one_above(nodes: Nodes, parent: Parent, counts: Callable[[dict[str, Any]], bool]) -> set[str]:
    """The nodes that count or that have one above them that does."""
    known: dict[str, bool] = {}
    for start in nodes:
        way: list[str] = []
        on_way: set[str] = set()
        step: str | None = start
        while step is not None and step in nodes and step not in known and step not in on_way:
            way.append(step)
            on_way.add(step)
            step = parent(nodes[step])
        found = known.get(step, False) if step is not None else False
        if step is not None and step in on_way:  # a circle: what counts in it is above all of it
            found = any(counts(nodes[i]) for i in way[way.index(step) :])
        for i in reversed(way):
            found = found or counts(nodes[i])
            known[i] = found
    return {i for i, value in known.items() if value}
