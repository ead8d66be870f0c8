"""When two imported chats are the same chat, and when a chat has changed (import-formats.md section 5).

The order of keys in objects is no difference: the same file written by another program is the same file.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from chats.domain.details import ToolCall
from chats.domain.record import ChatRecord


def identity_key(record: ChatRecord) -> str:
    """What identifies a chat within a tenant and a format: its external id, or the hash of its messages.

    The messages decide where there is no external id or where it names a task that many runs share.
    """
    if record.external_id is None or record.identity_by_content:
        return "content:" + content_hash(record)
    return "id:" + record.external_id


def content_hash(record: ChatRecord) -> str:
    """SHA-256, in hexadecimal, of the messages with their calls."""
    digest = hashlib.sha256()
    for message, details in zip(record.chat.messages, record.details, strict=True):
        _add(
            digest,
            [
                message.role,
                message.content,
                message.name,
                message.tool_call_id,
                message.fewshot_example,
                [_call(c) for c in details.tool_calls],
            ],
        )
    return digest.hexdigest()


def state_hash(record: ChatRecord) -> str:
    """SHA-256 of messages, details and chat data: a chat with the same identity and another state is a new version.

    Where a message stood in the file is left out, since the same chat may come again in another file.
    """
    digest = hashlib.sha256(content_hash(record).encode())
    for details in record.details:
        _add(digest, details.model_dump(mode="json", exclude={"tool_calls", "source_ref"}, exclude_defaults=True))
    chat = record.chat
    _add(digest, [chat.ai_name, chat.ai_role, chat.human_role, chat.system_role])
    _add(digest, record.model_dump(mode="json", exclude={"chat", "details", "identity_by_content"}))
    return digest.hexdigest()


def _call(call: ToolCall) -> list[Any]:
    return [call.id, call.name, call.arguments, call.arguments_raw]


def _add(digest: Any, value: Any) -> None:
    digest.update(json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode())
    digest.update(b"\n")
