"""The product's own exchange form (canonical-chat.md section 5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from chats.domain.exchange import FORMAT as EXCHANGE_FORMAT
from chats.domain.exchange import ExchangeError, from_exchange
from chats.domain.formats.documents import Document, Head
from chats.domain.formats.drafts import Reading, count_orphans
from chats.domain.formats.problems import LimitPassed, Place, Problem
from chats.domain.formats.reading_rows import Item, read_rows, share
from chats.domain.record import ChatRecord

FORMAT: Final = EXCHANGE_FORMAT


def recognise(head: Head) -> float:
    return share(head, lambda row: row.get("format") == FORMAT)


def read(document: Document, reading: Reading) -> Iterator[Item]:
    return read_rows(document.rows(), reading, lambda row: _convert(row, reading))


def _convert(row: Any, reading: Reading) -> Iterator[Item]:
    here = reading.place
    unknown: list[str] = []
    try:
        record = from_exchange(row, unknown)
    except ExchangeError as error:
        for i, fault in enumerate(error.faults):
            place = Place(here.member, here.line, here.index, fault.path)
            yield Problem(fault.code, place, fault.args, chat_lost=i == 0)
        return
    for field in unknown:
        reading.report.note_unknown_field(field)
    _check_limits(record, reading)
    count_orphans(
        record.chat.messages,
        record.details,
        reading.report,
        lambda i: Place(here.member, here.line, here.index, f"chat.messages[{i}]"),
    )
    yield record


def _check_limits(record: ChatRecord, reading: Reading) -> None:
    limits = reading.options.limits
    if len(record.chat.messages) > limits.messages:
        raise LimitPassed("messages", limits.messages)
    for i, message in enumerate(record.chat.messages):
        size = len(message.content)
        if size * 4 > limits.message_bytes and len(message.content.encode()) > limits.message_bytes:
            raise LimitPassed("message_bytes", limits.message_bytes, f"chat.messages[{i}]")
