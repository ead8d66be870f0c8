"""Small types that endpoints take: ids, cursors, days, and bodies in which nothing is converted or passed over."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Annotated, Any, Final

from ninja import Query
from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field

PAGE: Final = 50
LARGEST_PAGE: Final = 200


def _iso_day(value: Any) -> Any:
    """Only the form that is described: the library would take a number for the seconds since 1970."""
    if isinstance(value, date):
        return value
    if not isinstance(value, str) or not re.fullmatch(r"\d{4}-\d\d-\d\d", value, re.ASCII):
        raise ValueError("a day is written like 2026-03-31")
    return date.fromisoformat(value)


def _iso_time(value: Any) -> Any:
    if not isinstance(value, str):
        raise ValueError("a time is written like 2026-03-31T14:05:00Z")
    return datetime.fromisoformat(value)


Day = Annotated[date, BeforeValidator(_iso_day)]
Moment = Annotated[AwareDatetime, BeforeValidator(_iso_time)]
Id = Annotated[int, Field(ge=1, le=2**63 - 1)]
Number = Annotated[int, Field(ge=1, le=2**31 - 1)]
Index = Annotated[int, Field(ge=0, le=2**31 - 1)]
# What somebody saw before a change; 0 where there was nothing yet.
Revision = Annotated[int, Field(ge=0, le=2**31 - 1)]
Note = Annotated[str, Field(max_length=2000)]
Limit = Annotated[int, Field(ge=1, le=LARGEST_PAGE)]
After = Annotated[str | None, Query(description="The `next` of the page before.", max_length=64)]
Text = Annotated[str, Query(max_length=300)]


class Strict(BaseModel):
    """Unknown fields are refused, and nothing is converted: a typo must not vanish."""

    model_config = ConfigDict(extra="forbid", strict=True)
