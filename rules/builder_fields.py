"""The visual builder as form fields, so that it works with submit buttons alone (rule-engine.md section 2.4).

A builder form (`rules.domain.language.builder`) is shown as nested groups with rows; fields are named by the place of
their entry, such as `b.0.2.op`. Whatever comes back is turned into text, which is checked like anything typed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from rules.domain.language import check
from rules.domain.language.builder import NotABuilderForm, builder_form, builder_source
from rules.domain.language.diagnostics import SyntaxProblem
from rules.domain.language.environment import FIELDS, FINISH_REASONS, FUNCTIONS, PHRASE_FUNCTIONS
from rules.domain.language.parser import parse
from rules.domain.language.printer import quoted

GROUPS: Final = (("all", _("all of")), ("any", _("any of")), ("none", _("none of")))
OPERATORS: Final = (
    ("==", _("is")),
    ("!=", _("is not")),
    ("<", _("is less than")),
    ("<=", _("is at most")),
    (">", _("is more than")),
    (">=", _("is at least")),
)
_TEXTS: Final = tuple(name for name, kind in FIELDS.items() if kind in ("string", "string?"))
_LONG_TEXTS: Final = tuple(name for name, kind in FIELDS.items() if kind == "string")
_METHODS: Final = tuple(name for name, f in FUNCTIONS.items() if "method" in f.forms and name != "size")
FUNCTION_WORDS: Final[Mapping[str, str | Promise]] = {
    "is_go_ahead": _("says nothing but: go ahead"),
    "lists_remaining_work": _("says that work is left"),
    "announces_action": _("announces an action"),
    "asks_user": _("ends by asking the person"),
    "contains": _("contains"),
    "startsWith": _("starts with"),
    "endsWith": _("ends with"),
    "matches": _("matches the pattern"),
}
NEW_ROWS: Final[Mapping[str, tuple[str | Promise, dict[str, Any]]]] = {
    "call": (
        _("A text says …"),
        {"row": "call", "function": "announces_action", "text": {"field": "final_text"}},
    ),
    "flag": (_("Something is the case"), {"row": "flag", "field": "tools_available"}),
    "compare": (
        _("Compare a value"),
        {"row": "compare", "left": {"field": "tool_calls_total"}, "operator": ">=", "right": {"constant": 1}},
    ),
    "in": (
        _("One of a list"),
        {"row": "in", "left": {"field": "finish_reason"}, "values": ["stop", "length"]},
    ),
    "group": (_("A group: any of …"), {"group": "any", "entries": []}),
    "text": (_("A row of text"), {"row": "text", "source": "true"}),
}
MOST_ENTRIES: Final = 200
_DEEPEST: Final = 40


@dataclass(frozen=True)
class Choice:
    value: str
    label: str | Promise
    chosen: bool


@dataclass
class Row:
    """One entry as the page shows it: a group with entries, or a row with its controls."""

    path: str
    kind: str
    first: bool = False
    last: bool = False
    groups: list[Choice] = field(default_factory=list)
    entries: list[Row] = field(default_factory=list)
    subjects: list[Choice] = field(default_factory=list)
    operators: list[Choice] = field(default_factory=list)
    value: str = ""

    @property
    def takes_value(self) -> bool:
        """Whether something is typed in this row; the phrase functions look for no words of one's own."""
        function = next((choice.value for choice in self.operators if choice.chosen), "")
        return self.kind in ("compare", "in", "text") or (self.kind == "call" and function not in PHRASE_FUNCTIONS)

    @property
    def name(self) -> str:
        """What the names of its fields begin with."""
        return f"b.{self.path}" if self.path else "b"

    @property
    def id(self) -> str:
        return self.name.replace(".", "-")


# --- tree to page


def builder_rows(source: str, codes: Collection[str] = ()) -> Row | None:
    """The expression as a group with rows; None while it has an error. An empty one is a group without rows."""
    form: dict[str, Any] = {"group": "all", "entries": []}
    if source.strip():
        checked = check(source)
        if checked.tree is None or checked.errors:
            return None
        form = builder_form(checked.tree)
    if "group" not in form:
        form = {"group": "all", "entries": [form]}
    return _shown(form, "", sorted(codes))


