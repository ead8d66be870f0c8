"""Small chats for tests of the walk: one short function a kind of message."""

from __future__ import annotations

from typing import Any

from chats.domain.exchange import from_exchange
from chats.domain.record import ChatRecord

Message = dict[str, Any]


def user(text: str = "Fix it", **details: Any) -> Message:
    return {"role": "user", "content": text, **details}


def nudge(code: str = "EAI-GOV-04", text: str = "x") -> Message:
    return user(text, nudge_code=code)


def answer(text: str = "Done.", **details: Any) -> Message:
    return {"role": "assistant", "content": text, **details}


def calls(*names: str | tuple[str, dict[str, Any]], text: str = "", first: int = 1, **details: Any) -> Message:
    """An answer with calls; ids are the numbers from `first` on."""
    made = []
    for number, call in enumerate(names, first):
        name, arguments = (call, {"n": number}) if isinstance(call, str) else call
        made.append({"id": str(number), "name": name, "arguments": arguments})
    return answer(text, tool_calls=made, **details)


def result(call: int | None = 1, content: str = "ok", **details: Any) -> Message:
    return {"role": "tool", "content": content, **({} if call is None else {"tool_call_id": str(call)}), **details}


def chat(
    *messages: Message, tools: list[str] | None = None, roles: dict[str, str] | None = None, **rest: Any
) -> ChatRecord:
    """A stored chat; `tools` None means that the offered tools are unknown."""
    row = {"format": "eleanor-chat", "version": 1, "chat": {"messages": list(messages), **(roles or {})}, **rest}
    if tools is not None:
        row["tools"] = tools
    return from_exchange(row, [])
