"""ShareGPT rows and Alpaca rows (section 4, 9 and 25)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Final

from chats.domain.formats.documents import Document, Head
from chats.domain.formats.drafts import Call, ChatDraft, Reading, offered_tools
from chats.domain.formats.openai_chat import add_message, call_of, identify
from chats.domain.formats.problems import ReadingProblem
from chats.domain.formats.reading_rows import Item, read_rows, share
from chats.domain.formats.values import label, mapping, mappings, scalars, sequence, shown, text

SHAREGPT: Final = "sharegpt"
ALPACA: Final = "alpaca"
_KEY_PAIRS: Final = (("from", "value"), ("role", "content"), ("user", "text"), ("from", "text"), ("role", "value"))
_CALL_ROLES: Final = frozenset({"function_call", "tool_call"})
_COLUMNS: Final = frozenset({"conversations", "tools", "system", "title"})
_ALPACA_COLUMNS: Final = frozenset({"instruction", "input", "output", "system", "history"})


def recognise_sharegpt(head: Head) -> float:
    return share(head, lambda row: _fits(row.get("conversations")))


def _fits(value: Any) -> bool:
    if isinstance(value, str):
        start = "".join(value[:2000].split())
        return start.startswith("[{") and '"from":' in start
    return isinstance(value, list) and bool(value) and all(_pair(mapping(m)) is not None for m in value[:20])


def _pair(message: dict[str, Any]) -> tuple[str, str] | None:
    """Which keys hold who speaks and what."""
    return next((p for p in _KEY_PAIRS if p[0] in message and p[1] in message), None)


def read_sharegpt(document: Document, reading: Reading) -> Iterator[Item]:
    return read_rows(document.rows(), reading, lambda row: [_conversation(mapping(row), reading)])


def _conversation(row: dict[str, Any], reading: Reading) -> Item:
    given = row.get("conversations")
    if isinstance(given, str):
        given = reading.cleaner.parse_if_json(given)
    if not isinstance(given, list):
        raise ReadingProblem("wrong_type", path="conversations", expected="list", found=type(given).__name__)
    draft = ChatDraft(reading, SHAREGPT)
    identify(draft, row)
    draft.title = text(row.get("title"))
    draft.tools = offered_tools(row.get("tools") or None, reading.cleaner)
    draft.metadata = scalars(row, without=_COLUMNS)
    if system := text(row.get("system")):
        draft.add("system", system)
    waiting: deque[str] = deque()
    for i, message in enumerate(given):
        pair = _pair(mapping(message))
        if pair is None:
            reading.report.note_skipped("no_record", reading.place)
            continue
        _add(draft, mapping(message), pair, waiting, i)
    return draft.record()


def _add(draft: ChatDraft, message: dict[str, Any], pair: tuple[str, str], waiting: deque[str], position: int) -> None:
    role = (label(message[pair[0]]) or "unknown").strip()
    value = message[pair[1]]
    ref = f"conversations/{position}"
    if role in _CALL_ROLES:
        index = draft.add("assistant", "", calls=_calls(draft, value), ref=ref)
        waiting.clear()
        waiting.extend(c.id for c in draft.details[index].tool_calls)
        return
    if role in ("observation", "tool", "function", "function_response", "tool_response"):
        call_id = label(message.get("tool_call_id")) or (waiting.popleft() if waiting else None)
        draft.add("tool", shown(value), tool_call_id=call_id, ref=ref)
        return
    if message.get("tool_calls"):
        index = add_message(draft, {**message, "role": role, "content": value})
        waiting.clear()
        waiting.extend(c.id for c in draft.details[index].tool_calls)
        return
    draft.add_parts(role, value, name=label(message.get("name")), ref=ref)


def _calls(draft: ChatDraft, value: Any) -> list[Call]:
    """`{name, arguments}` or a list of such, as JSON text; anything else is a call whose name isn't known."""
    parsed = draft.reading.cleaner.parse_if_json(value) if isinstance(value, str) else value
    found = mappings(parsed if isinstance(parsed, list) else [parsed])
    return [call_of(c) for c in found] or [Call(None, "unknown", shown(value))]


def recognise_alpaca(head: Head) -> float:
    if head.shape == "table":  # its header names the columns, however short a row is
        return 1.0
    return share(head, lambda row: isinstance(row.get("instruction"), str) and "output" in row)


def read_alpaca(document: Document, reading: Reading) -> Iterator[Item]:
    return read_rows(document.rows(), reading, lambda row: [_instruction(mapping(row), reading)])


def _instruction(row: dict[str, Any], reading: Reading) -> Item:
    asked, answer = row.get("instruction"), row.get("output")
    if isinstance(answer, list):
        answer = next(iter(answer), None)
    if not isinstance(asked, str) or not isinstance(answer, str):
        path = "instruction" if not isinstance(asked, str) else "output"
        raise ReadingProblem("wrong_type", path=path, expected="text", found=type(row.get(path)).__name__)
    draft = ChatDraft(reading, ALPACA)
    identify(draft, row)
    draft.metadata = scalars(row, without=_ALPACA_COLUMNS)
    if system := text(row.get("system")):
        draft.add("system", system)
    history = row.get("history")
    if isinstance(history, str):
        history = reading.cleaner.parse_if_json(history)
    for pair in sequence(history):
        if isinstance(pair, list) and len(pair) == 2:
            draft.add("user", shown(pair[0]))
            draft.add("assistant", shown(pair[1]))
        else:
            reading.report.note_skipped("no_record", reading.place)
    given = text(row.get("input"))
    draft.add("user", f"{asked}\n\n{given}" if given else asked)
    draft.add("assistant", answer)
    return draft.record()
