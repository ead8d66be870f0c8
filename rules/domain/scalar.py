"""A predicate at one point: its value, and the value of each of its parts (rule-engine.md section 4).

Closures made from the checked tree, so that nothing but the names of fixed tables can be reached.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from rules.domain import phrases
from rules.domain.context import TurnContext
from rules.domain.language.diagnostics import Span
from rules.domain.language.environment import PHRASE_FUNCTIONS
from rules.domain.language.patterns import found_in, spans_in
from rules.domain.language.tree import Node, Value

Evaluator = Callable[[TurnContext], Any]

_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_CALLS: Mapping[str, Callable[..., Any]] = {
    "is_go_ahead": phrases.is_go_ahead,
    "lists_remaining_work": phrases.lists_remaining_work,
    "announces_action": phrases.announces_action,
    "asks_user": phrases.asks_user,
    "last_paragraph": phrases.last_paragraph,
    "size": len,
    "contains": operator.contains,
    "startsWith": str.startswith,
    "endsWith": str.endswith,
    "matches": lambda text, pattern: found_in(pattern, text),
}
_PHRASE_SPANS: Mapping[str, Callable[[str], list[Span]]] = {
    "is_go_ahead": phrases.find_is_go_ahead,
    "lists_remaining_work": phrases.find_lists_remaining_work,
    "announces_action": phrases.find_announces_action,
    "asks_user": phrases.find_asks_user,
}
_MOST_MARKS = 100


def compile_scalar(tree: Node) -> Callable[[TurnContext], bool]:
    """The predicate as a function of a context. It can't fail on a context whose fields have their declared types."""
    return _compiled(tree)


def _compiled(node: Node) -> Evaluator:
    match node.kind:
        case "field":
            return operator.attrgetter(str(node.value))
        case "bool" | "int" | "string" | "null" | "list":
            constant = _constant(node)
            return lambda ctx: constant
        case "and":
            return _all_of([_compiled(child) for child in node.children])
        case "or":
            return _any_of([_compiled(child) for child in node.children])
        case "choice":
            condition, yes, no = (_compiled(child) for child in node.children)
            return lambda ctx: yes(ctx) if condition(ctx) else no(ctx)
    if node.kind == "call" and node.value == "nudged":
        code = node.children[0].value
        return lambda ctx: ctx.nudges.get(code, 0)  # type: ignore[arg-type]
    operation = _operation(node)
    operands = [_compiled(child) for child in node.children]
    if len(operands) == 1:
        only = operands[0]
        return lambda ctx: operation(only(ctx))
    left, right = operands
    if node.children[1].kind in ("bool", "int", "string", "null", "list"):
        fixed = _constant(node.children[1])
        return lambda ctx: operation(left(ctx), fixed)
    return lambda ctx: operation(left(ctx), right(ctx))


def _all_of(parts: list[Evaluator]) -> Evaluator:
    def evaluate(ctx: TurnContext) -> bool:
        for part in parts:  # noqa: SIM110  a generator would double the time of two scalar terms
            if not part(ctx):
                return False
        return True

    return evaluate


def _any_of(parts: list[Evaluator]) -> Evaluator:
    def evaluate(ctx: TurnContext) -> bool:
        for part in parts:  # noqa: SIM110
            if part(ctx):
                return True
        return False

    return evaluate


def _constant(node: Node) -> Any:
    if node.kind == "list":
        return frozenset(child.value for child in node.children)
    return node.value


def _operation(node: Node) -> Callable[..., Any]:
    """What a node with one or two operands, all of them evaluated, does with their values."""
    match node.kind:
        case "not":
            return operator.not_
        case "negative":
            return operator.neg
        case "compare":
            return _COMPARISONS[str(node.value)]
        case "in":
            return lambda item, group: item in group
        case "sum":
            return operator.add if node.value == "+" else operator.sub
        case _:
            return _CALLS[str(node.value)]


# --- why


