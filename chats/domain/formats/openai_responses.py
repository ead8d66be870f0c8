"""OpenAI Responses: item lists, requests with `input`, responses with `output`, chains of both (section 4, 11)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from chats.domain.formats.documents import Document, Head
from chats.domain.formats.drafts import ChatDraft, Reading, offered_tools
from chats.domain.formats.exchanges import begins_with, set_aside
from chats.domain.formats.problems import LimitPassed, Place, Problem, ReadingProblem
from chats.domain.formats.reading_rows import Item, read_rows, read_whole, share
from chats.domain.formats.response_items import ItemReader, is_item
from chats.domain.formats.streams import is_stream_of, response_of, unwrapped, whole_response
from chats.domain.formats.values import at, label, mapping, mappings, moment, sequence, text
from chats.domain.record import ChatRecord

FORMAT: Final = "openai-responses"
_MARKS: Final = frozenset({"function_call", "function_call_output", "reasoning"})
_KEPT_OPEN: Final = 256
_SETTINGS: Final = ("model", "temperature", "top_p", "max_output_tokens")


def recognise(head: Head) -> float:
    if head.rows and _is_item_list(head.rows):
        return 1.0
    if head.shape != "object" and is_stream_of(head.rows, "response."):
        return 1.0
    lists = [r for r in head.rows if isinstance(r, list)]
    if lists and len(lists) == len(head.rows):
        return sum(_is_item_list(r) for r in lists) / len(lists)
    return share(head, _fits)


def _is_entry(value: Any) -> bool:
    """An item, or an easy message without a type."""
    return is_item(value) or (
        isinstance(value, dict) and "role" in value and "content" in value and "type" not in value
    )


def _is_item_list(value: Any) -> bool:
    """Most are items or easy messages, and one of them is an item."""
    if not isinstance(value, list) or not any(map(is_item, value)):
        return False
    return sum(map(_is_entry, value)) * 2 > len(value)


def _fits(row: dict[str, Any]) -> bool:
    if "exchanges" in row:
        pairs = mappings(row["exchanges"])
        if any(mapping(p.get("request")).keys() & {"messages", "contents"} for p in pairs):
            return False
        return any(map(_is_exchange, pairs))
    if isinstance(row.get("request"), dict):
        return _is_request(row["request"])
    if isinstance(row.get("body"), dict):
        return _is_request(row["body"])
    if mapping(unwrapped(row.get("response"))).get("object") == "response":
        return True
    if row.get("object") == "response" or _is_item_list(row.get("output")):
        return True
    return _is_request(row) or _is_item_list(row.get("items"))


def _fits_alone(row: Any) -> bool:
    """Whether a record is a request or a response by itself, not an item of one."""
    return isinstance(row, dict) and not _is_entry(row) and _fits(row)


def _is_exchange(pair: dict[str, Any]) -> bool:
    """Whether a pair is about an answer: asks for one, or brings one that was asked for before."""
    known = mapping(unwrapped(pair.get("response")))
    return _is_request(mapping(pair.get("request"))) or known.get("object") == "response"


def _is_request(row: dict[str, Any]) -> bool:
    given = row.get("input")
    if isinstance(given, str):
        return "model" in row or "previous_response_id" in row
    if given is None:
        return "previous_response_id" in row or "conversation" in row
    return isinstance(given, list) and (_is_item_list(given) or ("model" in row and all(map(_is_entry, given))))


def read(document: Document, reading: Reading) -> Iterator[Item]:
    rows = document.head.rows
    if document.head.shape != "object" and is_stream_of(rows, "response."):
        yield from read_whole(document, reading, lambda events: _completed({}, response_of(mappings(events)), reading))
        return
    if _is_item_list(rows) and not any(map(_fits_alone, rows)):
        yield from _read_items_file(document, reading)
        return
    run = _Run(reading)
    yield from read_rows(document.rows(), reading, lambda row: _convert(row, reading, run))
    yield from run.finish()


def _read_items_file(document: Document, reading: Reading) -> Iterator[Item]:
    draft = ChatDraft(reading, FORMAT)
    items = ItemReader(draft)

    def add(row: Any) -> Iterator[Item]:
        for item in reading.objects([row]):
            items.add(item)
        return iter(())

    for item in read_rows(document.rows(), reading, add):
        yield Problem(item.code, item.place, item.args, chat_lost=False) if isinstance(item, Problem) else item
    items.close()
    reading.place = document.place
    yield draft.record() if len(draft) else Problem("no_messages", document.place)


def _convert(row: Any, reading: Reading, run: _Run) -> Iterator[Item]:
    if isinstance(row, list):
        yield from _completed({"input": row}, None, reading)
        return
    if not isinstance(row, dict):
        raise ReadingProblem("wrong_type", expected="object", found=type(row).__name__)
    if "exchanges" in row:
        own = _Run(reading)
        for pair in reading.objects(row["exchanges"]):
            if not _is_exchange(pair):
                reading.report.note_skipped("no_chat_request", reading.place)
                continue
            for item in own.add(mapping(pair.get("request")), pair.get("response")):
                yield set_aside(item, "other_exchange", reading)
        rest = list(own.finish())
        for item in rest[:-1]:
            yield set_aside(item, "other_exchange", reading)
        yield from rest[-1:]
    elif isinstance(row.get("request"), dict):
        yield from run.add(row["request"], row.get("response"))
    elif isinstance(row.get("body"), dict):
        yield from run.add(row["body"], row.get("response"))
    elif isinstance(row.get("items"), list) and "input" not in row:
        yield from _completed({**row, "input": row["items"]}, None, reading)
    elif isinstance(row.get("output"), list) and ("input" not in row or isinstance(row.get("input"), dict)):
        yield from run.add({"previous_response_id": row.get("previous_response_id")}, row)
    else:
        yield from run.add(row, row.get("response", {"output": row["output"]} if "output" in row else None))


@dataclass(slots=True)
class _Open:
    """A chat that later requests may go on with: its input so far, and the answer that isn't part of it yet."""

    request: dict[str, Any]
    response: Any
    place: Place
    entries: list[Any]


