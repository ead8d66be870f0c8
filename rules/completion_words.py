"""The lines that completion shows, in the page's language."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from rules.domain.language.completion import complete

FIELD_LINES: Mapping[str, str | Promise] = {
    "final_text": _("The text of this answer, without reasoning"),
    "user_text": _("The last thing that a person said in this turn"),
    "finish_reason": _("Why the model stopped: stop, length, tool_calls, content_filter, error, or unknown"),
    "tool_calls_total": _("Tool calls in this turn so far"),
    "tool_calls_since_user": _("Tool calls since the last user message, a nudge included"),
    "no_progress_rounds": _("How many rounds in a row repeated the calls before them"),
    "read_only_rounds": _("How many rounds in a row only looked"),
    "tools_available": _("The model was offered at least one tool"),
    "mutated": _("Something may have been changed in this turn"),
    "verified_after_mutation": _("A check passed after the last change, or nothing was changed"),
    "verify_failed": _("The last check failed"),
    "budget_low": _("At most two answers are left of the step budget"),
    "require_delivery": _("The task has to be delivered with tools"),
    "audit_mode": _("Looking around is the task"),
    "nudges": _("How often each rule has nudged in this turn"),
}

FUNCTION_LINES: Mapping[str, str | Promise] = {
    "is_go_ahead": _("The whole text says nothing but: go ahead"),
    "lists_remaining_work": _("The text says that work is left"),
    "announces_action": _("The text announces an action in the first person"),
    "asks_user": _("The text ends by asking the person something"),
    "last_paragraph": _("The last paragraph of the text"),
    "nudged": _("How often this rule has nudged in this turn"),
    "size": _("The length in characters"),
    "contains": _("The text holds exactly this"),
    "startsWith": _("The text starts with exactly this"),
    "endsWith": _("The text ends with exactly this"),
    "matches": _("The pattern (RE2) is found anywhere in the text"),
}


def described(
    source: str, caret: int, *, codes: Collection[str] = (), observed: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    """Candidates with their lines, as the code field takes them. `observed` has a line of values for fields."""
    found = complete(source, caret, codes=codes)
    return {
        "from": found.start,
        "to": found.end,
        "items": [
            {
                "label": c.text,
                "insert": c.text,
                "caret": c.caret,
                "kind": c.kind,
                "type": c.type,
                "detail": line(c.description),
                "observed": observed.get(c.description.removeprefix("field."), ""),
            }
            for c in found.candidates
        ],
    }


def line(description: str) -> str:
    """The line for a code such as "field.mutated"; empty when there is none."""
    name = description.rpartition(".")[2]
    return str(FIELD_LINES.get(name) or FUNCTION_LINES.get(name) or "")
