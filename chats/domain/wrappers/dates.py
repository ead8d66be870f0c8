"""Dates that a wrapper prints: how options give them, and how they are spelled (chat-wrappers.md section 2)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Any, Final, TypeAlias

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

from chats.domain.js_json import ABSENT, Absence
from chats.domain.wrappers.base import Clock

SHORT_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
LONG_MONTHS: Final = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
NOW: Final = ABSENT
"""An absent date: the moment of each rendering."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _date(value: Any) -> Any:
    """ISO strings and epoch milliseconds become moments; a date alone is midnight in UTC, as in JavaScript."""
    if isinstance(value, bool):
        raise PydanticCustomError("date_type", "not a date")
    try:
        if isinstance(value, int | float):
            return _EPOCH + timedelta(milliseconds=value)
        if isinstance(value, str):
            parsed = datetime.fromisoformat(value)
            if len(value) <= len("2024-01-01"):
                return parsed.replace(tzinfo=UTC)
            return parsed if parsed.tzinfo else parsed.astimezone()
    except (ValueError, OverflowError) as error:
        raise PydanticCustomError("date_type", "not a date") from error
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime.combine(value, time(), UTC)
    if isinstance(value, datetime):
        return value if value.tzinfo else value.astimezone()
    if value is None or value is ABSENT or callable(value):
        return value
    raise PydanticCustomError("date_type", "not a date")


OptionalDate: TypeAlias = Annotated[datetime | Callable[[], datetime] | Absence | None, BeforeValidator(_date)]
"""An ISO string, epoch milliseconds, a date, a function called at each rendering, or None for no date at all."""


def moment(value: Any, clock: Clock) -> datetime | None:
    """The date that an option means right now."""
    if value is ABSENT:
        return clock.now()
    if isinstance(value, datetime):
        return value
    if callable(value):
        called: datetime | None = _date(value())
        return called
    return None
