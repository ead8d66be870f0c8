"""The names a predicate may use: fields of `ctx`, functions, and how they are typed (rule-engine.md section 2.2)."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

MAX_CHARACTERS = 2000
MAX_NODES = 200
MAX_DEPTH = 32
MAX_LIST_ITEMS = 50
MAX_INTEGER = 2**31
MAX_RANGE = 2**53

FIELDS: Mapping[str, str] = {
    "final_text": "string",
    "user_text": "string",
    "finish_reason": "string?",
    "tool_calls_total": "int",
    "tool_calls_since_user": "int",
    "no_progress_rounds": "int",
    "read_only_rounds": "int",
    "tools_available": "bool",
    "mutated": "bool",
    "verified_after_mutation": "bool",
    "verify_failed": "bool",
    "budget_low": "bool",
    "require_delivery": "bool",
    "audit_mode": "bool",
    "nudges": "map",
}

FINISH_REASONS = ("stop", "length", "tool_calls", "content_filter", "error")

Parameter = Literal["text", "text?", "string", "pattern", "code"]


@dataclass(frozen=True, slots=True)
class Function:
    """A function. `text` is a field or last paragraph, `text?` may be null too, other parameters are constants."""

    name: str
    parameters: tuple[Parameter, ...]
    type: str
    forms: tuple[Literal["function", "method"], ...]


PHRASE_FUNCTIONS = ("is_go_ahead", "lists_remaining_work", "announces_action", "asks_user")

FUNCTIONS: Mapping[str, Function] = {
    function.name: function
    for function in (
        *(Function(name, ("text?",), "bool", ("function",)) for name in PHRASE_FUNCTIONS),
        Function("last_paragraph", ("text",), "string", ("function",)),
        Function("nudged", ("code",), "int", ("function",)),
        Function("size", ("text",), "int", ("function", "method")),
        Function("contains", ("text", "string"), "bool", ("method",)),
        Function("startsWith", ("text", "string"), "bool", ("method",)),
        Function("endsWith", ("text", "string"), "bool", ("method",)),
        Function("matches", ("text", "pattern"), "bool", ("method",)),
    )
}

MACROS = frozenset({"all", "exists", "exists_one", "map", "filter", "has"})
CONVERSIONS = frozenset({"int", "uint", "double", "string", "bytes", "bool", "type", "dyn", "timestamp", "duration"})

FOREIGN_WORDS: Mapping[str, str] = {
    "and": "&&",
    "et": "&&",
    "or": "||",
    "ou": "||",
    "not": "!",
    "non": "!",
    "is": "==",
    "equals": "==",
}
"""Words of other languages and the operator that stands for each here; compared without case."""

FOREIGN_CONSTANTS: Mapping[str, str] = {
    "true": "true",
    "false": "false",
    "none": "null",
    "nil": "null",
    "null": "null",
    "undefined": "null",
}


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that `name` most likely stands for, or None; case and underscores matter little."""
    by_plain = {candidate.lower().replace("_", ""): candidate for candidate in candidates}
    found = difflib.get_close_matches(name.lower().replace("_", "")[:80], by_plain, n=1, cutoff=0.6)
    return by_plain[found[0]] if found else None
