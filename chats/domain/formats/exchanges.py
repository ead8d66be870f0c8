"""Requests and responses of one run, in order: each request repeats the history so far (section 4, 1 and 2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from chats.domain.formats.drafts import Reading
from chats.domain.formats.parts import read_content
from chats.domain.formats.problems import Place, ReadingProblem
from chats.domain.formats.reading_rows import Item
from chats.domain.formats.values import mapping, mappings, sequence
from chats.domain.record import ChatRecord

Complete = Callable[[dict[str, Any], Any], Iterable[Item]]


class Exchanges:
    """Keeps the last request of a run: it holds the longest history. One that starts otherwise is another chat."""

    def __init__(self, reading: Reading, key: str, complete: Complete) -> None:
        """`key` names the list of messages in a request; `complete` makes a chat of a request and its response."""
        self._reading = reading
        self._key = key
        self.complete = complete
        self._request: dict[str, Any] | None = None
        self._response: Any = None
        self._place: Place = reading.place

    def add(self, request: dict[str, Any], response: Any) -> Iterator[Item]:
        """Take in the next exchange; gives the chat before it when this one doesn't continue it."""
        if self._request is not None and not begins_with(request.get(self._key), self._request.get(self._key)):
            yield from self.finish()
        self._request, self._response, self._place = request, response, self._reading.place

    def finish(self) -> Iterator[Item]:
        if self._request is None:
            return
        here, self._reading.place = self._reading.place, self._place
        request, self._request = self._request, None
        try:
            yield from self.complete(request, self._response)
        except ReadingProblem as problem:
            yield problem.at(self._place)
        self._reading.place = here


def run_of_exchanges(pairs: Any, reading: Reading, key: str, complete: Complete) -> Iterator[Item]:
    """The chat of a list of `{request, response}`. What doesn't continue in the last one comes before it, marked."""
    run = Exchanges(reading, key, complete)
    for pair in reading.objects(pairs):
        if not mapping(pair.get("request")).keys() & {key, "prompt"}:
            reading.report.note_skipped("no_chat_request", reading.place)
            continue
        for item in run.add(mapping(pair.get("request")), pair.get("response")):
            yield set_aside(item, "other_exchange", reading)
    yield from run.finish()


def with_key(pairs: Any, key: str) -> list[dict[str, Any]]:
    """The pairs whose request holds messages: a recording may hold uploads and other requests beside them."""
    return [p for p in mappings(pairs) if key in mapping(p.get("request"))]


def set_aside(item: Item, relation: str, reading: Reading) -> Item:
    """Mark a chat as a by-product of another one: a sub-agent, a branch, a part before a cut."""
    if isinstance(item, ChatRecord):
        item.metadata["relation"] = relation
        reading.report.side_chats[relation] += 1
    return item


def begins_with(later: Any, earlier: Any) -> bool:
    """Whether a list of messages starts with another, by role and text."""
    first, second = sequence(earlier), sequence(later)
    pairs = zip(first, second, strict=False)
    return len(second) >= len(first) and all(a == b or _gist(a) == _gist(b) for a, b in pairs)


def _gist(message: Any) -> tuple[Any, str]:
    known = mapping(message)
    content = known.get("content", known.get("parts", known.get("output")))
    return known.get("role"), read_content(content).text.strip()
