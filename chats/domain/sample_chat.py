"""A short conversation with everything a prompt can hold: what wrappers are tried on where no chat is stored yet."""

from __future__ import annotations

from typing import Any, Final

from chats.domain.exchange import from_exchange
from chats.domain.record import ChatRecord

_WEATHER: Final = {
    "name": "get_weather",
    "description": "The weather at a place",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


def _call(id: str, city: str) -> dict[str, Any]:
    return {"id": id, "name": "get_weather", "arguments": {"city": city}}


SAMPLE_MESSAGES: Final = (
    {"role": "system", "content": "You plan trips. Answer in the language of the traveller."},
    {"role": "user", "content": "Is it warmer in Lyon or in Nice today?"},
    {
        "role": "assistant",
        "content": "I look both up.",
        "reasoning": "Two places, so two calls.",
        "tool_calls": [_call("a", "Lyon"), _call("b", "Nice")],
    },
    {"role": "tool", "tool_call_id": "a", "content": '{"degrees": 18}'},
    {"role": "tool", "tool_call_id": "b", "content": '{"degrees": 23}'},
    {"role": "assistant", "content": "Nice is warmer: 23 °C, against 18 °C in Lyon.", "finish_reason": "stop"},
    {"role": "user", "content": "Et demain ?\nJe pars tôt."},
    {"role": "assistant", "content": "Je n'ai que le temps d'aujourd'hui.", "finish_reason": "stop"},
)


def sample_record() -> ChatRecord:
    """A new copy of the conversation."""
    return from_exchange(
        {
            "format": "eleanor-chat",
            "version": 1,
            "tools": [_WEATHER],
            "chat": {"messages": [dict(message) for message in SAMPLE_MESSAGES]},
        }
    )
