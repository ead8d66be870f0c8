"""Names and types: a syntax tree to a checked tree, or every problem in it (rule-engine.md sections 2.2 and 2.5)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from rules.domain.context import Stage
from rules.domain.language.diagnostics import Diagnostic, Span, SyntaxProblem, in_reading_order
from rules.domain.language.environment import (
    CONVERSIONS,
    FIELDS,
    FOREIGN_CONSTANTS,
    FUNCTIONS,
    MAX_INTEGER,
    MAX_RANGE,
    Function,
    nearest,
)
from rules.domain.language.parser import Syntax, parse
from rules.domain.language.patterns import Sample, ascii_boundaries, problem_in
from rules.domain.language.printer import quoted
from rules.domain.language.tree import Node, canonical, is_text


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check gives: the tree, unless there is an error, and every finding, errors first."""

    tree: Node | None
    diagnostics: tuple[Diagnostic, ...]

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(d for d in self.diagnostics if d.severity == "error")

    def as_json(self) -> list[dict[str, Any]]:
        return [d.as_json() for d in self.diagnostics]


def check(
    source: str,
    *,
    stage: Stage | None = None,
    known_codes: Collection[str] | None = None,
    later_codes: Collection[str] = (),
    sample: Sample | None = None,
) -> Checked:
    """Read a predicate. Never raises, whatever `source` is, and takes well under a millisecond.

    `stage` is that of the rule: every round has a call, so there a count of none is warned of as constant.
    `known_codes` are the rule codes of the set and the corpus: others are warned of, none when it is None.
    `later_codes` are those of the rules listed after this one. `sample` holds texts of the corpus, on which the speed
    of patterns is tried.
    """
    try:
        syntax = parse(source)
    except SyntaxProblem as problem:
        return Checked(None, (problem.diagnostic,))
    checker = _Checker(source, stage, known_codes, later_codes, sample)
    root = checker.predicate(syntax)
    found = in_reading_order(checker.problems)
    if root is None or any(d.severity == "error" for d in found):
        return Checked(None, found)
    return Checked(root, found)


@dataclass(frozen=True, slots=True)
class _Term:
    """A typed node with what is known of its value: the range of an int, or the value of a constant bool."""

    node: Node
    low: int = 0
    high: int = 0
    constant: bool | None = None


