"""When something that is done daily or weekly is due next. All times are in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


def next_due(after: datetime, *, hour: int, weekday: int | None = None) -> datetime:
    """The first full hour `hour` behind `after`, on the weekday (0 is Monday) where one is given, else on any day."""
    at = after.astimezone(UTC)
    found = at.replace(hour=hour, minute=0, second=0, microsecond=0)
    if found <= at:
        found += timedelta(days=1)
    if weekday is not None:
        found += timedelta(days=(weekday - found.weekday()) % 7)
    return found
