"""What servers do to a chat before the template sees it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chats.domain.chat_templates.preparing import plain


@dataclass(frozen=True, slots=True)
class ServerHabits:
    """What servers do to a chat before the template sees it; each is a switch beside the preview."""

    parse_arguments: bool = False
    join_text_parts: bool = False
    empty_null_content: bool = False


def as_served(messages: Sequence[Mapping[str, Any]], habits: ServerHabits) -> list[dict[str, Any]]:
    """A copy of the messages after these habits.

    Arguments given as JSON text become the object (empty text: an empty one; other text stays), a content that is
    a list of text parts only becomes their texts joined by line breaks (vLLM), and a null content an empty string.
    """
    served: list[dict[str, Any]] = plain(messages)
    for message in served:
        if habits.parse_arguments:
            _parse_arguments(message)
        content = message.get("content")
        if habits.join_text_parts and isinstance(content, list) and all(_is_text_part(p) for p in content):
            message["content"] = "\n".join(p if isinstance(p, str) else p["text"] for p in content)
        if habits.empty_null_content and "content" in message and content is None:
            message["content"] = ""
    return served


def _is_text_part(part: Any) -> bool:
    return isinstance(part, str) or (isinstance(part, dict) and isinstance(part.get("text"), str))


def _parse_arguments(message: dict[str, Any]) -> None:
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else []:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("arguments"), str):
            continue
        try:
            function["arguments"] = json.loads(function["arguments"]) if function["arguments"] else {}
        except (ValueError, RecursionError):
            continue
