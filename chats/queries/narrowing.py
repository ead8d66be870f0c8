"""Filters of the chat list that an app above adds, since only it knows the rows that they look at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.db.models import QuerySet
from django.utils.functional import Promise

from chats.models import Chat


@dataclass(frozen=True)
class Narrowing:
    """One filter: its word in the address, its label, the values to choose from, and what it leaves of the chats.

    `choices` gives pairs of value and label; `apply` gets a value that came from the address and may be anything.
    """

    key: str
    label: str | Promise
    choices: Callable[[], Sequence[tuple[str, str | Promise]]]
    apply: Callable[[QuerySet[Chat], str], QuerySet[Chat]]


_narrowings: dict[str, Narrowing] = {}


def add_narrowing(narrowing: Narrowing) -> None:
    """Offer a filter; called once at start for each key."""
    _narrowings[narrowing.key] = narrowing


def narrowings() -> list[Narrowing]:
    """All filters that were added, in that order."""
    return list(_narrowings.values())
