"""Messages of the Vercel SDK's core: role, and parts `tool-call` and `tool-result` in the content."""

from __future__ import annotations

from typing import Any

from chats.domain.formats.drafts import Call, ChatDraft
from chats.domain.formats.values import label, mapping, mappings, sequence, shown, text


def holds_core_parts(known: dict[str, Any]) -> bool:
    """A message of the Vercel SDK's core: parts `tool-call` and `tool-result`."""
    return any(mapping(p).get("type") in ("tool-call", "tool-result") for p in sequence(known.get("content")))


def add_core_message(draft: ChatDraft, known: dict[str, Any]) -> None:
    """Add a message of that form: its results as tool messages, then what it says and calls."""
    calls: list[Call] = []
    rest: list[Any] = []
    for part in mappings(known["content"]):
        if part.get("type") == "tool-call":
            name = label(part.get("toolName")) or "unknown"
            calls.append(Call(label(part.get("toolCallId")), name, part.get("input", part.get("args"))))
        elif part.get("type") == "tool-result":
            output = part.get("output", part.get("result"))
            kind = text(mapping(output).get("type")) or ""
            value = mapping(output).get("value", output)
            failed = part.get("isError") is True or kind.startswith("error")
            draft.add(
                "tool",
                shown(value),
                name=label(part.get("toolName")),
                tool_call_id=label(part.get("toolCallId")),
                status="error" if failed else "ok",
            )
        else:
            rest.append(part)
    if rest or calls:
        draft.add_parts(label(known.get("role")) or "assistant", rest, calls=calls)
