"""Reading the change log, and checking that nobody altered it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC
from typing import Any

from django.db.models import Max, Q, QuerySet

from eleanor_site.audit import chain
from eleanor_site.audit.models import Entry
from eleanor_site.audit.services import hash_of
from eleanor_site.days import day_from, within

PAGE = 50
EXPORT_COLUMNS = (
    "number", "at", "actor_id", "actor", "action", "object_type", "object_id", "object", "before", "after", "note",
    "request_id", "previous_hash", "hash",
)  # fmt: skip


@dataclass(frozen=True)
class EntryFilter:
    """Filters of the log, as they stand in the URL: days as ISO dates. `text` is looked for in note and name."""

    actor: str = ""
    object_type: str = ""
    object_id: str = ""
    action: str = ""
    text: str = ""
    start: str = ""
    end: str = ""


def entries(
    *,
    actor: str = "",
    object_type: str = "",
    object_id: str = "",
    action: str = "",
    text: str = "",
    start: str = "",
    end: str = "",
    before: int | None = None,
) -> QuerySet[Entry]:
    """The newest first; `before` is the number that the page before ended with. Filters as in EntryFilter."""
    found: QuerySet[Entry] = Entry.objects.select_related("actor").order_by("-number")
    if actor:
        found = found.filter(actor_label__icontains=actor)
    if object_type:
        found = found.filter(object_type=object_type)
    if object_id:
        found = found.filter(object_id=object_id)
    if action:
        found = found.filter(action=action)
    if text:
        found = found.filter(Q(note__icontains=text) | Q(object_label__icontains=text))
    found = found.filter(**within("at", day_from(start), day_from(end)))
    return found.filter(number__lt=before) if before else found


def object_types() -> list[str]:
    return list(Entry.objects.order_by("object_type").values_list("object_type", flat=True).distinct())


def actions() -> list[str]:
    return list(Entry.objects.order_by("action").values_list("action", flat=True).distinct())


def newest() -> int:
    """The number of the newest entry, 0 in an empty log."""
    return Entry.objects.aggregate(newest=Max("number"))["newest"] or 0


def export_rows(wanted: EntryFilter) -> Iterator[dict[str, Any]]:
    """Entries as plain values, the oldest first; times as the hash covers them. Reads on while they are taken."""
    found = entries(**asdict(wanted)).order_by("number").iterator(chunk_size=2000)
    return (_exported(entry) for entry in found)


def _exported(entry: Entry) -> dict[str, Any]:
    return {
        "number": entry.number,
        "at": entry.at.astimezone(UTC).isoformat(timespec="microseconds"),
        "actor_id": entry.actor_id,
        "actor": entry.actor_label,
        "action": entry.action,
        "object_type": entry.object_type,
        "object_id": entry.object_id,
        "object": entry.object_label,
        "before": entry.before,
        "after": entry.after,
        "note": entry.note,
        "request_id": entry.request_id,
        "previous_hash": entry.previous_hash,
        "hash": entry.hash,
    }


def is_whole(entry: Entry) -> bool:
    """The entry's hash covers what it says, and it follows the entry before it."""
    if entry.hash != hash_of(entry):
        return False
    if entry.number == 1:
        return entry.previous_hash == chain.FIRST
    before = Entry.objects.filter(number=entry.number - 1).values_list("hash", flat=True).first()
    return before == entry.previous_hash


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