def _shown(form: Mapping[str, Any], path: str, codes: Sequence[str]) -> Row:
    if "group" in form:
        entries = [_shown(e, f"{path}.{n}" if path else str(n), codes) for n, e in enumerate(form["entries"])]
        for number, entry in enumerate(entries):
            entry.first, entry.last = number == 0, number == len(entries) - 1
        groups = [Choice(value, label, value == form["group"]) for value, label in GROUPS]
        return Row(path, "group", groups=groups, entries=entries)
    row = Row(path, str(form["row"]))
    match form["row"]:
        case "constant":
            row.subjects = _choices([("true", _("always")), ("false", _("never"))], _word(form["value"]))
        case "flag":
            row.subjects = _choices(_fields("bool"), f"ctx.{form['field']}")
        case "compare":
            row.subjects = _choices(_values(codes), _operand(form["left"]))
            row.operators = [Choice(value, label, value == form["operator"]) for value, label in OPERATORS]
            row.value = _operand(form["right"])
        case "in":
            row.subjects = _choices(_values(codes), _operand(form["left"]))
            row.value = ", ".join(_constant(value) for value in form["values"])
        case "counted":
            row.subjects = _choices([(quoted(code), code) for code in codes], quoted(form["code"]))
        case "call":
            row.subjects = _choices(_texts(), _operand(form["text"]))
            row.operators = _choices([(name, FUNCTION_WORDS[name]) for name in FUNCTION_WORDS], form["function"])
            row.value = quoted(form["argument"]) if "argument" in form else ""
        case _:
            row.value = str(form["source"])
    return row


def _choices(known: Sequence[tuple[str, str | Promise]], chosen: str) -> list[Choice]:
    """The known choices; what the expression says is one of them whatever it is."""
    given = list(known) if any(value == chosen for value, _label in known) else [*known, (chosen, chosen)]
    return [Choice(value, label, value == chosen) for value, label in given]


def _fields(*kinds: str) -> list[tuple[str, str]]:
    return [(f"ctx.{name}", name) for name, kind in FIELDS.items() if kind in kinds]


def _values(codes: Sequence[str]) -> list[tuple[str, str | Promise]]:
    sizes = [(f"size(ctx.{name})", f"size({name})") for name in _LONG_TEXTS]
    counts = [(f"nudged({quoted(code)})", f"nudged({quoted(code)})") for code in codes]
    return [*_fields("int", "string?", "bool", "string"), *sizes, *counts]


def _texts() -> list[tuple[str, str]]:
    whole = [(f"ctx.{name}", name) for name in _TEXTS]
    last = [(f"last_paragraph(ctx.{name})", f"last_paragraph({name})") for name in _LONG_TEXTS]
    return [*whole, *last]


def _operand(operand: Mapping[str, Any]) -> str:
    [(key, value)] = operand.items()
    match key:
        case "field":
            return f"ctx.{value}"
        case "constant":
            return _constant(value)
        case "values":
            return f"[{', '.join(_constant(item) for item in value)}]"
        case "nudged":
            return f"nudged({quoted(value)})"
        case _:
            return f"{key}({_operand(value)})"


