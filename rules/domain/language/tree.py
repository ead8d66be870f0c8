"""The checked tree: the checker makes it, the builder edits it, every evaluator reads it (rule-engine.md 2.4)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from rules.domain.language.diagnostics import Span
from rules.domain.language.environment import PHRASE_FUNCTIONS
from rules.domain.phrases import HELPER_VERSIONS

Kind = Literal[
    "field", "bool", "int", "string", "null", "list", "call",
    "not", "negative", "and", "or", "compare", "in", "sum", "choice",
]  # fmt: skip
Value = bool | int | str | None


@dataclass(frozen=True, slots=True)
class Node:
    """A typed part of a predicate.

    `value` is the constant, the name of the field or function, or the operator of "compare" and "sum". The receiver
    of a method is the first child of its "call". "and" and "or" have two children or more, none of their own kind.
    `span` is where the node stands in its source, in code points; two nodes that differ in spans only mean the same.
    """

    kind: Kind
    value: Value
    children: tuple[Node, ...]
    type: str
    span: Span

    def walk(self) -> Iterator[Node]:
        """This node and all below it, parents first, in the order of the text."""
        yield self
        for child in self.children:
            yield from child.walk()


def as_json(node: Node, *, spans: bool = True) -> dict[str, Any]:
    """A JSON object of the node and all below it."""
    plain: dict[str, Any] = {"kind": node.kind, "value": node.value, "type": node.type}
    if spans:
        plain["span"] = list(node.span)
    plain["children"] = [as_json(child, spans=spans) for child in node.children]
    return plain


def canonical(node: Node) -> str:
    """One text for all trees that differ in spans only."""
    return json.dumps(as_json(node, spans=False), ensure_ascii=True, sort_keys=True, separators=(",", ":"))


def same(left: Node, right: Node) -> bool:
    """Whether two trees are equal but for their spans."""
    return canonical(left) == canonical(right)


def called_helpers(node: Node) -> frozenset[str]:
    """The text helpers that the tree calls; their versions are part of what a result means."""
    names = (*PHRASE_FUNCTIONS, "last_paragraph")
    return frozenset(str(n.value) for n in node.walk() if n.kind == "call" and n.value in names)


def atom_key(node: Node) -> str:
    """SHA-256 in hex over the canonical tree and the versions of the helpers it calls: the name of a cached result."""
    versions = {name: HELPER_VERSIONS[name] for name in sorted(called_helpers(node))}
    named = canonical(node) + json.dumps(versions, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(named.encode("ascii")).hexdigest()


def fields_read(node: Node) -> frozenset[str]:
    """The fields of `ctx` that the predicate reads; `nudged` reads `nudges`."""
    found = {str(n.value) for n in node.walk() if n.kind == "field"}
    if counters_read(node):
        found.add("nudges")
    return frozenset(found)


def counters_read(node: Node) -> frozenset[str]:
    """The rule codes whose counters the predicate reads."""
    found: set[str] = set()
    for part in node.walk():
        if part.kind == "call" and part.value == "nudged":
            found.add(str(part.children[0].value))
        if part.kind == "in" and part.children[1].kind == "field":
            found.add(str(part.children[0].value))
    return frozenset(found)


def is_text(node: Node) -> bool:
    """Whether the node reads one text column: a field of type string or a last paragraph."""
    if node.kind == "field":
        return node.type == "string"
    return node.kind == "call" and node.value == "last_paragraph"
