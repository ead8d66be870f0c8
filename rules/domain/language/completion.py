"""What may stand at a place of a predicate while it is typed. Descriptions are codes: the page has the words."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from rules.domain.language.environment import FIELDS, FINISH_REASONS, FUNCTIONS, MAX_CHARACTERS, Function
from rules.domain.language.lexer import Token, tokens
from rules.domain.language.printer import quoted

CandidateKind = Literal["field", "function", "method", "constant", "code", "operator"]

_OPERATORS_AFTER = {
    "bool": ("&&", "||", "?", "==", "!="),
    "int": ("==", "!=", "<", "<=", ">", ">=", "in", "+", "-"),
    "string": ("==", "!=", "in"),
    "string?": ("==", "!=", "in"),
    "map": (),
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A text that may be put in. `caret` is where the caret goes, in code points from the start of `text`.

    `description` is a code such as "field.mutated"; the page has its line in each language.
    """

    text: str
    kind: CandidateKind
    type: str
    description: str
    caret: int

    def as_json(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "kind": self.kind,
            "type": self.type,
            "description": self.description,
            "caret": self.caret,
        }


@dataclass(frozen=True, slots=True)
class Completion:
    """Candidates, best first, and the span of the source (in code points) that the chosen one replaces."""

    start: int
    end: int
    candidates: tuple[Candidate, ...]


def complete(source: str, caret: int, *, codes: Collection[str] = ()) -> Completion:
    """What fits at `caret` (a code point), narrowed to what is typed there. Never raises; `codes` are rule codes."""
    caret = max(0, min(caret, len(source)))
    if len(source) > MAX_CHARACTERS:
        return Completion(caret, caret, ())
    before = list(tokens(source[:caret]))
    last = before.pop()
    if last.kind == "error":
        return _in_string(source, caret, before, last, codes)
    typed, start = "", caret
    if before and before[-1].kind == "name" and before[-1].end == caret:
        typed, start = before[-1].text, before[-1].start
        before.pop()
    end = caret
    while end < len(source) and (source[end] == "_" or (source[end].isascii() and source[end].isalnum())):
        end += 1
    found = [c for c in _candidates(before, codes) if _fits(c.text, typed)]
    found.sort(key=lambda c: not _bare(c.text).startswith(typed.lower()))
    return Completion(start, end if typed else caret, tuple(found))


def _bare(text: str) -> str:
    return text.removeprefix("ctx.").lower()


def _fits(text: str, typed: str) -> bool:
    return typed.lower() in _bare(text) or text.lower().startswith(typed.lower())


def _candidates(before: list[Token], codes: Collection[str]) -> Iterator[Candidate]:
    last = before[-1] if before else None
    if last is not None and last.text == ".":
        yield from _members(before[:-1])
    elif last is not None and (last.kind in ("name", "int", "string") or last.text in (")", "]")):
        if last.text == "in":
            yield _candidate("[]", "operator", "list", "operator.list", 1)
            yield _candidate("ctx.nudges", "field", "map", "field.nudges")
        else:
            yield from _operators(_type_before(before))
    else:
        yield from _operands(before, codes)


def _members(owner: list[Token]) -> Iterator[Candidate]:
    if owner and owner[-1].text == "ctx":
        for name, type_ in FIELDS.items():
            yield _candidate(name, "field", type_, f"field.{name}")
    elif _type_before(owner) == "string":
        for function in FUNCTIONS.values():
            if "method" in function.forms:
                yield _called(function, "method", function.name)


def _operands(before: list[Token], codes: Collection[str]) -> Iterator[Candidate]:
    wanted = _wanted_type(before)
    if wanted == "code":
        yield from _codes(codes, quote=True)
        return
    if wanted == "string":
        compared = _compared_field(before)
        if compared == "finish_reason":
            yield from (_candidate(quoted(r), "constant", "string", f"finish_reason.{r}") for r in FINISH_REASONS)
        if compared is not None:
            yield _candidate("null", "constant", "null", "constant.null")
        return
    for name, type_ in FIELDS.items():
        if _suits(type_, wanted):
            yield _candidate(f"ctx.{name}", "field", type_, f"field.{name}")
    for function in FUNCTIONS.values():
        if "function" in function.forms and _suits(function.type, wanted):
            yield _called(function, "function", function.name)
    if wanted in (None, "bool"):
        for word in ("true", "false"):
            yield _candidate(word, "constant", "bool", f"constant.{word}")


