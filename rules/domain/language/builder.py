"""The visual builder: a tree as nested groups of rows, and back, without loss in either direction.

A group is "all of", "any of" or "none of" its entries. A row is a comparison, a membership, a call, a flag or a
constant; a part that has no row (arithmetic, a ternary) is a row of text. The way back goes through text, so that
whatever a browser sends is checked like anything typed (rule-engine.md section 2.4).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rules.domain.language.diagnostics import SyntaxProblem
from rules.domain.language.environment import FUNCTIONS, MAX_CHARACTERS
from rules.domain.language.parser import COMPARISONS, parse
from rules.domain.language.printer import (
    AND,
    CHOICE,
    MEMBER,
    OR,
    RELATION,
    UNARY,
    print_tree,
    quoted,
    strength_of,
    tightened,
)
from rules.domain.language.tree import Node

Entry = dict[str, Any]

_GROUPS = {"all": ("&&", AND), "any": ("||", OR), "none": ("||", OR)}
_EMPTY_GROUPS = {"all": "true", "any": "false", "none": "true"}
_MAX_DEPTH = 40


class NotABuilderForm(ValueError):
    """What came from the browser is not a builder form; `path` says where, as keys and positions."""

    def __init__(self, path: tuple[str | int, ...]) -> None:
        super().__init__(f"not a builder form at {'/'.join(map(str, path)) or 'its root'}")
        self.path = path


# --- tree to form


def builder_form(node: Node) -> Entry:
    """The tree as a builder form: a JSON object with either `group` and `entries`, or `row` and what that row holds."""
    match node.kind:
        case "and":
            return {"group": "all", "entries": [builder_form(child) for child in node.children]}
        case "or":
            return {"group": "any", "entries": [builder_form(child) for child in node.children]}
        case "not":
            inner = node.children[0]
            parts = inner.children if inner.kind == "or" else (inner,)
            return {"group": "none", "entries": [builder_form(child) for child in parts]}
        case "bool":
            return {"row": "constant", "value": node.value}
        case "field":
            return {"row": "flag", "field": node.value}
    row = _row(node)
    return row if row is not None else {"row": "text", "source": print_tree(node)}


def _row(node: Node) -> Entry | None:
    operands = [_operand(child) for child in node.children]
    if any(operand is None for operand in operands):
        return None
    if node.kind == "compare":
        return {"row": "compare", "left": operands[0], "operator": node.value, "right": operands[1]}
    if node.kind == "in" and node.children[1].kind == "list":
        return {"row": "in", "left": operands[0], "values": [child.value for child in node.children[1].children]}
    if node.kind == "in":
        return {"row": "counted", "code": node.children[0].value}
    if node.kind == "call":
        row: Entry = {"row": "call", "function": node.value, "text": operands[0]}
        return row if len(operands) == 1 else {**row, "argument": node.children[1].value}
    return None


def _operand(node: Node) -> Entry | None:
    match node.kind:
        case "field":
            return {"field": node.value}
        case "int" | "string" | "bool" | "null":
            return {"constant": node.value}
        case "list":
            return {"values": [child.value for child in node.children]}
        case "call" if node.value == "nudged":
            return {"nudged": node.children[0].value}
        case "call" if node.value in ("size", "last_paragraph"):
            inner = _operand(node.children[0])
            return None if inner is None else {str(node.value): inner}
    return None


# --- form to text


def builder_source(form: Any) -> str:
    """The text of a builder form, to be checked like anything typed; raises `NotABuilderForm` if it isn't one.

    A group without entries says what it says of nothing: all of and none of nothing hold, any of nothing doesn't.
    """
    text = _source(form, (), CHOICE)
    return text if len(text) <= MAX_CHARACTERS else tightened(text)


def _source(form: Any, path: tuple[str | int, ...], loosest: int) -> str:
    """The text of a group or row where nothing that binds more loosely than `loosest` may stand by itself."""
    if not isinstance(form, Mapping) or len(path) > 2 * _MAX_DEPTH:
        raise NotABuilderForm(path)
    text, strength = _group_source(form, path, loosest) if "group" in form else _row_source(form, path)
    return text if strength >= loosest else f"({text})"


def _group_source(form: Mapping[str, Any], path: tuple[str | int, ...], loosest: int) -> tuple[str, int]:
    group, entries = form.get("group"), form.get("entries")
    if not isinstance(group, str) or group not in _GROUPS or not isinstance(entries, list):
        raise NotABuilderForm(path)
    if not entries:
        return _EMPTY_GROUPS[group], MEMBER
    if len(entries) == 1:
        only = _source(entries[0], (*path, "entries", 0), UNARY if group == "none" else loosest)
        return (f"!{only}", UNARY) if group == "none" else (only, MEMBER)
    operator, strength = _GROUPS[group]
    parts = [_source(entry, (*path, "entries", number), strength + 1) for number, entry in enumerate(entries)]
    text = f" {operator} ".join(parts)
    return (f"!({text})", UNARY) if group == "none" else (text, strength)


def _row_source(form: Mapping[str, Any], path: tuple[str | int, ...]) -> tuple[str, int]:
    """The text of a row, and how tightly it binds."""
    match form.get("row"):
        case "constant" if isinstance(form.get("value"), bool):
            return ("true" if form["value"] else "false"), MEMBER
        case "flag":
            return _operand_source({"field": form.get("field")}, path), MEMBER
        case "compare":
            operator = form.get("operator")
            if not isinstance(operator, str) or operator not in COMPARISONS - {"in"}:
                raise NotABuilderForm((*path, "operator"))
            left = _operand_source(form.get("left"), (*path, "left"))
            right = _operand_source(form.get("right"), (*path, "right"))
            return f"{left} {operator} {right}", RELATION
        case "in":
            values = _operand_source({"values": form.get("values")}, path)
            return f"{_operand_source(form.get('left'), (*path, 'left'))} in {values}", RELATION
        case "counted" if isinstance(form.get("code"), str):
            return f"{quoted(form['code'])} in ctx.nudges", RELATION
        case "call":
            return _call_source(form, path), MEMBER
        case "text" if isinstance(form.get("source"), str):
            return _text_source(form["source"])
        case _:
            raise NotABuilderForm(path)


def _text_source(source: str) -> tuple[str, int]:
    """A text row as it stands; what isn't an expression is put in parentheses, lest it reach into its neighbours."""
    ended = source + "\n" if "//" in source else source
    try:
        return ended, strength_of(parse(source).kind)
    except SyntaxProblem:
        return ended, CHOICE


