"""What a person reads for each diagnostic, in the language of the page (rule-engine.md section 2.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from rules.domain.language import Diagnostic, check
from rules.domain.language.painting import painted
from rules.models import Rule
from rules.queries.codes import known_codes, later_codes

SENTENCES: Mapping[str, str | Promise] = {
    "expected": gettext_lazy("Expected %(expected)s here, but found %(found)s."),
    "expected-end": gettext_lazy("The expression ends too early: expected %(expected)s."),
    "trailing": gettext_lazy("The expression ends before %(found)s. Join two conditions with && or ||."),
    "unterminated-string": gettext_lazy("This text isn't closed: add %(quote)s at its end."),
    "bad-escape": gettext_lazy("%(escape)s isn't an escape that the language knows."),
    "bad-char": gettext_lazy("The character %(char)s doesn't belong here."),
    "unsupported": gettext_lazy("%(found)s is not part of this language (%(feature)s)."),
    "chained": gettext_lazy("Compare two values at a time: join comparisons with &&."),
    "too-long": gettext_lazy("The expression has %(length)s characters; at most %(limit)s are read."),
    "too-deep": gettext_lazy("The expression is nested deeper than %(limit)s levels."),
    "too-complex": gettext_lazy("The expression has more than %(limit)s parts."),
    "too-big": gettext_lazy("Too many %(what)s: %(found)s, at most %(limit)s."),
    "unknown-name": gettext_lazy("There is nothing called %(name)s."),
    "unknown-field": gettext_lazy("The turn context has no field %(name)s."),
    "unknown-function": gettext_lazy("There is no function %(name)s."),
    "type": gettext_lazy("Expected %(expected)s here, but this is %(found)s."),
    "arity": gettext_lazy("%(name)s takes %(expected)s arguments, not %(found)s."),
    "not-bool": gettext_lazy("A rule's expression is true or false; this is %(found)s."),
    "literal": gettext_lazy("Write the value itself here (%(expected)s), not %(found)s."),
    "list": gettext_lazy("A list holds values of one kind: expected %(expected)s, found %(found)s."),
    "empty-list": gettext_lazy("The list is empty, so nothing can be in it."),
    "overflow": gettext_lazy("The sum can leave the range that numbers have here."),
    "regex": gettext_lazy("The pattern isn't valid: %(reason)s."),
    "regex-too-large": gettext_lazy("The pattern is too large: %(found)s, at most %(limit)s (%(what)s)."),
    "regex-slow": gettext_lazy(
        "The pattern is too slow: it reads %(found)s MB a second, at least %(limit)s are needed."
    ),
    "unknown-code": gettext_lazy("No rule and no stored chat has the code %(name)s."),
    "constant": gettext_lazy("This is always %(value)s."),
    "later-counter": gettext_lazy("This reads the count of %(name)s, which comes after this rule."),
    "ascii-boundary": gettext_lazy(
        "\\b knows only unaccented letters, so it doesn't find the start of this word after a space."
    ),
    "backspace": gettext_lazy("\\b between quotes is a backspace, which no text holds; \\\\b is the edge of a word."),
    "never-seen": gettext_lazy("%(name)s is unknown at every point of these chats, so this can't match."),
    "one-value": gettext_lazy("%(name)s has the same value at every point of this stage: %(value)s."),
    "no-effect": gettext_lazy("This clause never changes the result on these chats."),
    "one-language": gettext_lazy("The phrases are in one language only."),
}

WORDS: Mapping[str, str | Promise] = {
    "bool": gettext_lazy("true or false"),
    "int": gettext_lazy("a number"),
    "string": gettext_lazy("a text"),
    "string?": gettext_lazy("a text that may be unknown"),
    "text": gettext_lazy("a text field"),
    "map": gettext_lazy("the counts of nudges"),
    "list": gettext_lazy("a list"),
    "null": gettext_lazy("null"),
    "expression": gettext_lazy("a condition or value"),
    "end": gettext_lazy("the end"),
    "name": gettext_lazy("a name"),
    "nodes": gettext_lazy("parts"),
    "items": gettext_lazy("items"),
    "constant": gettext_lazy("a written value"),
}


def sentence(diagnostic: Diagnostic) -> str:
    """The message of this diagnostic, complete and in the reader's language."""
    code = diagnostic.code
    if code == "regex" and diagnostic.args.get("reason") in ("ascii-boundary", "backspace"):
        code = str(diagnostic.args["reason"])
    elif code == "expected" and not diagnostic.args.get("found"):
        code = "expected-end"
    template = SENTENCES.get(code)
    if template is None:
        return code
    return str(template) % _Arguments(diagnostic.args)


def shown(diagnostic: Diagnostic) -> dict[str, Any]:
    """What the code field's component needs: place, severity, message, and the repair if there is one."""
    return {
        "start": diagnostic.start,
        "end": diagnostic.end,
        "severity": diagnostic.severity,
        "code": diagnostic.code,
        "message": sentence(diagnostic),
        "repair": _repair(diagnostic),
    }


def _repair(diagnostic: Diagnostic) -> dict[str, Any] | None:
    if diagnostic.replace is None:
        return None
    label = _("Write %(text)s") % {"text": diagnostic.replace} if diagnostic.replace else _("Remove it")
    return {"start": diagnostic.start, "end": diagnostic.end, "text": diagnostic.replace, "label": label}


class _Arguments(dict[str, Any]):
    """Arguments of a sentence, with the language's own words translated and lists written out."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        super().__init__({name: _worded(value) for name, value in given.items()})

    def __missing__(self, key: str) -> str:
        return "?"


def _worded(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_worded(v) for v in value)
    if value is True or value is False:
        return str(value).lower()
    return str(WORDS.get(value, value)) if isinstance(value, str) else str(value)


def diagnosed(source: str, stage: str, rule: Rule | None) -> dict[str, Any]:
    """Diagnostics and painted tokens of an expression, as the code field's component takes them."""
    if not source.strip():
        return {"diagnostics": [], "tokens": [], "source_length": len(source), "errors": False}
    checked = check(
        source,
        stage="round" if stage == "round" else "final",
        known_codes=known_codes(),
        later_codes=later_codes(rule) if rule else frozenset(),
    )
    tokens = [{"start": start, "end": end, "kind": kind} for start, end, kind in painted(source)]
    return {
        "diagnostics": [shown(d) for d in checked.diagnostics],
        "tokens": tokens,
        "source_length": len(source),
        "errors": bool(checked.errors),
    }
