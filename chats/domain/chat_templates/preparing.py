"""What happens to messages, tools and documents before a template sees them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from chats.domain.chat_templates.requests import REASONING_FIELDS, RenderRequest


def plain(value: Any) -> Any:
    """A copy of plain JSON values only; what is none becomes its type's name, as in transformers."""
    if value is None or type(value) in (str, int, float, bool):
        return value
    if isinstance(value, Mapping):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    return f"<{type(value).__name__}>"


def unchanged(value: Any) -> Any:
    return value


def checked_messages(request: RenderRequest, copied: Callable[[Any], Any]) -> list[dict[str, Any]]:
    current = request.profile == "current"
    if not request.messages:
        if current:
            raise ValueError("Cannot apply chat template to an empty conversation. Provide at least one message.")
        # What the older versions stumble over, in their words.
        raise IndexError("list index out of range")
    for message in request.messages:
        if type(message) is not dict and not isinstance(message, Mapping):
            raise TypeError(f"Chat messages should be dicts, dataclasses or pydantic models, but got {message!r}.")
    if request.continue_final_message and request.add_generation_prompt:
        raise ValueError(
            "continue_final_message and add_generation_prompt are not compatible. Use continue_final_message when you "
            "want the model to continue the final message, and add_generation_prompt when you want to add a header "
            "that will prompt it to start a new assistant message instead."
        )
    messages: list[dict[str, Any]] = copied(request.messages)
    if not current or request.keep_nulls:
        return messages
    return [_without_nulls(m) if None in m.values() else m for m in messages]


def _without_nulls(message: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in message.items() if value is not None}


def checked_offers(request: RenderRequest, copied: Callable[[Any], Any]) -> tuple[Any, Any]:
    tools, documents = copied(request.tools), copied(request.documents)
    if tools is not None and not all(isinstance(tool, dict) for tool in tools):
        raise ValueError(
            "Tools should either be a JSON schema, or a callable function with type hints and a docstring suitable "
            "for auto-conversion to a schema."
        )
    if documents is not None and not all(isinstance(document, dict) for document in documents):
        raise TypeError("Documents should be a list of dicts with 'title' and 'text' keys!")
    return tools, documents


def with_reasoning(message: dict[str, Any]) -> dict[str, Any]:
    """The reasoning under the names that templates read; the key order shows when a template prints a message."""
    if message.keys().isdisjoint(REASONING_FIELDS):
        return message
    reasoning = next((message[name] for name in REASONING_FIELDS if message.get(name) is not None), None)
    if reasoning is None:
        return message
    return {"thinking": reasoning, **message, "reasoning_content": reasoning}
