"""The names that a template reads from outside, and what its text tells about their values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jinja2 import meta, nodes

from chats.domain.chat_templates.environment import ENVIRONMENTS
from chats.domain.chat_templates.requests import PASSED_NAMES, SPECIAL_TOKEN_NAMES, Profile


@dataclass(frozen=True, slots=True)
class TemplateVariable:
    """A name that a template reads from outside, with what its text tells about the values it expects."""

    name: str
    line: int
    choices: tuple[str, ...] = ()
    looks_boolean: bool = False


def undeclared_names(text: str, profile: Profile = "current") -> frozenset[str]:
    """Names that some path through the template reads before it sets them, those of the sandbox left out."""
    return frozenset(meta.find_undeclared_variables(ENVIRONMENTS[profile].parse(text)))


def variables(text: str, profile: Profile = "current") -> tuple[TemplateVariable, ...]:
    """The keyword arguments that a template can be given, in alphabetical order.

    What the product passes itself is left out, and so is a name that the template sets before it first reads it: a
    variable that only one branch sets looks undeclared, but is not meant to be passed. Raises as compiling does.
    """
    tree = ENVIRONMENTS[profile].parse(text)
    first_use = _first_uses(tree)
    choices: dict[str, set[str]] = {}
    booleans: set[str] = set()
    for comparison in tree.find_all(nodes.Compare):
        _note_choices(comparison, choices)
    for test in tree.find_all((nodes.If, nodes.CondExpr, nodes.And, nodes.Or, nodes.Not)):
        booleans.update(_tested_names(test))
    found = []
    # Last, since it computes constant parts of the tree and puts their values in place.
    undeclared = meta.find_undeclared_variables(tree)
    for name in sorted(undeclared - {*PASSED_NAMES, *SPECIAL_TOKEN_NAMES}):
        context, line = first_use.get(name, ("load", 1))
        if context == "load":
            known = tuple(sorted(choices.get(name, ())))
            found.append(TemplateVariable(name, line, known, name in booleans and not known))
    return tuple(found)


def _first_uses(tree: nodes.Template) -> dict[str, tuple[str, int]]:
    """How and at which line each name is met first when the template is read from the top, values before targets."""
    first: dict[str, tuple[str, int]] = {}
    waiting: list[nodes.Node] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, nodes.Name):
            first.setdefault(node.name, (node.ctx, node.lineno))
            continue
        children = list(node.iter_child_nodes())
        if isinstance(node, (nodes.Assign, nodes.AssignBlock, nodes.For)):
            # The target stands first in the text, but the value is read before it is set.
            target = node.target
            read = [c for c in children if c is not target]
            children = [read[0], target, *read[1:]] if isinstance(node, nodes.For) else [*read, target]
        waiting.extend(reversed(children))
    return first


def _note_choices(comparison: nodes.Compare, choices: dict[str, set[str]]) -> None:
    if not isinstance(comparison.expr, nodes.Name):
        return
    for operand in comparison.ops:
        values = operand.expr.items if isinstance(operand.expr, (nodes.List, nodes.Tuple)) else [operand.expr]
        for value in values:
            if isinstance(value, nodes.Const) and isinstance(value.value, str):
                choices.setdefault(comparison.expr.name, set()).add(value.value)


def _tested_names(test: nodes.Node) -> Iterator[str]:
    """Names whose truth alone decides: `if x`, `not x`, `x and …`, `x is true`."""
    sides: list[nodes.Node] = []
    if isinstance(test, (nodes.If, nodes.CondExpr)):
        sides = [test.test]
    elif isinstance(test, (nodes.And, nodes.Or)):
        sides = [test.left, test.right]
    elif isinstance(test, nodes.Not):
        sides = [test.node]
    for side in sides:
        if isinstance(side, nodes.Test) and side.name in ("true", "false"):
            side = side.node
        if isinstance(side, nodes.Name):
            yield side.name
