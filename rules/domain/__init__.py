"""The public names of the deciding side. Plain Python: no Django anywhere below this package."""

from rules.domain.catalogue import default_rules
from rules.domain.context import TurnContext
from rules.domain.phrases import announces_action, asks_user, is_go_ahead, last_paragraph, lists_remaining_work
from rules.domain.rule import ContinuationRule, first_applicable

__all__ = [
    "ContinuationRule",
    "TurnContext",
    "announces_action",
    "asks_user",
    "default_rules",
    "first_applicable",
    "is_go_ahead",
    "last_paragraph",
    "lists_remaining_work",
]