def _constant(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return _word(value)
    return quoted(value) if isinstance(value, str) else str(value)


def _word(value: bool) -> str:
    return "true" if value else "false"


# --- page to text


def built_source(posted: Mapping[str, str], action: str = "") -> str | None:
    """The expression that the builder's fields say after the action; None when they aren't a builder's fields.

    Actions: `add:PATH` (kind in `new.PATH`), `remove:PATH`, `up:PATH`, `down:PATH`, `wrap:PATH`, `unwrap:PATH`; any
    other changes nothing.
    """
    form = _read(posted, "", 0)
    if form is None or "group" not in form:
        return None
    _act(form, posted, *action.partition(":")[::2])
    if not form["entries"]:
        return ""
    try:
        return builder_source(form)
    except NotABuilderForm:
        return None


def _read(posted: Mapping[str, str], path: str, depth: int) -> dict[str, Any] | None:
    name = f"b.{path}" if path else "b"
    kind = posted.get(f"{name}.kind")
    if kind is None or depth > _DEEPEST:
        return None
    if kind == "group":
        entries = []
        for number in range(MOST_ENTRIES):
            entry = _read(posted, f"{path}.{number}" if path else str(number), depth + 1)
            if entry is None:
                break
            entries.append(entry)
        group = posted.get(f"{name}.group", "")
        return {"group": group if group in dict(GROUPS) else "all", "entries": entries}
    subject = posted.get(f"{name}.subject", "")
    operator = posted.get(f"{name}.op", "")
    value = posted.get(f"{name}.value", "").replace("\r\n", "\n")
    return {"row": "text", "source": _row_source(kind, subject, operator, value)}


def _row_source(kind: str, subject: str, operator: str, value: str) -> str:
    """The text of one row. A value that is no expression by itself is taken as the text that somebody meant."""
    match kind:
        case "constant" | "flag":
            return subject
        case "compare":
            return f"{subject} {operator} {_value(value, subject)}"
        case "in":
            items = value.strip().removeprefix("[").removesuffix("]")
            if check(f"{subject} in [{items}]").errors:
                items = ", ".join(_value(item, subject) for item in items.split(","))
            return f"{subject} in [{items}]"
        case "counted":
            return f"{subject} in ctx.nudges"
        case "call" if operator in PHRASE_FUNCTIONS:
            return f"{operator}({subject})"
        case "call":
            return f"{subject}.{operator}({_text_value(value)})"
        case _:
            return value


def _value(text: str, subject: str) -> str:
    text = text.strip()
    is_text = FIELDS.get(subject.removeprefix("ctx.")) in ("string", "string?") or subject.startswith("last_paragraph")
    if is_text and (text in FINISH_REASONS or not _is_expression(text)):
        return quoted(text)
    return text or "0"


def _text_value(text: str) -> str:
    return text if text.strip()[:1] in ("'", '"', "r") and _is_expression(text) else quoted(text)


def _is_expression(text: str) -> bool:
    try:
        parse(text)
    except SyntaxProblem:
        return False
    return True


def _act(root: dict[str, Any], posted: Mapping[str, str], verb: str, path: str) -> None:
    """Do what a button says to the form, in place."""
    places = [int(part) for part in path.split(".") if part.isdecimal() and len(part) < 6] if path else []
    if verb == "add":
        group = _at(root, places)
        kind = posted.get(f"new.{path}" if path else "new", "")
        if group is not None and "group" in group and kind in NEW_ROWS:
            group["entries"].append(_fresh(kind))
        return
    parent = _at(root, places[:-1]) if places else None
    if parent is None or "group" not in parent or not 0 <= places[-1] < len(parent["entries"]):
        return
    entries, at = parent["entries"], places[-1]
    match verb:
        case "remove":
            del entries[at]
        case "up" if at > 0:
            entries.insert(at - 1, entries.pop(at))
        case "down" if at < len(entries) - 1:
            entries.insert(at + 1, entries.pop(at))
        case "wrap":
            entries[at] = {"group": "any", "entries": [entries[at], _fresh("flag")]}
        case "unwrap" if "group" in entries[at]:
            entries[at : at + 1] = entries[at]["entries"]


def _at(root: dict[str, Any], places: Sequence[int]) -> dict[str, Any] | None:
    found = root
    for place in places:
        entries = found.get("entries", ())
        if not 0 <= place < len(entries):
            return None
        found = entries[place]
    return found


def _fresh(kind: str) -> dict[str, Any]:
    form = NEW_ROWS[kind][1]
    if "group" in form:
        return {"group": form["group"], "entries": [_fresh("flag"), _fresh("call")]}
    return dict(form)