class _Checker:
    """Each method gives a term, or None when a problem was reported, so that one mistake is named once."""

    def __init__(
        self,
        source: str,
        stage: Stage | None,
        known_codes: Collection[str] | None,
        later_codes: Collection[str],
        sample: Sample | None,
    ) -> None:
        self.source = source
        self.stage = stage
        self.known_codes = known_codes
        self.later_codes = later_codes
        self.sample = sample
        self.problems: list[Diagnostic] = []

    def report(self, code: str, span: Span, repair: str | None = None, **args: Any) -> None:
        self.problems.append(Diagnostic(code, *span, args, "error", repair))

    def warn(self, code: str, span: Span, repair: str | None = None, **args: Any) -> None:
        self.problems.append(Diagnostic(code, *span, args, "warning", repair))

    def text_of(self, syntax: Syntax) -> str:
        return self.source[syntax.outer[0] : syntax.outer[1]]

    # --- the whole

    def predicate(self, syntax: Syntax) -> Node | None:
        term = self.term(syntax)
        if term is None:
            return None
        if term.node.type != "bool":
            repair = self.made_bool(syntax, term.node.type)
            self.report("not-bool", syntax.outer, repair, found=term.node.type)
            return None
        known = {(d.start, d.end) for d in self.problems if d.code == "constant"}
        if term.constant is not None and syntax.span not in known:
            self.warn("constant", syntax.span, value=term.constant, whole=True)
        return term.node

    def made_bool(self, syntax: Syntax, found: str) -> str | None:
        """What the author of a value where a bool belongs may have meant."""
        ending = {"int": " > 0", "string": ' != ""', "string?": " != null"}.get(found)
        if ending is None or syntax.kind not in ("select", "call", "method"):
            return None
        return self.text_of(syntax) + ending

    # --- terms

    def term(self, syntax: Syntax) -> _Term | None:
        match syntax.kind:
            case "int":
                assert isinstance(syntax.value, int)
                return _Term(self.made(syntax, "int"), syntax.value, syntax.value)
            case "string":
                return _Term(self.made(syntax, "string"))
            case "null":
                return _Term(self.made(syntax, "null"))
            case "bool":
                return _Term(self.made(syntax, "bool"), constant=bool(syntax.value))
            case "name":
                return self.name(syntax)
            case "select":
                return self.select(syntax)
            case "call" | "method":
                return self.call(syntax)
            case "list":
                return self.list(syntax)
            case "not":
                return self.negation(syntax)
            case "negative":
                return self.negative(syntax)
            case "and" | "or":
                return self.junction(syntax)
            case "compare":
                return self.comparison(syntax)
            case "in":
                return self.membership(syntax)
            case "sum":
                return self.sum(syntax)
            case "choice":
                return self.choice(syntax)

    def made(self, syntax: Syntax, type_: str, children: tuple[Node, ...] = ()) -> Node:
        return Node(syntax.kind, syntax.value, children, type_, syntax.span)  # type: ignore[arg-type]

    def operand(self, syntax: Syntax, expected: str) -> _Term | None:
        """A term of the given type, or None after a report."""
        term = self.term(syntax)
        if term is None or term.node.type == expected:
            return term
        repair = None
        if expected == "bool" and (made := self.made_bool(syntax, term.node.type)) is not None:
            repair = f"({made})"
        self.report("type", syntax.outer, repair, expected=expected, found=term.node.type)
        return None

    # --- names

    def name(self, syntax: Syntax) -> _Term | None:
        name = str(syntax.value)
        if name == "ctx":
            return _Term(Node("field", "ctx", (), "ctx", syntax.span))
        if name in FIELDS:
            repair: str | None = f"ctx.{name}"
        elif name.lower() in FOREIGN_CONSTANTS:
            repair = FOREIGN_CONSTANTS[name.lower()]
        elif (field := nearest(name, FIELDS)) is not None:
            repair = f"ctx.{field}"
        else:
            repair = nearest(name, ("ctx", "context", "true", "false", "null", *FUNCTIONS))
            repair = "ctx" if repair == "context" else repair
        self.report("unknown-name", syntax.span, repair, name=name)
        return None

    def select(self, syntax: Syntax) -> _Term | None:
        owner, name = syntax.children[0], str(syntax.value)
        if owner.kind == "name" and owner.value == "ctx":
            if (type_ := FIELDS.get(name)) is not None:
                least = int(self.stage == "round" and name == "tool_calls_total")
                return _Term(Node("field", name, (), type_, syntax.span), least, MAX_INTEGER)
            field = nearest(name, FIELDS)
            repair = f"ctx.{field}" if field else None
            if field is None and name in FUNCTIONS:
                repair = name
            self.report("unknown-field", syntax.span, repair, name=name)
            return None
        if owner.kind == "name" and owner.value != "ctx" and name in FIELDS:
            self.report("unknown-name", owner.span, "ctx", name=str(owner.value))
            return None
        term = self.term(owner)
        if term is None:
            return None
        if term.node.type == "map":
            feature = {"feature": "map-field", "found": self.text_of(syntax)[:40]}
            self.report("unsupported", syntax.span, f"nudged({quoted(name)})", **feature)
        elif name in FUNCTIONS and "function" in FUNCTIONS[name].forms and len(FUNCTIONS[name].parameters) == 1:
            self.report("unknown-field", syntax.span, f"{name}({self.text_of(owner)})", name=name)
        else:
            self.report("unknown-field", syntax.at, None, name=name)
        return None

    # --- functions

    def call(self, syntax: Syntax) -> _Term | None:
        name = str(syntax.value)
        function = FUNCTIONS.get(name)
        as_method = syntax.kind == "method"
        if function is None or ("method" if as_method else "function") not in function.forms:
            self.unknown_function(syntax, name, function, as_method)
            return None
        expected = len(function.parameters) - as_method
        if len(syntax.children) - as_method != expected:
            self.report("arity", syntax.span, name=name, expected=expected, found=len(syntax.children) - as_method)
            return None
        arguments = [
            self.argument(child, parameter)
            for child, parameter in zip(syntax.children, function.parameters, strict=True)
        ]
        if any(argument is None for argument in arguments):
            return None
        nodes = tuple(argument for argument in arguments if argument is not None)
        node = Node("call", name, nodes, function.type, syntax.span)
        if name in ("contains", "startsWith", "endsWith", "matches") and nodes[1].value == "":
            return self.settled(node, True)
        return _Term(node, 0, MAX_INTEGER)

    def unknown_function(self, syntax: Syntax, name: str, function: Function | None, as_method: bool) -> None:
        if function is not None:
            # Right name, wrong form: say how it is written here.
            texts = [self.text_of(child) for child in syntax.children]
            repair = None
            if len(texts) == len(function.parameters):
                repair = f"{name}({', '.join(texts)})" if as_method else f"{texts[0]}.{name}({', '.join(texts[1:])})"
            self.report("unknown-function", syntax.span, repair, name=name)
            return
        if name in CONVERSIONS and not as_method:
            self.report("unsupported", syntax.at, None, feature="conversion", found=name)
            return
        if name.lower() in ("not", "non") and not as_method:
            self.report("unknown-function", syntax.at, "!", name=name)
            return
        if as_method and (syntax.children[0].kind, syntax.children[0].value) == ("name", "ctx") and name in FIELDS:
            self.report("unknown-function", syntax.span, f"ctx.{name}", name=name)
            return
        form = "method" if as_method else "function"
        same_form = [n for n, f in FUNCTIONS.items() if form in f.forms]
        other = {"startswith": "startsWith", "endswith": "endsWith", "includes": "contains", "length": "size",
                 "len": "size", "regex": "matches", "match": "matches", "search": "matches"}  # fmt: skip
        found = other.get(name.lower()) or nearest(name, same_form)
        self.report("unknown-function", syntax.at, found if found in same_form else None, name=name)

    def argument(self, syntax: Syntax, parameter: str) -> Node | None:
        if parameter in ("text", "text?"):
            return self.text_argument(syntax, nullable=parameter == "text?")
        if syntax.kind != "string":
            term = self.term(syntax)
            if term is not None:
                self.report("literal", syntax.outer, None, expected="string constant", found=term.node.type)
            return None
        node = self.made(syntax, "string")
        if parameter == "pattern":
            self.pattern(syntax, str(syntax.value))
        elif parameter == "code":
            self.code(syntax, str(syntax.value))
        return node

    def text_argument(self, syntax: Syntax, *, nullable: bool) -> Node | None:
        term = self.term(syntax)
        if term is None:
            return None
        if is_text(term.node) or (nullable and term.node.type == "string?"):
            return term.node
        found = "string constant" if term.node.kind == "string" else term.node.type
        self.report("type", syntax.outer, None, expected="text or null" if nullable else "text", found=found)
        return None

    def pattern(self, syntax: Syntax, pattern: str) -> None:
        places = syntax.token.places if syntax.token else ()
        if (problem := problem_in(pattern, self.sample)) is not None:
            span = syntax.span
            if problem.at is not None and problem.at[0] < problem.at[1]:
                span = (places[problem.at[0]], places[problem.at[1]])
            self.report(problem.code, span, None, **problem.args)
            return
        for at, char in enumerate(pattern):
            # In an ordinary string `\b` is a backspace, which no text holds; a word boundary is meant.
            if char == "\b" and self.source.startswith("\\b", places[at]):
                args = {"reason": "backspace", "fragment": "\\b", "at": at}
                self.warn("regex", (places[at], places[at + 1]), "\\\\b", **args)
        for (start, end), instead in ascii_boundaries(pattern):
            span = (places[start], places[end])
            written = instead if syntax.token and syntax.token.raw else instead.replace("\\", "\\\\")
            args = {"reason": "ascii-boundary", "fragment": "\\b", "at": start}
            self.warn("regex", span, written, **args)

    def code(self, syntax: Syntax, code: str) -> None:
        if code in self.later_codes:
            self.warn("later-counter", syntax.span, name=code)
        elif self.known_codes is not None and code not in self.known_codes:
            close = nearest(code, self.known_codes)
            self.warn("unknown-code", syntax.span, quoted(close) if close else None, name=code)

    # --- operators

    def settled(self, node: Node, value: bool) -> _Term:
        """A term whose value does not depend on the point: worth a warning, since nobody writes one on purpose."""
        self.warn("constant", node.span, value=value, whole=False)
        return _Term(node, constant=value)

    def negation(self, syntax: Syntax) -> _Term | None:
        term = self.operand(syntax.children[0], "bool")
        if term is None:
            return None
        value = None if term.constant is None else not term.constant
        return _Term(self.made(syntax, "bool", (term.node,)), constant=value)

    def negative(self, syntax: Syntax) -> _Term | None:
        term = self.operand(syntax.children[0], "int")
        if term is None:
            return None
        return _Term(self.made(syntax, "int", (term.node,)), -term.high, -term.low)

    def junction(self, syntax: Syntax) -> _Term | None:
        terms = [self.operand(child, "bool") for child in syntax.children]
        found = [term for term in terms if term is not None]
        if len(found) < len(terms):
            return None
        node = self.made(syntax, "bool", tuple(term.node for term in found))
        absorbing = syntax.kind == "or"
        for child, term in zip(syntax.children, found, strict=True):
            if child.kind == "bool":
                self.warn("constant", child.span, value=term.constant, whole=False)
        if any(term.constant is absorbing for term in found):
            return _Term(node, constant=absorbing)
        if all(term.constant is not None for term in found):
            return _Term(node, constant=not absorbing)
        written = {canonical(term.node) for term in found}
        if any(t.node.kind == "not" and canonical(t.node.children[0]) in written for t in found):
            return self.settled(node, absorbing)
        return _Term(node)

    def sum(self, syntax: Syntax) -> _Term | None:
        left, right = (self.operand(child, "int") for child in syntax.children)
        if left is None or right is None:
            return None
        if syntax.value == "+":
            low, high = left.low + right.low, left.high + right.high
        else:
            low, high = left.low - right.high, left.high - right.low
        if max(-low, high) > MAX_RANGE:
            self.report("overflow", syntax.span, None, low=low, high=high, limit=MAX_RANGE)
            return None
        return _Term(self.made(syntax, "int", (left.node, right.node)), low, high)

    def choice(self, syntax: Syntax) -> _Term | None:
        condition = self.operand(syntax.children[0], "bool")
        yes, no = self.term(syntax.children[1]), self.term(syntax.children[2])
        if yes is not None and yes.node.type not in ("bool", "int"):
            self.report("type", syntax.children[1].outer, None, expected="bool or int", found=yes.node.type)
            yes = None
        if no is not None and no.node.type not in ("bool", "int"):
            self.report("type", syntax.children[2].outer, None, expected="bool or int", found=no.node.type)
            no = None
        if yes is not None and no is not None and yes.node.type != no.node.type:
            self.report("type", syntax.children[2].outer, None, expected=yes.node.type, found=no.node.type)
            return None
        if condition is None or yes is None or no is None:
            return None
        if syntax.children[0].kind == "bool":
            self.warn("constant", syntax.children[0].span, value=condition.constant, whole=False)
        node = self.made(syntax, yes.node.type, (condition.node, yes.node, no.node))
        if condition.constant is not None:
            return replace(yes if condition.constant else no, node=node)
        value = yes.constant if yes.constant is no.constant else None
        return _Term(node, min(yes.low, no.low), max(yes.high, no.high), value)

    def comparison(self, syntax: Syntax) -> _Term | None:
        left, right = (self.term(child) for child in syntax.children)
        if left is None or right is None:
            return None
        operator = str(syntax.value)
        types = (left.node.type, right.node.type)
        node = self.made(syntax, "bool", (left.node, right.node))
        if types == ("int", "int"):
            value = _compared(operator, left, right)
            if value is None and canonical(left.node) == canonical(right.node):
                value = operator in ("==", "<=", ">=")
            return _Term(node) if value is None else self.settled(node, value)
        if operator not in ("==", "!="):
            self.mismatch(syntax, left, right, "int")
            return None
        if types == ("bool", "bool"):
            return self.equal_bools(node, operator, left, right)
        if _is_text_or_null(left.node) and right.node.kind in ("string", "null"):
            return self.equal_texts(node, operator, left.node, right.node)
        if _is_text_or_null(right.node) and left.node.kind in ("string", "null"):
            return self.equal_texts(node, operator, right.node, left.node)
        self.mismatch(syntax, left, right, None)
        return None

    def equal_bools(self, node: Node, operator: str, left: _Term, right: _Term) -> _Term:
        if left.constant is not None and right.constant is not None:
            return self.settled(node, (left.constant == right.constant) == (operator == "=="))
        if canonical(left.node) == canonical(right.node):
            return self.settled(node, operator == "==")
        return _Term(node)

    def equal_texts(self, node: Node, operator: str, text: Node, other: Node) -> _Term:
        if other.kind == "null" and text.type != "string?":
            return self.settled(node, operator == "!=")
        return _Term(node)

    def mismatch(self, syntax: Syntax, left: _Term, right: _Term, expected: str | None) -> None:
        """Report the side of a comparison that does not fit; a constant is more often wrong than a field."""
        for number, (term, other) in enumerate(((left, right), (right, left))):
            if expected is not None:
                if term.node.type != expected:
                    repair = _as_constant(term.node, expected)
                    self.report(
                        "type", syntax.children[number].outer, repair, expected=expected, found=_found(term.node)
                    )
                continue
            wrong = number == 1 or (term.node.kind in ("int", "bool", "string", "null") and number == 0)
            if wrong:
                wanted = _comparable(other.node)
                repair = _as_constant(term.node, wanted)
                self.report("type", syntax.children[number].outer, repair, expected=wanted, found=_found(term.node))
                return

    def membership(self, syntax: Syntax) -> _Term | None:
        item, group = syntax.children
        if group.kind == "list":
            return self.in_list(syntax, item, group)
        whole = self.term(group)
        if whole is None:
            self.term(item)
            return None
        if whole.node.type != "map":
            if is_text(whole.node) and item.kind == "string":
                repair = f"{self.text_of(group)}.contains({self.text_of(item)})"
                self.report("type", syntax.span, repair, expected="list or map", found=whole.node.type)
            else:
                self.report("type", group.outer, None, expected="list or map", found=whole.node.type)
            return None
        if item.kind != "string":
            term = self.term(item)
            if term is not None:
                self.report("literal", item.outer, None, expected="string constant", found=_found(term.node))
            return None
        self.code(item, str(item.value))
        return _Term(self.made(syntax, "bool", (self.made(item, "string"), whole.node)))

    def in_list(self, syntax: Syntax, item: Syntax, group: Syntax) -> _Term | None:
        term = self.term(item)
        type_ = None
        if term is not None:
            if term.node.type == "int":
                type_ = "int"
            elif _is_text_or_null(term.node):
                type_ = "string"
            else:
                self.report("type", item.outer, None, expected="int or text", found=_found(term.node))
                term = None
        constants = self.constants(group, type_)
        if term is None or constants is None:
            return None
        node = self.made(syntax, "bool", (term.node, constants))
        if type_ == "int":
            values = [value for value in (child.value for child in constants.children) if isinstance(value, int)]
            if not any(term.low <= value <= term.high for value in values):
                return self.settled(node, False)
            if term.low == term.high:
                return self.settled(node, True)
        return _Term(node)

    def constants(self, group: Syntax, expected: str | None) -> Node | None:
        """The list after `in`: constants of one type, which is that of the item where it is known."""
        if not group.children:
            self.report("empty-list", group.span)
            return None
        nodes: list[Node] = []
        for child in group.children:
            if child.kind not in ("int", "string"):
                if child.kind in ("bool", "null", "list"):
                    self.report("list", child.outer, None, expected=expected or "int or string", found=child.kind)
                elif (term := self.term(child)) is not None:
                    wanted = expected or "int or string"
                    self.report("literal", child.outer, None, expected=wanted, found=term.node.type)
                continue
            expected = expected or child.kind
            if child.kind != expected:
                node = self.made(child, child.kind)
                repair = _as_constant(node, expected)
                self.report("list", child.outer, repair, expected=expected, found=child.kind)
                continue
            nodes.append(self.made(child, child.kind))
        if len(nodes) < len(group.children):
            return None
        return Node("list", None, tuple(nodes), f"list<{expected}>", group.span)

    def list(self, syntax: Syntax) -> _Term | None:
        """A list where no list belongs; its parts are checked for the sake of their own problems."""
        for child in syntax.children:
            self.term(child)
        return _Term(Node("list", None, (), "list", syntax.span))


