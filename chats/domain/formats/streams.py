"""Streamed answers put together again: chunks and events of the chat, Messages and Responses APIs (section 1).

Logs keep a stream as a list of its events or as the text of the response, line for line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from chats.domain.formats.cleaning import Cleaner
from chats.domain.formats.values import at, mapping, mappings, sequence, text

CHUNK: Final = "chat.completion.chunk"
_DATA: Final = "data:"


def events_of(value: Any, cleaner: Cleaner) -> list[dict[str, Any]]:
    """The events of a streamed response, which may be the text of server-sent events; empty for anything else."""
    if isinstance(value, list):
        return mappings(value)
    if not isinstance(value, str) or _DATA not in value[:2000]:
        return []
    lines = (line.strip().removeprefix(_DATA).strip() for line in value.splitlines() if line.startswith(_DATA))
    return mappings([cleaner.parse_if_json(line) for line in lines])


def unwrapped(response: Any) -> Any:
    """The body of a response that stands in an envelope with its status, as results of batches do."""
    body = mapping(response).get("body")
    return body if isinstance(body, dict) and "choices" not in response and "output" not in response else response


def is_chunk(value: Any) -> bool:
    return mapping(value).get("object") == CHUNK


def completion_of(chunks: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The completion that chunks of the chat API add up to; None when they are none."""
    if not any(map(is_chunk, chunks)):
        return None
    joined: dict[str, Any] = {"object": "chat.completion"}
    choices: dict[int, _Choice] = {}
    for chunk in chunks:
        joined.update({k: chunk[k] for k in ("id", "model", "created", "usage") if chunk.get(k)})
        for given in mappings(chunk.get("choices")):
            index = given.get("index")
            choices.setdefault(index if isinstance(index, int) else 0, _Choice()).add(given)
    joined["choices"] = [choices[i].message() for i in sorted(choices)]
    return joined


class _Choice:
    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {}
        self._calls: dict[Any, dict[str, list[str]]] = {}
        self._function: dict[str, list[str]] = {}
        self._finish: str | None = None

    def add(self, given: dict[str, Any]) -> None:
        delta = mapping(given.get("delta"))
        for key in ("content", "refusal", "reasoning_content", "reasoning"):
            if isinstance(delta.get(key), str):
                self._texts.setdefault(key, []).append(delta[key])
        for n, call in enumerate(mappings(delta.get("tool_calls"))):
            known = self._calls.setdefault(call.get("index", n), {})
            if text(call.get("id")):
                known.setdefault("id", []).append(call["id"])
            _add_function(known, mapping(call.get("function")))
        _add_function(self._function, mapping(delta.get("function_call")))
        self._finish = text(given.get("finish_reason")) or self._finish

    def message(self) -> dict[str, Any]:
        told: dict[str, Any] = {"role": "assistant", **{k: "".join(v) for k, v in self._texts.items()}}
        if self._calls:
            told["tool_calls"] = [
                {"id": next(iter(c.get("id", [])), None), "type": "function", "function": _function(c)}
                for c in self._calls.values()
            ]
        if self._function:
            told["function_call"] = _function(self._function)
        return {"message": told, "finish_reason": self._finish}


def _add_function(known: dict[str, list[str]], given: dict[str, Any]) -> None:
    for key in ("name", "arguments"):
        if text(given.get(key)):
            known.setdefault(key, []).append(given[key])


def _function(known: dict[str, list[str]]) -> dict[str, Any]:
    return {"name": "".join(known.get("name", [])), "arguments": "".join(known.get("arguments", [])) or None}


def message_of(events: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The message that events of the Messages API add up to; None when they are none."""
    start = next((mapping(e.get("message")) for e in events if e.get("type") == "message_start"), None)
    if start is None:
        return None
    blocks: dict[Any, dict[str, Any]] = {}
    pieces: dict[tuple[Any, str], list[str]] = {}
    message = {**start, "type": "message", "content": []}
    for event in events:
        kind, index = event.get("type"), event.get("index")
        if kind == "content_block_start":
            blocks[_key(index)] = dict(mapping(event.get("content_block")))
        elif kind == "content_block_delta":
            delta = mapping(event.get("delta"))
            for key in ("text", "thinking", "partial_json"):
                if isinstance(delta.get(key), str):
                    pieces.setdefault((_key(index), key), []).append(delta[key])
        elif kind == "message_delta":
            message.update({k: v for k, v in mapping(event.get("delta")).items() if v is not None})
            message["usage"] = {**mapping(message.get("usage")), **mapping(event.get("usage"))}
    for (index, key), parts in pieces.items():
        block = blocks.setdefault(index, {"type": "text"})
        if key == "partial_json":
            block["input"] = "".join(parts)
        else:
            block[key] = (text(block.get(key)) or "") + "".join(parts)
    message["content"] = list(blocks.values())
    return message


def response_of(events: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The response of a stream of the Responses API: its last event holds it whole; else its finished items."""
    held = [r for e in events if text(e.get("type")) and (r := mapping(e.get("response")))]
    if not held or not str(events[0].get("type")).startswith("response."):
        return None
    last = dict(held[-1])
    if not sequence(last.get("output")):
        last["output"] = [i for e in events if e.get("type") == "response.output_item.done" and (i := e.get("item"))]
    return last


def _key(index: Any) -> Any:
    return index if isinstance(index, (int, str)) else 0


Joiner = Callable[[list[dict[str, Any]]], dict[str, Any] | None]


def whole_response(value: Any, cleaner: Cleaner, join: Joiner) -> Any:
    """A response as one object, whether it came at once, in an envelope or as a stream; else what was given."""
    value = unwrapped(value)
    if isinstance(value, dict):
        return value
    joined = join(events_of(value, cleaner))
    return value if joined is None else joined


def is_stream_of(value: Any, join_mark: str) -> bool:
    """Whether a list holds events of a stream: the first says its object or type."""
    first = mapping(at(value, 0))
    return text(first.get("object")) == join_mark or (text(first.get("type")) or "").startswith(join_mark)