class _Run:
    """Requests in order, joined by `previous_response_id`, by the id of a kept conversation, or by history.

    Chains may run side by side, so chats wait for what goes on with them: the last hundreds, so that memory is bounded.
    """

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._open: dict[int, _Open] = {}
        self._by_response: dict[str, int] = {}
        self._ends: dict[str, int] = {}
        self._by_conversation: dict[str, int] = {}
        self._last: int | None = None
        self._count = 0

    def add(self, request: dict[str, Any], response: Any) -> Iterator[Item]:
        response = whole_response(response, self._reading.cleaner, response_of)
        given = _entries(request.get("input"))
        known = mapping(response)
        if "output" not in known and response not in (None, {}):
            self._reading.report.note_unknown_field("response")
        if not given and (polled := self._by_response.get(label(known.get("id")) or "")) in self._open:
            # An answer that was waited for: the same one again, further on.
            self._open[polled].response = response
            return
        earlier = self._earlier(request, given)
        if earlier is None:
            self._count += 1
            number, chat = self._count, _Open(request, response, self._reading.place, list(given))
        else:
            number, chat = earlier, self._open[earlier]
            previous = label(request.get("previous_response_id"))
            if previous is not None and previous != label(mapping(chat.response).get("id")):
                yield from self._other_branch(chat)
                del chat.entries[self._ends[previous] :]
                chat.response = None
            self._open[number] = self._open.pop(number)
            if label(request.get("previous_response_id")) is not None or _conversation(request) is not None:
                chat.entries += [*sequence(mapping(chat.response).get("output")), *given]
            else:
                chat.entries = list(given)
            chat.request, chat.response, chat.place = request, response, self._reading.place
        if len(chat.entries) > 2 * self._reading.options.limits.messages:
            raise LimitPassed("messages", self._reading.options.limits.messages)
        self._open[number] = chat
        self._last = number
        for ids, own in ((self._by_response, label(known.get("id"))), (self._by_conversation, _conversation(request))):
            if own is not None:
                ids[own] = number
        if (own := label(known.get("id"))) is not None:
            self._ends[own] = len(chat.entries) + len(sequence(known.get("output")))
        while len(self._open) > _KEPT_OPEN:
            yield from self._close(next(iter(self._open)))

    def _earlier(self, request: dict[str, Any], given: list[Any]) -> int | None:
        """The chat that a request goes on with."""
        previous, conversation = label(request.get("previous_response_id")), _conversation(request)
        if previous is not None:
            number = self._by_response.get(previous)
            return number if number in self._open else None
        if conversation is not None:
            number = self._by_conversation.get(conversation)
            return number if number in self._open else None
        last = self._open.get(self._last) if self._last is not None else None
        return self._last if last is not None and begins_with(given, _entries(last.request.get("input"))) else None

    def _other_branch(self, chat: _Open) -> Iterator[Item]:
        """What was asked after an answer before it was asked again from there: the later one counts."""
        self._reading.report.other_branches += 1
        if self._reading.options.all_branches:
            for item in _completed({**chat.request, "input": chat.entries}, chat.response, self._reading):
                if isinstance(item, ChatRecord):
                    item.external_id = None
                yield set_aside(item, "branch", self._reading)

    def _close(self, number: int) -> Iterator[Item]:
        chat = self._open.pop(number)
        here, self._reading.place = self._reading.place, chat.place
        try:
            yield from _completed({**chat.request, "input": chat.entries}, chat.response, self._reading)
        except ReadingProblem as problem:
            yield problem.at(chat.place)
        self._reading.place = here

    def finish(self) -> Iterator[Item]:
        for number in list(self._open):
            yield from self._close(number)