def _is_text_or_null(node: Node) -> bool:
    return is_text(node) or node.type == "string?"


def _found(node: Node) -> str:
    return "string constant" if node.kind == "string" else node.type


def _comparable(node: Node) -> str:
    """What the other side of `==` must be for this one to stand there."""
    if node.type in ("int", "bool"):
        return node.type
    if _is_text_or_null(node):
        return "string constant or null"
    if node.kind in ("string", "null"):
        return "text"
    return "comparable"


def _as_constant(node: Node, expected: str) -> str | None:
    """The constant of the expected type that this one most likely stands for."""
    if node.kind == "string" and isinstance(node.value, str):
        text = node.value.strip()
        if expected == "int" and text.isascii() and text.isdigit() and len(text) < 10:
            return text
        if expected == "bool" and text.lower() in ("true", "false"):
            return text.lower()
    if node.kind == "int" and isinstance(node.value, int):
        if expected == "bool" and node.value in (0, 1):
            return "true" if node.value else "false"
        if expected.startswith("string"):
            return f'"{node.value}"'
    return None


def _compared(operator: str, left: _Term, right: _Term) -> bool | None:
    """The value of a comparison of two ranges if it is the same for every pair of values."""
    if operator in (">", ">="):
        return _compared({">": "<", ">=": "<="}[operator], right, left)
    if operator == "<":
        return True if left.high < right.low else False if left.low >= right.high else None
    if operator == "<=":
        return True if left.high <= right.low else False if left.low > right.high else None
    apart = left.high < right.low or right.high < left.low
    alike = left.low == left.high == right.low == right.high
    if not (apart or alike):
        return None
    return alike == (operator == "==")
