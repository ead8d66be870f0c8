"""A tree back to text that parses to the same tree, with no more parentheses than the grammar asks for."""

from __future__ import annotations

from collections.abc import Iterator

from rules.domain.language.environment import FUNCTIONS, MAX_CHARACTERS
from rules.domain.language.lexer import tokens
from rules.domain.language.tree import Node

CHOICE, OR, AND, RELATION, SUM, UNARY, MEMBER = range(7)
_STRENGTH = {"choice": CHOICE, "or": OR, "and": AND, "compare": RELATION, "in": RELATION, "sum": SUM,
             "not": UNARY, "negative": UNARY}  # fmt: skip
_CONTROLS = {"\n": "\\n", "\r": "\\r", "\a": "\\a", "\b": "\\b", "\f": "\\f", "\v": "\\v"}


def print_tree(node: Node) -> str:
    """The predicate as text. Never longer than the length limit if its source was within it."""
    text = "".join(_tokens(node, CHOICE))
    return text if len(text) <= MAX_CHARACTERS else tightened(text)


def strength_of(kind: str) -> int:
    """How tightly a node of the kind binds, on the scale from `CHOICE` to `MEMBER`."""
    return _STRENGTH.get(kind, MEMBER)


def quoted(value: str) -> str:
    """The shortest literal of a string; raw when that saves backslashes."""
    quote = "'" if '"' in value and "'" not in value else '"'
    if "\\" in value and quote not in value and not any(_is_control(c) for c in value):
        return f"r{quote}{value}{quote}"
    return quote + "".join(_escaped(char, quote) for char in value) + quote


def _escaped(char: str, quote: str) -> str:
    if char in ("\\", quote):
        return "\\" + char
    if char in _CONTROLS:
        return _CONTROLS[char]
    return f"\\x{ord(char):02x}" if _is_control(char) else char


def _is_control(char: str) -> bool:
    """Characters that no source may hold as they are."""
    return (char < " " and char != "\t") or "\x7f" <= char < "\xa0"


def _tokens(node: Node, loosest: int) -> Iterator[str]:
    """Tokens of a node that stands where operators no weaker than `loosest` may stand; operators bring their spaces."""
    strength = strength_of(node.kind)
    if node.kind == "int" and isinstance(node.value, int) and node.value < 0:
        strength = UNARY
    if strength < loosest:
        yield "("
        yield from _tokens(node, CHOICE)
        yield ")"
        return
    match node.kind:
        case "field":
            yield f"ctx.{node.value}"
        case "bool":
            yield "true" if node.value else "false"
        case "int":
            yield str(node.value)
        case "null":
            yield "null"
        case "string":
            yield quoted(str(node.value))
        case "list":
            yield "["
            yield from _separated(node.children)
            yield "]"
        case "call":
            yield from _call(node)
        case "not" | "negative":
            yield "!" if node.kind == "not" else "-"
            yield from _tokens(node.children[0], UNARY)
        case "and" | "or":
            operator = " && " if node.kind == "and" else " || "
            for number, child in enumerate(node.children):
                if number:
                    yield operator
                yield from _tokens(child, strength + 1)
        case "compare" | "in":
            yield from _tokens(node.children[0], SUM)
            yield f" {'in' if node.kind == 'in' else node.value} "
            yield from _tokens(node.children[1], SUM)
        case "sum":
            yield from _tokens(node.children[0], SUM)
            yield f" {node.value} "
            yield from _tokens(node.children[1], UNARY)
        case "choice":
            yield from _tokens(node.children[0], OR)
            yield " ? "
            yield from _tokens(node.children[1], OR)
            yield " : "
            yield from _tokens(node.children[2], CHOICE)


def _call(node: Node) -> Iterator[str]:
    name = str(node.value)
    arguments = node.children
    if "function" not in FUNCTIONS[name].forms:
        yield from _tokens(arguments[0], MEMBER)
        yield "."
        arguments = arguments[1:]
    yield name
    yield "("
    yield from _separated(arguments)
    yield ")"


def _separated(nodes: tuple[Node, ...]) -> Iterator[str]:
    for number, child in enumerate(nodes):
        if number:
            yield ", "
        yield from _tokens(child, CHOICE)


def tightened(source: str) -> str:
    """The same tokens without comments and without the spaces that only please the eye."""
    parts: list[str] = []
    for token in tokens(source):
        if parts and _sticks(parts[-1][-1]) and _sticks(token.text[:1]):
            parts.append(" ")
        if token.text:
            parts.append(token.text)
    return "".join(parts)


def _sticks(char: str) -> bool:
    return char == "_" or char.isalnum()
