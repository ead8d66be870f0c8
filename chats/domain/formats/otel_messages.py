"""Messages of the GenAI conventions: role and typed parts (section 4, 7)."""

from __future__ import annotations

from typing import Any

from chats.domain.formats.drafts import Call, ChatDraft
from chats.domain.formats.parts import Content, read_part
from chats.domain.formats.values import label, mapping, mappings, shown, text


def is_parts_message(value: Any) -> bool:
    """Whether an object is a message of role and typed parts."""
    parts = mapping(value).get("parts")
    return (
        isinstance(parts, list)
        and isinstance(mapping(value).get("role"), str)
        and all(mapping(p).get("type") is not None for p in parts)
    )


def add_parts_message(draft: ChatDraft, message: dict[str, Any], **given: Any) -> None:
    """Add a message; each response of a tool is a tool message, and comes before the text beside it."""
    content, calls, unknown, results = Content(), list[Call](), list[str](), 0
    for part in mappings(message.get("parts")):
        kind = part.get("type")
        if kind in ("tool_call", "server_tool_call"):
            inner = mapping(part.get("server_tool_call")) or part
            name = label(part.get("name")) or label(inner.get("name")) or "unknown"
            calls.append(Call(label(part.get("id")), name, inner.get("arguments", part.get("arguments"))))
        elif kind in ("tool_call_response", "server_tool_call_response"):
            value = part.get("response", part.get("result", part.get("server_tool_call_response")))
            draft.add("tool", shown(value), name=label(part.get("name")), tool_call_id=label(part.get("id")))
            results += 1
        elif kind in ("reasoning", "thinking"):
            if told := text(part.get("content")) or text(part.get("text")):
                content.reasoning.append(told)
        elif kind in ("blob", "uri", "file", "media"):
            media = text(part.get("modality")) or (text(part.get("mime_type")) or "file").split("/")[0]
            known = {k: v for k, v in part.items() if k not in ("content", "type")}
            content.add_placeholder(media if media in ("image", "audio") else "file", known)
        elif isinstance(part.get("content"), str):
            content.add_text(part["content"])
        else:
            read_part(content, part, unknown)
    for name in unknown:
        draft.reading.report.note_unknown_field(f"parts[].{name}")
    if content.texts or content.reasoning or calls or not results:
        draft.add(
            label(message.get("role")) or "user",
            content,
            name=label(message.get("name")),
            calls=calls,
            finish=given.pop("finish", None) or text(message.get("finish_reason")) or None,
            **given,
        )
