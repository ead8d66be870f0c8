"""OpenAI Responses: item lists, requests with `input`, responses with `output`, chains of both (section 4, 11)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from chats.domain.formats.documents import Document, Head
from chats.domain.formats.drafts import ChatDraft, Reading, offered_tools
from chats.domain.formats.exchanges import begins_with, set_aside
from chats.domain.formats.problems import Problem, ReadingProblem
from chats.domain.formats.reading_rows import Item, read_rows, share
from chats.domain.formats.response_items import ItemReader, is_item
from chats.domain.formats.values import at, label, mapping, mappings, moment, sequence, text

FORMAT: Final = "openai-responses"
_MARKS: Final = frozenset({"function_call", "function_call_output", "reasoning"})
_SETTINGS: Final = ("model", "temperature", "top_p", "max_output_tokens")


def recognise(head: Head) -> float:
    if head.rows and all(_is_entry(r) for r in head.rows):
        return 1.0 if any(is_item(r) for r in head.rows) else 0.0
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
    return isinstance(value, list) and bool(value) and all(map(_is_entry, value)) and any(map(is_item, value))


def _fits(row: dict[str, Any]) -> bool:
    if "exchanges" in row:
        pairs = mappings(row["exchanges"])
        return bool(pairs) and all(_is_request(mapping(p.get("request"))) for p in pairs)
    if isinstance(row.get("request"), dict):
        return _is_request(row["request"])
    if row.get("object") == "response" or _is_item_list(row.get("output")):
        return True
    return _is_request(row) or _is_item_list(row.get("items"))


def _is_request(row: dict[str, Any]) -> bool:
    given = row.get("input")
    if isinstance(given, str):
        return "model" in row or "previous_response_id" in row
    if given is None:
        return "previous_response_id" in row or "conversation" in row
    return isinstance(given, list) and (_is_item_list(given) or ("model" in row and all(map(_is_entry, given))))


def read(document: Document, reading: Reading) -> Iterator[Item]:
    if document.head.rows and all(_is_entry(r) for r in document.head.rows):
        yield from _read_items_file(document, reading)
        return
    run = _Run(reading)
    yield from read_rows(document.rows(), reading, lambda row: _convert(row, reading, run))
    yield from run.finish()


def _read_items_file(document: Document, reading: Reading) -> Iterator[Item]:
    draft = ChatDraft(reading, FORMAT)
    items = ItemReader(draft)

    def add(row: Any) -> Iterator[Item]:
        items.add(mapping(row))
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
        for pair in mappings(row["exchanges"]):
            for item in own.add(mapping(pair.get("request")), pair.get("response")):
                yield set_aside(item, "other_exchange", reading)
        yield from own.finish()
    elif isinstance(row.get("request"), dict):
        yield from run.add(row["request"], row.get("response"))
    elif isinstance(row.get("items"), list) and "input" not in row:
        yield from _completed({**row, "input": row["items"]}, None, reading)
    elif isinstance(row.get("output"), list) and ("input" not in row or isinstance(row.get("input"), dict)):
        yield from run.add({"previous_response_id": row.get("previous_response_id")}, row)
    else:
        yield from run.add(row, row.get("response", {"output": row["output"]} if "output" in row else None))


class _Run:
    """Requests in order, joined by history or by `previous_response_id` or the id of a kept conversation."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._request: dict[str, Any] | None = None
        self._response: Any = None
        self._place = reading.place

    def add(self, request: dict[str, Any], response: Any) -> Iterator[Item]:
        given = _entries(request.get("input"))
        if self._request is not None:
            earlier = _entries(self._request.get("input"))
            previous = label(request.get("previous_response_id"))
            known = mapping(self._response)
            same_conversation = (
                previous is None
                and _conversation(request) is not None
                and _conversation(request) == _conversation(self._request)
            )
            if (previous is not None and previous == label(known.get("id"))) or same_conversation:
                given = [*earlier, *sequence(known.get("output")), *given]
            elif previous is not None or not begins_with(given, earlier):
                yield from self.finish()
        self._request = {**request, "input": given}
        self._response, self._place = response, self._reading.place
        known = mapping(response)
        if "output" not in known and known:
            self._reading.report.note_unknown_field("response")

    def finish(self) -> Iterator[Item]:
        if self._request is None:
            return
        here, self._reading.place = self._reading.place, self._place
        request, self._request = self._request, None
        try:
            yield from _completed(request, self._response, self._reading)
        except ReadingProblem as problem:
            yield problem.at(self._place)
        self._reading.place = here


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
