"""Chat history: what a chat wrapper renders (chat-wrappers.md section 3).

Items are values: nothing changes them after they are made, and renderers keep what they made of them by identity.
`origin` says which stored message an item or entry came from; it's no part of the JSON form.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from chats.domain.js_json import ABSENT
from chats.domain.llama_text import LlamaText

SegmentType: TypeAlias = Literal["thought", "comment"]
SEGMENT_TYPES: Final[tuple[SegmentType, ...]] = ("thought", "comment")

Functions: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Offered functions: name to `{"description"?, "params"?}`; params is a JSON-schema-like object or None."""


class OriginText(str):
    """Text that remembers the stored message it came from, through rendering up to the last gluing of pieces."""

    __slots__ = ("origin",)

    origin: int | None

    def __new__(cls, text: str, origin: int | None) -> OriginText:
        made = super().__new__(cls, text)
        made.origin = origin
        return made

    def __getnewargs__(self) -> tuple[str, int | None]:  # type: ignore[override]
        return str(self), self.origin


@dataclass(frozen=True, slots=True)
class SystemItem:
    """A system message; its text may hold special tokens."""

    text: LlamaText

    def to_json(self) -> dict[str, Any]:
        return {"type": "system", "text": self.text.to_json()}


@dataclass(frozen=True, slots=True)
class UserItem:
    """What the person wrote, always plain text."""

    text: str

    def to_json(self) -> dict[str, Any]:
        return {"type": "user", "text": self.text}


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call with its result. `params` and `result` are any JSON or ABSENT; `description` is never rendered.

    `raw_call` is the call as the model wrote it; `starts_new_chunk` begins a new group of parallel calls.
    """

    name: str
    params: Any = ABSENT
    result: Any = ABSENT
    description: Any = ABSENT
    raw_call: LlamaText | None = None
    starts_new_chunk: bool | None = None
    origin: int | None = None
    result_origin: int | None = None

    def to_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {"type": "functionCall", "name": self.name}
        for key, value in (("description", self.description), ("params", self.params), ("result", self.result)):
            if value is not ABSENT:
                out[key] = value
        if self.raw_call is not None:
            out["rawCall"] = self.raw_call.to_json()
        if self.starts_new_chunk is not None:
            out["startsNewChunk"] = self.starts_new_chunk
        return out


@dataclass(frozen=True, slots=True)
class Segment:
    """A thought or comment. One that isn't `ended` goes on in the next segment of its type.

    `raw` is the segment as the model wrote it, tags included. The times are ISO strings and never rendered.
    """

    segment_type: SegmentType
    text: str
    ended: bool
    raw: LlamaText | None = None
    start_time: str | None = None
    end_time: str | None = None

    def to_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {
            "type": "segment",
            "segmentType": self.segment_type,
            "text": self.text,
            "ended": self.ended,
        }
        if self.raw is not None:
            out["raw"] = self.raw.to_json()
        if self.start_time is not None:
            out["startTime"] = self.start_time
        if self.end_time is not None:
            out["endTime"] = self.end_time
        return out


ResponseEntry: TypeAlias = str | FunctionCall | Segment


@dataclass(frozen=True, slots=True)
class ModelItem:
    """What the model wrote, in order. An empty response at the end is the answer that is to be written."""

    response: tuple[ResponseEntry, ...]

    def to_json(self) -> dict[str, Any]:
        return {"type": "model", "response": response_to_json(self.response)}


def is_thought(entry: object) -> bool:
    return isinstance(entry, Segment) and entry.segment_type == "thought"


def without_thoughts(item: ModelItem) -> tuple[ResponseEntry, ...]:
    """The response without its thoughts."""
    return tuple([entry for entry in item.response if not is_thought(entry)])


HistoryItem: TypeAlias = SystemItem | UserItem | ModelItem


def history_from_json(items: Iterable[Mapping[str, Any]]) -> list[HistoryItem]:
    """Read a history. Raises ValueError or KeyError for what isn't one."""
    return [_item_from_json(item) for item in items]


def history_to_json(history: Iterable[HistoryItem]) -> list[dict[str, Any]]:
    """The JSON form, from which `history_from_json` makes equal items."""
    return [item.to_json() for item in history]


def response_from_json(entries: Iterable[Any]) -> tuple[ResponseEntry, ...]:
    """Read the entries of a model response."""
    return tuple([_entry_from_json(entry) for entry in entries])


def response_to_json(response: Sequence[ResponseEntry]) -> list[Any]:
    return [entry if isinstance(entry, str) else entry.to_json() for entry in response]


def function_call_from_json(entry: Mapping[str, Any]) -> FunctionCall:
    """Read one call; missing keys are absent, null is a value."""
    return FunctionCall(
        name=entry["name"],
        params=entry.get("params", ABSENT),
        result=entry.get("result", ABSENT),
        description=entry.get("description", ABSENT),
        raw_call=_optional_text(entry.get("rawCall")),
        starts_new_chunk=entry.get("startsNewChunk"),
    )


def _item_from_json(item: Mapping[str, Any]) -> HistoryItem:
    kind = item["type"]
    if kind == "system":
        return SystemItem(LlamaText.from_json(item["text"]))
    if kind == "user":
        return UserItem(item["text"])
    if kind == "model":
        return ModelItem(response_from_json(item["response"]))
    raise ValueError(f"unknown type of history item: {kind!r}")


def _entry_from_json(entry: Any) -> ResponseEntry:
    if isinstance(entry, str):
        return entry
    kind = entry["type"]
    if kind == "functionCall":
        return function_call_from_json(entry)
    if kind != "segment" or entry["segmentType"] not in SEGMENT_TYPES:
        raise ValueError(f"unknown response entry: {kind!r}")
    return Segment(
        segment_type=entry["segmentType"],
        text=entry["text"],
        ended=entry["ended"],
        raw=_optional_text(entry.get("raw")),
        start_time=entry.get("startTime"),
        end_time=entry.get("endTime"),
    )


def _optional_text(value: Any) -> LlamaText | None:
    return None if value is None else LlamaText.from_json(value)
