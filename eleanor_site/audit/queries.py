"""Reading the change log, and checking that nobody altered it."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import QuerySet

from eleanor_site.audit import chain
from eleanor_site.audit.models import Entry
from eleanor_site.audit.services import hash_of

PAGE = 50


def entries(
    *,
    actor: str = "",
    object_type: str = "",
    action: str = "",
    start: str = "",
    end: str = "",
    before: int | None = None,
) -> QuerySet[Entry]:
    """The newest first; `before` is the number that the page before ended with."""
    found: QuerySet[Entry] = Entry.objects.select_related("actor").order_by("-number")
    if actor:
        found = found.filter(actor_label__icontains=actor)
    if object_type:
        found = found.filter(object_type=object_type)
    if action:
        found = found.filter(action=action)
    if start:
        found = found.filter(at__date__gte=start)
    if end:
        found = found.filter(at__date__lte=end)
    return found.filter(number__lt=before) if before else found


@dataclass(frozen=True)
class Fault:
    """Where the log disagrees with itself. `kind` is altered, missing or reordered."""

    number: int
    kind: str


def faults() -> list[Fault]:
    """Every place where the chain of the tenant in scope is broken; empty when the log is whole."""
    found: list[Fault] = []
    expected_number, expected_previous = 1, chain.FIRST
    for entry in Entry.objects.order_by("number").iterator(chunk_size=2000):
        if entry.number != expected_number:
            found.append(Fault(expected_number, "missing"))
        elif entry.previous_hash != expected_previous:
            found.append(Fault(entry.number, "reordered"))
        if entry.hash != hash_of(entry):
            found.append(Fault(entry.number, "altered"))
        expected_number, expected_previous = entry.number + 1, entry.hash
    return found
