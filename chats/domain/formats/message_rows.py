"""Training rows: OpenAI fine-tuning files and Hugging Face data sets with a column of messages (section 4, 1 and 2)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from chats.domain.formats.documents import Document, Head
from chats.domain.formats.drafts import ChatDraft, Reading
from chats.domain.formats.marks import is_anthropic_request, is_bare_trace, is_run_of_another
from chats.domain.formats.openai_chat import TASK_IDS, add_message, describe, has_messages, is_message
from chats.domain.formats.problems import ReadingProblem
from chats.domain.formats.reading_rows import Item, read_rows, share
from chats.domain.formats.values import mapping, sequence, text

FINETUNE: Final = "openai-finetune"
HF: Final = "hf-messages"
COLUMNS: Final = ("messages", "conversation", "conversations", "chat", "trajectory", "traj", "history")
_FINETUNE_KEYS: Final = frozenset({"messages", "tools", "functions", "parallel_tool_calls", "weight", *TASK_IDS})
_OTHER_ROWS: Final = frozenset({"simulations", "chat_messages", "projectHash"})
_LIST_OF_OBJECTS: Final = re.compile(r"\s*\[\s*\{")
_LIVE_TRAJ: Final = frozenset({"reward", "info", "trial"})


def recognise_finetune(head: Head) -> float:
    return share(head, _fits_finetune)


def _fits_finetune(row: dict[str, Any]) -> bool:
    if row.keys() - _FINETUNE_KEYS or not has_messages(row):
        return False
    return not _has_typed_values(row) and not is_bare_trace(row)


def _has_typed_values(row: dict[str, Any]) -> bool:
    """Parts `{type, value}` are a habit of data sets, as are tools as JSON text."""
    if isinstance(row.get("tools"), str):
        return True
    return any("value" in mapping(p) for m in row["messages"] for p in sequence(m.get("content")))


def recognise_hf(head: Head) -> float:
    return share(head, _fits)


def _fits(row: dict[str, Any]) -> bool:
    if ("trajectory" in row and "history" in row) or row.keys() & _OTHER_ROWS or is_run_of_another(row):
        return False
    if isinstance(row.get("history"), dict) or isinstance(row.get("mapping"), dict):
        return False
    column = column_of(row)
    if column is None or (column == "traj" and row.keys() & _LIVE_TRAJ):
        return False
    if column == "messages" and (is_bare_trace(row) or is_anthropic_request(row)):
        return False
    value = row[column]
    if isinstance(value, str):
        return _LIST_OF_OBJECTS.match(value) is not None and '"role"' in value[:2000]
    return bool(value) and sum(_is_row_message(m) for m in value[:20]) * 2 > len(value[:20])


def _is_row_message(value: Any) -> bool:
    if is_message(value):
        return True
    return (
        isinstance(value, dict) and isinstance(value.get("role"), str) and ("text" in value or "system_prompt" in value)
    )


def column_of(row: dict[str, Any]) -> str | None:
    """The most trusted column that can hold messages."""
    for column in COLUMNS:
        value = row.get(column)
        if isinstance(value, list) and value and isinstance(value[0], dict):
            return column
        if isinstance(value, str) and value.lstrip().startswith("["):
            return column
    return None


def reader(source_format: str) -> Callable[[Document, Reading], Iterator[Item]]:
    """The reader of one of the two: they differ in name only."""

    def read(document: Document, reading: Reading) -> Iterator[Item]:
        return read_rows(document.rows(), reading, lambda row: [_chat(row, reading, source_format)])

    return read


def _chat(row: Any, reading: Reading, source_format: str) -> Item:
    if isinstance(row, list):
        row = {"messages": row}
    if not isinstance(row, dict):
        raise ReadingProblem("wrong_type", expected="object", found=type(row).__name__)
    column = column_of(row)
    if column is None:
        raise ReadingProblem("no_messages")
    messages = row[column]
    if isinstance(messages, str):
        messages = reading.cleaner.parse_if_json(messages)
    if not isinstance(messages, list):
        raise ReadingProblem("wrong_type", path=column, expected="list", found=type(messages).__name__)
    draft = ChatDraft(reading, source_format)
    describe(draft, row, column)
    if isinstance(row.get("system"), str) and row["system"]:
        draft.add("system", row["system"])
    for i, message in enumerate(messages):
        if not isinstance(message, dict):
            raise ReadingProblem("wrong_type", path=f"{column}[{i}]", expected="object", found=type(message).__name__)
        add_message(draft, _with_content(message))
    return draft.record()


def _with_content(message: dict[str, Any]) -> dict[str, Any]:
    """Rows may keep the text in `text` or, for the first message, in `system_prompt`, and a weight for training."""
    changed = {
        k: v for k, v in message.items() if k not in ("text", "system_prompt", "loss_weight", "mask", "cutoff_date")
    }
    if changed.get("content") is None:
        changed["content"] = text(message.get("text")) or text(message.get("system_prompt"))
    if message.get("from") is not None and "role" not in message:
        changed["role"] = message["from"]
    return changed
