"""Taking texts out of a stored chat for good, and saying beforehand what would go (product.md goal C7).

The chat keeps its shape: as many messages, calls and results as before, with `[redacted]` where a text was. Roles, ids
of calls, names of tools, times and counts stay, so that points keep their places.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from chats.domain.exchange import HEADER_KEY, from_exchange, to_exchange
from chats.domain.record import ChatRecord

REDACTED: Final = "[redacted]"
EXCERPT: Final = 60

Spans = Sequence[tuple[int, int]]
Part = Literal["text", "reasoning", "arguments", "parts", "name", "title", "id", "header", "metadata"]

# What names a thing inside a source's own parts of a message, and is no text.
_STRUCTURE: Final = frozenset({"type", "role", "id", "tool_call_id", "tool_use_id", "call_id", "name", "mime_type"})
_HEADER_TEXTS: Final = ("source", "user", "char", "session")


@dataclass(frozen=True, slots=True)
class Place:
    """One text that goes, with a little of what stands around it. `message` is None for what is said of the chat."""

    message: int | None
    part: Part
    before: str
    found: str
    after: str


@dataclass(frozen=True, slots=True)
class Redaction:
    """A chat without the texts, and where they stood. `record` is the chat itself where there is nothing to take."""

    record: ChatRecord
    places: Sequence[Place]

    @property
    def messages(self) -> frozenset[int]:
        """The messages in which something goes."""
        return frozenset(place.message for place in self.places if place.message is not None)


def without_matches(record: ChatRecord, find: Callable[[str], Spans]) -> Redaction:
    """Replace whatever `find` finds (spans in code points, ascending, apart) in any text of the chat."""
    places: list[Place] = []

    def clean(text: str, message: int | None, part: Part) -> str:
        spans = find(text)
        places.extend(_place(message, part, text, start, end) for start, end in spans)
        return _replaced(text, spans)

    return _rebuilt(record, _walked(to_exchange(record), record, clean), places)


def without_messages(record: ChatRecord, chosen: Collection[int]) -> Redaction:
    """Replace everything that these messages say: text, reasoning, arguments, and the source's own parts.

    A title that repeats one of them goes too.
    """
    data = to_exchange(record)
    places: list[Place] = []
    for index in sorted(chosen):
        message = data["chat"]["messages"][index]
        said = message.get("content") or ""
        if _repeats(record.title, said):
            places.append(Place(None, "title", "", (record.title or "")[:EXCERPT], ""))
            data["title"] = REDACTED
        for key, part in (("content", "text"), ("reasoning", "reasoning")):
            if message.get(key) and message[key] != REDACTED:
                places.append(_place(index, part, message[key], 0, len(message[key])))  # type: ignore[arg-type]
                message[key] = REDACTED
        for call in message.get("tool_calls", ()):
            places += _emptied(call, index)
        message.pop("parts", None)
        if message.get("name") and message.get("role") == record.chat.human_role:
            message["name"] = None
    return _rebuilt(record, data, places)


def _repeats(title: str | None, said: str) -> bool:
    short, long = " ".join((title or "").split()), " ".join(said.split())
    return bool(short) and short != REDACTED and (short in long or long.startswith(short.rstrip("….")))


def _emptied(call: dict[str, Any], index: int) -> list[Place]:
    if call.get("arguments_raw"):
        if call["arguments_raw"] == REDACTED:
            return []
        place = _place(index, "arguments", call["arguments_raw"], 0, len(call["arguments_raw"]))
        call["arguments_raw"] = REDACTED
        return [place]
    found: list[Place] = []

    def blank(value: Any) -> Any:
        if value is None or isinstance(value, bool) or value in (REDACTED, ""):
            return value
        found.append(Place(index, "arguments", "", str(value)[:EXCERPT], ""))
        return REDACTED

    if call.get("arguments"):
        call["arguments"] = _each(call["arguments"], blank, frozenset())
    return found


# --- every text of a chat


def _walked(data: dict[str, Any], record: ChatRecord, clean: Callable[[str, int | None, Part], str]) -> dict[str, Any]:
    for index, message in enumerate(data["chat"]["messages"]):
        message["content"] = clean(message["content"], index, "text")
        if message.get("reasoning"):
            message["reasoning"] = clean(message["reasoning"], index, "reasoning")
        if message.get("name") and message["role"] in (record.chat.human_role, record.chat.ai_role):
            message["name"] = clean(message["name"], index, "name")
        for call in message.get("tool_calls", ()):
            if call.get("arguments_raw"):
                call["arguments_raw"] = clean(call["arguments_raw"], index, "arguments")
            elif call.get("arguments"):
                call["arguments"] = _texts(call["arguments"], clean, index, "arguments")
        if message.get("parts"):
            message["parts"] = _texts(message["parts"], clean, index, "parts", _STRUCTURE)
    for key, part in (("title", "title"), ("external_id", "id")):
        if data.get(key):
            data[key] = clean(data[key], None, part)  # type: ignore[arg-type]
    metadata = data.get("metadata") or {}
    header = metadata.get(HEADER_KEY)
    if metadata:
        data["metadata"] = _texts({k: v for k, v in metadata.items() if k != HEADER_KEY}, clean, None, "metadata")
    if header is not None:
        texts = {key: clean(header[key], None, "header") for key in _HEADER_TEXTS if header.get(key)}
        data["metadata"] = {**(data.get("metadata") or {}), HEADER_KEY: {**header, **texts}}
    return data


def _texts(
    value: Any,
    clean: Callable[[str, int | None, Part], str],
    message: int | None,
    part: Part,
    left: frozenset[str] = frozenset(),
) -> Any:
    return _each(value, lambda text: clean(text, message, part) if isinstance(text, str) else text, left)


def _each(value: Any, change: Callable[[Any], Any], left: frozenset[str]) -> Any:
    """The JSON value with each of its plain values changed, except under the keys that are left alone."""
    if isinstance(value, dict):
        return {key: item if key in left else _each(item, change, left) for key, item in value.items()}
    if isinstance(value, list):
        return [_each(item, change, left) for item in value]
    return change(value)


def _rebuilt(record: ChatRecord, data: dict[str, Any], places: list[Place]) -> Redaction:
    if not places:
        return Redaction(record, ())
    changed = from_exchange(data)
    changed.source_format, changed.identity_by_content = record.source_format, record.identity_by_content
    return Redaction(changed, places)


def _replaced(text: str, spans: Spans) -> str:
    if not spans:
        return text
    parts, at = [], 0
    for start, end in spans:
        parts += [text[at:start], REDACTED]
        at = end
    return "".join([*parts, text[at:]])


def _place(message: int | None, part: Part, text: str, start: int, end: int) -> Place:
    return Place(
        message, part, text[max(0, start - EXCERPT) : start], text[start:end][: 2 * EXCERPT], text[end : end + EXCERPT]
    )
