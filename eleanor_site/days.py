"""Days of filters: UTC days, as addresses and forms write them."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta


def day_from(text: str) -> date | None:
    """The day that the text writes as year-month-day; None when it writes none."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def within(field: str, start: date | None, end: date | None) -> dict[str, datetime]:
    """Lookups of a moment between two days, both included. The last day of the calendar bounds nothing."""
    lookups = {}
    if start:
        lookups[f"{field}__gte"] = _midnight(start)
    if end and end < date.max:
        lookups[f"{field}__lt"] = _midnight(end) + timedelta(days=1)
    return lookups


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
