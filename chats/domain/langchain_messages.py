"""Canonical chats as LangChain messages (canonical-chat.md section 3). Needs the extra `langchain`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from chats.domain.details import MessageDetails, ToolCall
from chats.domain.messages import ROLE_TOOL, CanonicalChat, CanonicalMessage

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage


def to_langchain(chat: CanonicalChat, details: Sequence[MessageDetails] | None = None) -> list[BaseMessage]:
    """One LangChain message for each canonical one, in order; calls and result states come from the details.

    Raises ImportError when LangChain isn't installed, and ValueError for a tool result without `tool_call_id`.
    """
    try:
        import langchain_core.messages  # noqa: F401
    except ImportError as error:
        raise ImportError("LangChain is missing: install the extra 'langchain' (langchain-core)") from error
    known = details if details is not None else [MessageDetails()] * len(chat.messages)
    return [_message(chat, i, m, d) for i, (m, d) in enumerate(zip(chat.messages, known, strict=True))]


def _message(chat: CanonicalChat, index: int, message: CanonicalMessage, details: MessageDetails) -> BaseMessage:
    from langchain_core.messages import AIMessage, ChatMessage, HumanMessage, SystemMessage, ToolMessage

    content = message.content
    named = {} if message.name is None else {"name": message.name}
    if message.fewshot_example or message.role == chat.system_role:
        return SystemMessage(content=content, **named)
    if message.role == chat.human_role:
        return HumanMessage(content=content, **named)
    if message.role == chat.ai_role:
        return AIMessage(
            content=content,
            tool_calls=[_call(c) for c in details.tool_calls if c.arguments is not None],
            invalid_tool_calls=[_invalid_call(c) for c in details.tool_calls if c.arguments is None],
            **named,
        )
    if message.role != ROLE_TOOL:
        return ChatMessage(content=content, role=message.role, **named)
    if message.tool_call_id is None:
        raise ValueError(f"message {index} has the role tool but no tool_call_id")
    status = "error" if details.result_status == "error" else "success"
    return ToolMessage(content=content, tool_call_id=message.tool_call_id, status=status, **named)


def _call(call: ToolCall) -> dict[str, object]:
    return {"name": call.name, "args": call.arguments, "id": call.id, "type": "tool_call"}


def _invalid_call(call: ToolCall) -> dict[str, object]:
    return {
        "name": call.name,
        "args": call.arguments_raw,
        "id": call.id,
        "error": None,
        "type": "invalid_tool_call",
    }
