"""The text helpers of the rules, in English and French (continuation.md section 11).

Each takes text or None and runs in time proportional to the text. `find_…` gives the places of what made a helper
true, as code points of the text as it was given. A change of what a helper answers raises its number in
`HELPER_VERSIONS`, since results are kept by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rules.domain.phrases.announcements import announces_action, find_announces_action
from rules.domain.phrases.go_ahead import find_is_go_ahead, is_go_ahead
from rules.domain.phrases.questions import asks_user, find_asks_user, find_last_paragraph, last_paragraph
from rules.domain.phrases.remaining_work import find_lists_remaining_work, lists_remaining_work

HELPER_VERSIONS: Final[dict[str, int]] = {
    "is_go_ahead": 1,
    "lists_remaining_work": 1,
    "announces_action": 1,
    "asks_user": 1,
    "last_paragraph": 1,
}


@dataclass(frozen=True, slots=True)
class HelperResults:
    """What all helpers say of one text."""

    is_go_ahead: bool
    lists_remaining_work: bool
    announces_action: bool
    asks_user: bool
    last_paragraph: str


def helper_results(text: str | None) -> HelperResults:
    """All helpers on one text; the reduction to prose is made once, and only if some helper needs it."""
    return HelperResults(
        is_go_ahead(text), lists_remaining_work(text), announces_action(text), asks_user(text), last_paragraph(text)
    )


__all__ = [
    "HELPER_VERSIONS",
    "HelperResults",
    "announces_action",
    "asks_user",
    "find_announces_action",
    "find_asks_user",
    "find_is_go_ahead",
    "find_last_paragraph",
    "find_lists_remaining_work",
    "helper_results",
    "is_go_ahead",
    "last_paragraph",
    "lists_remaining_work",
]