def _call_source(form: Mapping[str, Any], path: tuple[str | int, ...]) -> str:
    name = form.get("function")
    if not isinstance(name, str) or name not in FUNCTIONS:
        raise NotABuilderForm((*path, "function"))
    text = _operand_source(form.get("text"), (*path, "text"))
    if "argument" not in form:
        return f"{name}({text})"
    if not isinstance(form["argument"], str):
        raise NotABuilderForm((*path, "argument"))
    return f"{text}.{name}({quoted(form['argument'])})"


def _operand_source(operand: Any, path: tuple[str | int, ...]) -> str:
    if not isinstance(operand, Mapping) or len(operand) != 1 or len(path) > 3 * _MAX_DEPTH:
        raise NotABuilderForm(path)
    [(key, value)] = operand.items()
    match key:
        case "field" if isinstance(value, str) and value.isidentifier():
            return f"ctx.{value}"
        case "constant":
            return _constant_source(value, path)
        case "values" if isinstance(value, list):
            return f"[{', '.join(_constant_source(item, path) for item in value)}]"
        case "nudged" if isinstance(value, str):
            return f"nudged({quoted(value)})"
        case "size" | "last_paragraph":
            return f"{key}({_operand_source(value, (*path, key))})"
        case _:
            raise NotABuilderForm(path)


def _constant_source(value: Any, path: tuple[str | int, ...]) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and abs(value) < 10**12:
        return str(value)
    if isinstance(value, str):
        return quoted(value)
    raise NotABuilderForm(path)
