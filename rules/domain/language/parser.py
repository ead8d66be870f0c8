"""Tokens to a syntax tree, by recursive descent over the grammar of rule-engine.md section 2.1.

The parser stops at the first problem. Names and types are not its business: the checker reads what comes out here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rules.domain.language.diagnostics import Diagnostic, Span, SyntaxProblem
from rules.domain.language.environment import (
    FIELDS,
    FOREIGN_WORDS,
    MACROS,
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_LIST_ITEMS,
    MAX_NODES,
)
from rules.domain.language.lexer import Token, tokens

SyntaxKind = Literal[
    "int", "string", "bool", "null", "name", "select", "call", "method", "list",
    "not", "negative", "and", "or", "compare", "in", "sum", "choice",
]  # fmt: skip

COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!=", "in"})


@dataclass(frozen=True, slots=True)
class Syntax:
    """A node as written. `at` is the span of the name or operator, `outer` that of the node with its parentheses."""

    kind: SyntaxKind
    value: bool | int | str | None
    children: tuple[Syntax, ...]
    span: Span
    at: Span
    outer: Span
    token: Token | None = None


def parse(source: str) -> Syntax:
    """The syntax tree of a predicate; raises `SyntaxProblem` with the one diagnostic when there is none."""
    if len(source) > MAX_CHARACTERS:
        args = {"length": len(source), "limit": MAX_CHARACTERS}
        raise SyntaxProblem(Diagnostic("too-long", MAX_CHARACTERS, len(source), args))
    return _Parser(source).predicate()


class _Parser:
    def __init__(self, source: str) -> None:
        self.source = source
        self.tokens = tokens(source)
        self.next = next(self.tokens)
        self.depth = 0
        self.nodes = 0

    # --- tokens

    @property
    def token(self) -> Token:
        if self.next.problem is not None:
            raise SyntaxProblem(self.next.problem)
        return self.next

    def at(self, *texts: str) -> bool:
        token = self.token
        return token.kind in ("op", "name") and token.text in texts

    def take(self) -> Token:
        token = self.token
        if token.kind != "end":
            self.next = next(self.tokens)
        return token

    def need(self, text: str) -> Token:
        if self.at(text):
            return self.take()
        raise self.unexpected([text])

    def fail(self, code: str, span: Span, args: dict[str, object], replace: str | None = None) -> SyntaxProblem:
        return SyntaxProblem(Diagnostic(code, *span, args, "error", replace))

    def unexpected(self, wanted: list[str], code: str = "expected") -> SyntaxProblem:
        token = self.token
        args: dict[str, object] = {"found": token.text[:40]}
        if code == "expected":
            args = {"expected": wanted, **args}
        word = FOREIGN_WORDS.get(token.text.lower()) if token.kind == "name" else None
        return self.fail(code, (token.start, token.end), args, None if word == "!" else word)

    def unsupported(self, feature: str, span: Span, replace: str | None = None) -> SyntaxProblem:
        found = self.source[span[0] : span[1]][:40]
        return self.fail("unsupported", span, {"feature": feature, "found": found}, replace)

    # --- nodes

    def node(
        self,
        kind: SyntaxKind,
        children: tuple[Syntax, ...],
        span: Span,
        *,
        value: bool | int | str | None = None,
        at: Span | None = None,
        token: Token | None = None,
    ) -> Syntax:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise self.fail("too-complex", span, {"limit": MAX_NODES})
        return Syntax(kind, value, children, span, at or span, span, token)

    def deeper(self, token: Token) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.fail("too-deep", (token.start, token.end), {"limit": MAX_DEPTH})

    def text_of(self, node: Syntax) -> str:
        return self.source[node.outer[0] : node.outer[1]]

    # --- grammar, loosest binding first

    def predicate(self) -> Syntax:
        tree = self.choice()
        if self.token.kind != "end":
            raise self.trailing()
        return tree

    def trailing(self) -> SyntaxProblem:
        token = self.token
        if token.text == "{":
            return self.unsupported("message", (token.start, token.end))
        return self.unexpected([], "trailing")

    def choice(self) -> Syntax:
        condition = self.any_of()
        if not self.at("?"):
            return condition
        mark = self.take()
        self.deeper(mark)
        yes = self.any_of()
        if self.at("?"):
            raise self.unexpected([":"])
        self.need(":")
        no = self.choice()
        self.depth -= 1
        span = (condition.outer[0], no.outer[1])
        return self.node("choice", (condition, yes, no), span, at=(mark.start, mark.end))

    def any_of(self) -> Syntax:
        return self.junction("or", "||")

    def all_of(self) -> Syntax:
        return self.junction("and", "&&")

    def junction(self, kind: Literal["or", "and"], operator: str) -> Syntax:
        first = self.all_of() if kind == "or" else self.relation()
        if not self.at(operator):
            return first
        mark = self.token
        parts = [first]
        while self.at(operator):
            self.take()
            parts.append(self.all_of() if kind == "or" else self.relation())
        flat: list[Syntax] = []
        for part in parts:
            # `a && (b && c)` is one group of three: the operators are associative.
            if part.kind == kind:
                self.nodes -= 1
                flat.extend(part.children)
            else:
                flat.append(part)
        span = (parts[0].outer[0], parts[-1].outer[1])
        return self.node(kind, tuple(flat), span, at=(mark.start, mark.end))

    def relation(self) -> Syntax:
        left = self.sum()
        if not self.at(*COMPARISONS):
            return left
        operator = self.take()
        right = self.sum()
        if self.at(*COMPARISONS):
            raise self.chained(left, operator, right)
        span = (left.outer[0], right.outer[1])
        at = (operator.start, operator.end)
        if operator.text == "in":
            return self.node("in", (left, right), span, at=at)
        return self.node("compare", (left, right), span, value=operator.text, at=at)

    def chained(self, left: Syntax, first: Token, middle: Syntax) -> SyntaxProblem:
        second = self.take()
        right = self.sum()
        a, b, c = self.text_of(left), self.text_of(middle), self.text_of(right)
        replace = None
        if "in" not in (first.text, second.text) and not self.at(*COMPARISONS):
            replace = f"{a} {first.text} {b} && {b} {second.text} {c}"
        args: dict[str, object] = {"first": first.text, "second": second.text}
        return self.fail("chained", (left.outer[0], right.outer[1]), args, replace)

    def sum(self) -> Syntax:
        left = self.unary()
        while True:
            if self.at("*", "/", "%"):
                raise self.unsupported(self.token.text, (self.token.start, self.token.end))
            if not self.at("+", "-"):
                return left
            operator = self.take()
            right = self.unary()
            span = (left.outer[0], right.outer[1])
            left = self.node("sum", (left, right), span, value=operator.text, at=(operator.start, operator.end))

    def unary(self) -> Syntax:
        if not self.at("!", "-"):
            return self.member()
        operator = self.take()
        self.deeper(operator)
        operand = self.unary()
        self.depth -= 1
        span = (operator.start, operand.outer[1])
        if operator.text == "!":
            return self.node("not", (operand,), span, at=(operator.start, operator.end))
        if operand.kind == "int" and isinstance(operand.value, int):
            return Syntax("int", -operand.value, (), span, span, span)
        return self.node("negative", (operand,), span, at=(operator.start, operator.end))

    def member(self) -> Syntax:
        value = self.primary()
        while True:
            if self.at("["):
                raise self.indexing(value)
            if self.at("{"):
                raise self.unsupported("message", (value.outer[0], self.token.end))
            if not self.at("."):
                return value
            self.take()
            if self.at("?"):
                raise self.unsupported("optional", (self.token.start, self.token.end))
            if self.token.kind != "name":
                raise self.unexpected(["name"])
            name = self.take()
            at = (name.start, name.end)
            if not self.at("("):
                value = self.node("select", (value,), (value.outer[0], name.end), value=name.text, at=at)
                continue
            if name.text in MACROS:
                raise self.unsupported("macro", at)
            arguments, end = self.arguments(")")
            value = self.node("method", (value, *arguments), (value.outer[0], end), value=name.text, at=at)

    def indexing(self, value: Syntax) -> SyntaxProblem:
        start, opening = value.outer[0], self.take()
        key = self.take()
        closing = self.next
        if key.kind != "string" or closing.text != "]":
            return self.unsupported("index", (opening.start, opening.end))
        replace = None
        if value.kind == "select" and value.value == "nudges":
            replace = f"nudged({key.text})"
        elif value.kind == "name" and value.value == "ctx" and key.value in FIELDS:
            replace = f"ctx.{key.value}"
        return self.unsupported("index", (start, closing.end), replace)

    def primary(self) -> Syntax:
        token = self.token
        span = (token.start, token.end)
        if token.kind == "int":
            self.take()
            return self.node("int", (), span, value=token.value, token=token)
        if token.kind == "string":
            self.take()
            return self.node("string", (), span, value=token.value, token=token)
        if token.kind == "name":
            return self.named()
        if self.at("("):
            self.take()
            self.deeper(token)
            inner = self.choice()
            closing = self.need(")")
            self.depth -= 1
            outer = (token.start, closing.end)
            return Syntax(inner.kind, inner.value, inner.children, inner.span, inner.at, outer, inner.token)
        if self.at("["):
            items, end = self.arguments("]")
            if len(items) > MAX_LIST_ITEMS:
                extra = items[MAX_LIST_ITEMS]
                args: dict[str, object] = {"what": "list", "found": len(items), "limit": MAX_LIST_ITEMS}
                raise self.fail("too-big", extra.outer, args)
            return self.node("list", items, (token.start, end))
        if self.at("{"):
            raise self.unsupported("map", span)
        if self.at("*", "/", "%"):
            raise self.unsupported(token.text, span)
        raise self.unexpected(["expression"])

    def named(self) -> Syntax:
        if self.at("in"):
            raise self.unexpected(["expression"])
        name = self.take()
        span = (name.start, name.end)
        if self.at("("):
            if name.text in MACROS:
                raise self.unsupported("macro", span)
            arguments, end = self.arguments(")")
            return self.node("call", arguments, (name.start, end), value=name.text, at=span)
        if name.text in ("true", "false"):
            return self.node("bool", (), span, value=name.text == "true")
        if name.text == "null":
            return self.node("null", (), span)
        word = FOREIGN_WORDS.get(name.text.lower())
        begins_operand = self.token.kind in ("name", "string", "int")
        if word is not None and (word != "!" or begins_operand):
            raise self.fail(
                "expected", span, {"expected": ["expression"], "found": name.text}, word if word == "!" else None
            )
        return self.node("name", (), span, value=name.text)

    def arguments(self, closing: Literal[")", "]"]) -> tuple[tuple[Syntax, ...], int]:
        """Expressions between an opening bracket, which is the next token, and `closing`; and where that ends."""
        opening = self.take()
        self.deeper(opening)
        found: list[Syntax] = []
        if not self.at(closing):
            found.append(self.choice())
            while self.at(","):
                self.take()
                found.append(self.choice())
        if not self.at(closing):
            raise self.unexpected([",", closing])
        end = self.take().end
        self.depth -= 1
        return tuple(found), end
