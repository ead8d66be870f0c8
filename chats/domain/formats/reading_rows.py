"""Going through records so that a bad one costs only itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from chats.domain.formats.documents import Document, Head, Row
from chats.domain.formats.drafts import Reading
from chats.domain.formats.problems import LimitPassed, Place, Problem, ReadingProblem
from chats.domain.record import ChatRecord

TYPE_ERRORS: Final = (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError)
Item = ChatRecord | Problem


def read_rows(
    rows: Iterable[Row | Problem], reading: Reading, convert: Callable[[Any], Iterable[Item]]
) -> Iterator[Item]:
    """What `convert` makes of each record, problems in their places. A passed limit ends the file."""
    for row in rows:
        if isinstance(row, Problem):
            yield row
            continue
        reading.place = row.place
        try:
            yield from convert(row.value)
        except ReadingProblem as problem:
            yield problem.at(row.place)
            if problem.stops_file:
                return
        except TYPE_ERRORS as error:
            yield unreadable(error, row.place)


def unreadable(error: Exception, place: Place) -> Problem:
    """A record whose shape no reader expected; only the kind of error is told, never what the record says."""
    return Problem("unreadable", place, {"reason": type(error).__name__})


def read_whole(document: Document, reading: Reading, convert: Callable[[list[Any]], Iterable[Item]]) -> Iterator[Item]:
    """One chat from all records of a file: `convert` gets them in a list; bad records are problems first."""
    values: list[Any] = []
    most = reading.options.limits.record_bytes
    for row in document.rows():
        if isinstance(row, Problem):
            yield Problem(row.code, row.place, row.args, chat_lost=False)
        else:
            values.append(row.value)
        if document.taken > most:
            yield LimitPassed("record_bytes", most).at(row.place)
            return
    yield from read_rows([Row(values, document.place)], reading, convert)


def share(head: Head, fits: Callable[[dict[str, Any]], bool]) -> float:
    """The share of the first records that fit; anything but an object doesn't."""
    if not head.rows:
        return 0.0
    return sum(isinstance(r, dict) and fits(r) for r in head.rows) / len(head.rows)