def _suits(type_: str, wanted: str | None) -> bool:
    if wanted is None:
        return True
    return type_.startswith("string") if wanted == "text" else type_ == wanted


def _operators(type_: str | None) -> Iterator[Candidate]:
    for operator in _OPERATORS_AFTER.get(type_ or "", ("&&", "||", "==", "!=", "in", "?")):
        yield _candidate(operator, "operator", "bool", f"operator.{operator}")


def _codes(codes: Iterable[str], *, quote: bool) -> Iterator[Candidate]:
    for code in sorted(codes):
        yield _candidate(quoted(code) if quote else code, "code", "string", "code")


def _candidate(text: str, kind: CandidateKind, type_: str, description: str, caret: int | None = None) -> Candidate:
    return Candidate(text, kind, type_, description, len(text) if caret is None else caret)


def _called(function: Function, kind: CandidateKind, name: str) -> Candidate:
    takes_more = len(function.parameters) > (kind == "method")
    text = f"{name}()"
    return _candidate(text, kind, function.type, f"function.{name}", len(text) - takes_more)


def _type_before(before: list[Token]) -> str | None:
    """The type of what ends with the last token, as far as the tokens tell."""
    last = before[-1] if before else None
    if last is None:
        return None
    if last.kind in ("int", "string"):
        return last.kind
    if last.text == ")":
        opening = _opening(before)
        name = before[opening - 1].text if opening > 0 else ""
        return FUNCTIONS[name].type if name in FUNCTIONS else None
    if last.kind == "name" and len(before) > 2 and before[-2].text == "." and before[-3].text == "ctx":
        return FIELDS.get(last.text)
    return "bool" if last.text in ("true", "false") else None


def _opening(before: list[Token]) -> int:
    """Where the parenthesis was opened that the last token closes, or -1."""
    depth = 0
    for index in range(len(before) - 1, -1, -1):
        depth += (before[index].text in (")", "]")) - (before[index].text in ("(", "["))
        if depth == 0:
            return index
    return -1


def _wanted_type(before: list[Token]) -> str | None:
    """The type of what comes after the tokens: "text" and "code" for arguments, None when anything may come."""
    last = before[-1] if before else None
    if last is None or last.text in ("&&", "||", "!", "?"):
        return "bool" if last is not None and last.text == "!" else None
    if last.text == "(" and len(before) > 1:
        name = before[-2].text
        if name in FUNCTIONS and "function" in FUNCTIONS[name].forms:
            return "code" if FUNCTIONS[name].parameters[0] == "code" else "text"
        if name in FUNCTIONS:
            return "string"
    if last.text in ("<", "<=", ">", ">=", "+", "-"):
        return "int"
    if last.text in ("==", "!="):
        left = _type_before(before[:-1])
        return "string" if left in ("string", "string?") else left
    if last.text in ("[", ",") and _compared_field(before) is not None:
        return "string"
    return None


def _compared_field(before: list[Token]) -> str | None:
    """The field that is compared with what comes after the tokens, or looked for in the list being written."""
    index = len(before) - 1
    while (index >= 0 and before[index].kind in ("string", "int")) or (index >= 0 and before[index].text in ("[", ",")):
        index -= 1
    if index < 3 or before[index].text not in ("==", "!=", "in"):
        return None
    return before[index - 1].text if before[index - 2].text == "." and before[index - 3].text == "ctx" else None


def _in_string(source: str, caret: int, before: list[Token], broken: Token, codes: Collection[str]) -> Completion:
    """Inside quotes: rule codes after `nudged(`, finish reasons after a comparison with that field."""
    if broken.problem is None or broken.problem.code != "unterminated-string":
        return Completion(caret, caret, ())
    start = broken.start + 1
    typed = source[start:caret].lower()
    found: list[Candidate] = []
    if _wanted_type(before) == "code" or not before:
        found = list(_codes(codes, quote=False))
    elif _compared_field(before) == "finish_reason":
        found = [_candidate(reason, "constant", "string", f"finish_reason.{reason}") for reason in FINISH_REASONS]
    return Completion(start, caret, tuple(c for c in found if typed in c.text.lower()))
