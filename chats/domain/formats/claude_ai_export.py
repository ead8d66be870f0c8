"""Claude.ai export: conversations with `chat_messages` (section 4, 15)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Final

from chats.domain.formats.anthropic_messages import add_answer
from chats.domain.formats.documents import Document, Head
from chats.domain.formats.drafts import ChatDraft, Reading
from chats.domain.formats.parts import Content, read_part
from chats.domain.formats.problems import ReadingProblem
from chats.domain.formats.reading_rows import Item, read_rows, share
from chats.domain.formats.trees import chats_of, ends
from chats.domain.formats.values import label, mapping, mappings, moment, scalars, sequence, text

FORMAT: Final = "claude-ai-export"
_MESSAGE_KEYS: Final = frozenset(
    {"uuid", "text", "content", "sender", "index", "created_at", "updated_at", "truncated", "attachments", "files"}
    | {"files_v2", "sync_sources", "parent_message_uuid", "stop_reason", "input_mode", "chat_feedback"}
)


def recognise(head: Head) -> float:
    return share(head, lambda row: isinstance(row.get("chat_messages"), list))


def read(document: Document, reading: Reading) -> Iterator[Item]:
    return read_rows(document.rows(), reading, lambda row: _chats(mapping(row), reading))


def _parent(message: dict[str, Any]) -> str | None:
    return label(message.get("parent_message_uuid"))


def _chats(row: dict[str, Any], reading: Reading) -> Iterator[Item]:
    messages = mappings(row.get("chat_messages"))
    left_out = len(sequence(row.get("chat_messages"))) - len(messages)
    if left_out:
        reading.report.note_skipped("no_record", reading.place, left_out)
    if not messages:
        raise ReadingProblem("no_messages")
    nodes = {i: m for m in messages if (i := label(m.get("uuid"))) is not None}
    linked = len(nodes) == len(messages) and any(_parent(m) in nodes for m in messages)
    found = ends(nodes, _parent, label(row.get("current_leaf_message_uuid"))) if linked else []
    if found:
        yield from chats_of(found, reading, _parent, nodes, lambda path: _chat(row, path, reading))
    else:  # messages without links are one line
        yield _chat(row, messages, reading).record()


def _chat(row: dict[str, Any], messages: list[dict[str, Any]], reading: Reading) -> ChatDraft:
    draft = ChatDraft(reading, FORMAT)
    draft.external_id = label(row.get("uuid")) or label(row.get("conversation_id"))
    draft.title = text(row.get("name"))
    draft.metadata = scalars({k: row.get(k) for k in ("summary", "model", "created_at", "updated_at", "is_starred")})
    for message in messages:
        reading.report.note_unknown_fields(message, _MESSAGE_KEYS, "chat_messages[].")
        _add(draft, message)
    return draft


def _add(draft: ChatDraft, message: dict[str, Any]) -> None:
    created, ref = moment(message.get("created_at")), label(message.get("uuid"))
    blocks = mappings(message.get("content"))
    if not blocks and (told := text(message.get("text"))):
        blocks = [{"type": "text", "text": told}]
    elif blocks and not any(_says_something(b) for b in blocks) and (told := text(message.get("text"))):
        blocks = [*blocks, {"type": "text", "text": told}]
    sender = label(message.get("sender")) or "human"
    if sender == "assistant":
        add_answer(draft, _with_ids(blocks), finish=text(message.get("stop_reason")), created_at=created, ref=ref)
        return
    content, unknown = Content(), list[str]()
    for block in blocks:
        read_part(content, block, unknown)
    for name in unknown:
        draft.reading.report.note_unknown_field(f"chat_messages[].{name}")
    _add_files(content, message)
    draft.add(sender, content, created_at=created, ref=ref)


def _says_something(block: dict[str, Any]) -> bool:
    return block.get("type") != "text" or bool(block.get("text"))


def _with_ids(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Calls and results without ids are matched in order."""
    waiting: deque[str] = deque()
    found: list[dict[str, Any]] = []
    for n, block in enumerate(blocks):
        kind = block.get("type")
        if kind == "tool_use":
            block = {**block, "id": label(block.get("id")) or f"block-{n}"}
            waiting.append(block["id"])
        elif kind == "tool_result":
            call_id = label(block.get("tool_use_id"))
            if call_id is not None and call_id in waiting:
                waiting.remove(call_id)
            elif call_id is None and waiting:
                call_id = waiting.popleft()
            block = {**block, "tool_use_id": call_id}
        found.append(block)
    return found


def _add_files(content: Content, message: dict[str, Any]) -> None:
    """Attachments and files as placeholders; the extracted text stays out."""
    for attachment in mappings(message.get("attachments")):
        content.add_placeholder("file", {k: v for k, v in attachment.items() if k != "extracted_content"})
    for file in mappings(message.get("files")):
        content.add_placeholder("image" if file.get("file_kind") == "image" else "file", file)