def _conversation(request: dict[str, Any]) -> str | None:
    given = request.get("conversation")
    return label(given) or label(mapping(given).get("id"))


def _entries(value: Any) -> list[Any]:
    """The input as items: text alone is a user message."""
    if isinstance(value, str):
        return [{"type": "message", "role": "user", "content": value}]
    return sequence(value)


def _completed(request: dict[str, Any], response: Any, reading: Reading) -> Iterator[Item]:
    draft = ChatDraft(reading, FORMAT)
    items = ItemReader(draft)
    answer = mapping(response)
    draft.tools = offered_tools(request.get("tools", answer.get("tools")), reading.cleaner)
    draft.external_id = label(request.get("id")) or _conversation(request)
    for key in _SETTINGS:
        value = request.get(key, answer.get(key))
        if isinstance(value, (str, int, float)):
            draft.metadata[key] = value
    instructions = request.get("instructions") or answer.get("instructions")
    if isinstance(instructions, (str, list)) and instructions:
        draft.add_parts("system", instructions)
    items.model(text(request.get("model")))
    entries = _entries(request.get("input"))
    known_ids = {i for e in entries if (i := label(mapping(e).get("id")))}
    for item in mappings(entries):
        if item.get("type") != "item_reference" or label(item.get("id")) not in known_ids:
            items.add(item)
    previous = label(request.get("previous_response_id"))
    if previous is not None and not _joined(entries):
        reading.report.note_problem(Problem("parent_missing", reading.place, {"id": previous}, chat_lost=False))
    if answer:
        _add_response(items, answer)
    items.close()
    yield draft.record()


def _joined(entries: list[Any]) -> bool:
    """Whether an earlier answer of the chain stands before the input."""
    return any(mapping(e).get("role") == "assistant" or text(mapping(e).get("type")) in _MARKS for e in entries)


def _add_response(items: ItemReader, answer: dict[str, Any]) -> None:
    items.model(text(answer.get("model")))
    for item in mappings(answer.get("output")):
        items.add(item, moment(answer.get("created_at")))
    reason = text(at(answer, "incomplete_details", "reason"))
    status = text(answer.get("status"))
    if status == "incomplete":
        items.finish_reason(reason or status)
    elif status in ("failed", "cancelled", "completed"):
        items.finish_reason(status)
    items.usage(mapping(answer.get("usage")))