@dataclass(frozen=True, slots=True)
class Mark:
    """A stretch of the text of a field, in code points, that made a term true."""

    field: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TraceNode:
    """A part of the predicate with its value at one point; `result` is None too when it was not evaluated.

    Operands right of the one that decided `&&`, `||`, and the branch that `? :` did not take, are not evaluated.
    """

    node: Node
    evaluated: bool
    result: Value | tuple[Value, ...]
    children: tuple[TraceNode, ...]
    marks: tuple[Mark, ...] = ()

    @property
    def state(self) -> Literal["true", "false", "value", "not-evaluated"]:
        if not self.evaluated:
            return "not-evaluated"
        if self.node.type != "bool":
            return "value"
        return "true" if self.result else "false"

    def walk(self) -> Iterator[TraceNode]:
        """This part and all below it, parents first, in the order of the text."""
        yield self
        for child in self.children:
            yield from child.walk()

    def as_json(self) -> dict[str, Any]:
        """A JSON object; texts of fields are left out where `field` names them, since they are shown elsewhere."""
        is_text = self.node.kind == "field" and self.node.type == "string"
        result = self.result
        return {
            "kind": self.node.kind,
            "value": self.node.value,
            "type": self.node.type,
            "span": list(self.node.span),
            "state": self.state,
            "result": None if is_text else list(result) if isinstance(result, tuple) else result,
            "marks": [{"field": m.field, "start": m.start, "end": m.end} for m in self.marks],
            "children": [child.as_json() for child in self.children],
        }


def trace(tree: Node, ctx: TurnContext) -> TraceNode:
    """The value of each part of the predicate at `ctx`, in the order in which a reader would work it out."""
    match tree.kind:
        case "and" | "or":
            return _traced_junction(tree, ctx)
        case "choice":
            condition = trace(tree.children[0], ctx)
            taken = 1 if condition.result else 2
            branches = [
                trace(child, ctx) if number == taken else _skipped(child)
                for number, child in enumerate(tree.children[1:], start=1)
            ]
            return TraceNode(tree, True, branches[taken - 1].result, (condition, *branches))
        case "field":
            value = getattr(ctx, str(tree.value))
            shown = tuple(sorted(value)) if tree.type == "map" else value
            return TraceNode(tree, True, shown, ())
        case "list":
            return TraceNode(tree, True, tuple(child.value for child in tree.children), ())
        case "bool" | "int" | "string" | "null":
            return TraceNode(tree, True, tree.value, ())
        case _:
            children = tuple(trace(child, ctx) for child in tree.children)
            result = _compiled(tree)(ctx) if tree.value == "nudged" else _operation(tree)(*(c.result for c in children))
            return TraceNode(tree, True, result, children, _marks(tree, ctx) if result is True else ())


def _traced_junction(tree: Node, ctx: TurnContext) -> TraceNode:
    deciding = tree.kind == "or"
    children: list[TraceNode] = []
    decided = False
    for child in tree.children:
        if decided:
            children.append(_skipped(child))
            continue
        part = trace(child, ctx)
        children.append(part)
        decided = bool(part.result) is deciding
    return TraceNode(tree, True, deciding if decided else not deciding, tuple(children))


def _skipped(node: Node) -> TraceNode:
    return TraceNode(node, False, None, tuple(_skipped(child) for child in node.children))


def _marks(node: Node, ctx: TurnContext) -> tuple[Mark, ...]:
    if node.kind != "call":
        return ()
    name = str(node.value)
    field, offset, text = _located(node.children[0], ctx)
    if name in PHRASE_FUNCTIONS:
        spans = _PHRASE_SPANS[name](text)
    else:
        argument = str(node.children[1].value)
        spans = _argument_spans(name, text, argument)
    return tuple(Mark(field, start + offset, end + offset) for start, end in spans[:_MOST_MARKS])


def _argument_spans(name: str, text: str, argument: str) -> list[Span]:
    if name == "matches":
        return spans_in(argument, text, _MOST_MARKS)
    if not argument:
        return []
    if name == "startsWith":
        return [(0, len(argument))]
    if name == "endsWith":
        return [(len(text) - len(argument), len(text))]
    found: list[Span] = []
    at = text.find(argument)
    while at >= 0 and len(found) < _MOST_MARKS:
        found.append((at, at + len(argument)))
        at = text.find(argument, at + len(argument))
    return found


def _located(node: Node, ctx: TurnContext) -> tuple[str, int, str]:
    """The field that a text is a part of, where it begins there, and the text itself."""
    if node.kind == "field":
        field = str(node.value)
        return field, 0, getattr(ctx, field) or ""
    field, offset, whole = _located(node.children[0], ctx)
    start, end = phrases.find_last_paragraph(whole)
    return field, offset + start, whole[start:end]
