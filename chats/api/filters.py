"""The filters of the chat list, as endpoints take them in a body."""

from __future__ import annotations

from typing import Annotated, Any

from django.http import QueryDict
from pydantic import Field

from chats.queries.chats import filter_of, query_of
from eleanor_site.api_values import Day, Id, Strict

Word = Annotated[str, Field(max_length=300)]
# The words of the pages' addresses, where they differ from the API's.
_WORDS = {"language": "lang", "start": "from", "end": "to"}


class ChatFilters(Strict):
    """Which chats are meant; all of them without a filter. Words are those of `GET /chats`."""

    q: Word = Field(default="", description="Words in any inflection, and phrases in quotes.")
    language: Word = ""
    model: Word = ""
    format: Word = ""
    nudged: bool = False
    fired: Word = Field(default="", description="The code of a rule that fired, or a nudge that is recorded.")
    verdict: Word = Field(default="", description="right, wrong, unsure, missed, any or none.")
    job: Id | None = Field(default=None, alias="import", description="The id of an import.")
    start: Day | None = Field(default=None, alias="from", examples=["2026-03-01"])
    end: Day | None = Field(default=None, alias="to", examples=["2026-03-31"])

    def query(self) -> str:
        """The same as the query string of the list's page."""
        given = QueryDict(mutable=True)
        for name, value in self.model_dump(by_alias=False, exclude_none=True).items():
            given[_WORDS.get(name, "import" if name == "job" else name)] = _written(value)
        return query_of(given)


def filters_of(query: str) -> dict[str, Any]:
    """The filters that a query string of the list's page names, as `ChatFilters` has them."""
    found = filter_of(QueryDict(query))
    values: dict[str, Any] = {
        "q": found.text,
        "language": found.language,
        "model": found.model,
        "format": found.format,
        "nudged": found.nudged,
        "import": found.job,
        "from": found.start.isoformat() if found.start else None,
        "to": found.end.isoformat() if found.end else None,
        **dict(found.narrowed),
    }
    return {name: value for name, value in values.items() if value}


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "1" if value else ""
    return str(value)
