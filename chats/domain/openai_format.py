"""Chat history to OpenAI messages and back (chat-wrappers.md sections 12.8 and 14.2).

Messages keep LlamaTexts as contents here, since the Jinja wrapper needs to know what is plain; `to_openai_chat` turns
them into strings as the API wants them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from chats.domain.history_items import (
    FunctionCall,
    Functions,
    HistoryItem,
    ModelItem,
    ResponseEntry,
    Segment,
    SegmentType,
    SystemItem,
    UserItem,
)
from chats.domain.js_json import ABSENT, js_ordered, json_dumps, parse_json
from chats.domain.llama_text import LlamaText
from chats.domain.output_parsing.whole_text import segment_text
from chats.domain.wrapper_settings import ChatWrapperSettings, OpenedOnStart

Content: TypeAlias = "str | LlamaText | Any"

_ID_LENGTH = 9


@dataclass
class Message:
    """One message. `content` is ABSENT where the key is missing; `name` likewise."""

    role: str
    content: Content = ABSENT
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    tool_call_id: str | None = None
    name: Any = ABSENT

    def to_json(self) -> dict[str, Any]:
        """The API's form: LlamaTexts as strings, what is absent has no key."""
        out: dict[str, Any] = {"role": self.role}
        if self.tool_call_id is not None:
            out["tool_call_id"] = self.tool_call_id
        if self.content is not ABSENT:
            out["content"] = str(self.content) if isinstance(self.content, LlamaText) else self.content
        if self.name is not ABSENT:
            out["name"] = self.name
        if self.tool_calls:
            out["tool_calls"] = self.tool_calls
        return out


@dataclass(frozen=True)
class Conversion:
    """How messages are made; the defaults are those of the API.

    `join_texts`: text may go into an assistant message of the item before. `tool_names`: true for the functions' names,
    false for none, or a text that stands for them.
    """

    use_raw: bool = True
    calls_share_message: bool = True
    params_as_text: bool = True
    results_as_text: bool = True
    join_texts: bool = True
    tool_names: bool | str = True


@dataclass(frozen=True)
class PendingCall:
    """A call that has no result yet."""

    name: str
    params: Any
    raw: LlamaText


@dataclass(frozen=True)
class ImportedChat:
    """What messages say as a history: `calls` are those of the last message that wait for results."""

    history: list[HistoryItem]
    calls: list[PendingCall]
    functions: dict[str, dict[str, Any]] | None


def to_openai_chat(
    history: Sequence[HistoryItem], settings: ChatWrapperSettings, functions: Functions | None = None
) -> dict[str, Any]:
    """`{"messages", "tools"?}` as the API takes them. Segments become text with their tags."""
    chat: dict[str, Any] = {"messages": [message.to_json() for message in to_messages(history, settings, Conversion())]}
    if functions:
        chat["tools"] = to_tools(functions)
    return chat


def to_tools(functions: Functions, describe: bool = True) -> list[dict[str, Any]]:
    """The tool list; `describe` false leaves the descriptions out."""
    tools = []
    for name, definition in js_ordered(functions):
        function: dict[str, Any] = {"name": name}
        if describe and "description" in definition:
            function["description"] = definition["description"]
        if "params" in definition:
            function["parameters"] = definition["params"]
        tools.append({"type": "function", "function": function})
    return tools


def to_messages(history: Sequence[HistoryItem], settings: ChatWrapperSettings, conversion: Conversion) -> list[Message]:
    """The messages of a history, in order."""
    messages: list[Message] = []
    for index, item in enumerate(history):
        if isinstance(item, SystemItem):
            messages.append(Message("system", item.text))
        elif isinstance(item, UserItem):
            messages.append(Message("user", item.text))
        else:
            _ModelMessages(messages, settings, conversion, index).add(item)
    return messages


class _ModelMessages:
    """Adds the messages of one model item."""

    def __init__(
        self, messages: list[Message], settings: ChatWrapperSettings, conversion: Conversion, index: int
    ) -> None:
        self._messages = messages
        self._segments = settings.segments
        self._conversion = conversion
        self._index = index
        self._can_join = conversion.join_texts
        # The last message of this item that calls can go into.
        self._own: Message | None = None
        thought = settings.segments.thought if settings.segments else None
        prefix = thought.prefix if thought else None
        self._opened = prefix if isinstance(prefix, OpenedOnStart) else None
        self._stack: list[SegmentType] = ["thought"] if self._opened else []

    def add(self, item: ModelItem) -> None:
        for index, entry in enumerate(item.response):
            if isinstance(entry, str):
                self._add_text(entry)
            elif isinstance(entry, Segment):
                self._add_segment(entry)
            else:
                self._add_call(entry, f"fc_{self._index}_", index)
        self._add_text("")

    def _add_text(self, text: str | LlamaText) -> None:
        last = self._messages[-1] if self._messages and self._can_join else None
        if last is None or last.role != "assistant" or last.tool_calls:
            self._own = Message("assistant", text)
            self._messages.append(self._own)
            self._can_join = True
        elif last.content is ABSENT:
            last.content = text
        else:
            last.content = LlamaText(last.content, text)

    def _add_segment(self, segment: Segment) -> None:
        kind = segment.segment_type
        definition = getattr(self._segments, kind) if self._segments else None
        suffix = definition.suffix if definition else None
        is_open = bool(self._stack) and self._stack[-1] == kind
        if segment.raw is not None and self._conversion.use_raw:
            self._add_text(segment.raw)
        else:
            prefix = definition.printed_prefix if definition and not is_open else None
            end = suffix if segment.ended else None
            self._add_text(LlamaText(prefix or "", segment.text, end or ""))
        if not segment.ended and not is_open:
            self._stack.append(kind)
        elif segment.ended and is_open:
            self._stack.pop()
            close_all = self._segments.close_all_segments if self._segments else None
            if not self._stack and suffix is None and close_all is not None:
                self._add_text(close_all)

    def _add_call(self, call: FunctionCall, id_start: str, index: int) -> None:
        conversion = self._conversion
        own = self._own
        # A LlamaText counts as content even without pieces.
        has_content = own is not None and own.content is not ABSENT and own.content != ""
        if (
            own is None
            or (not conversion.calls_share_message and has_content)
            or (call.starts_new_chunk and own.tool_calls)
        ):
            own = self._own = Message("assistant")
            self._messages.append(own)
        call_id = id_start + str(index).rjust(_ID_LENGTH - len(id_start), "0")
        function: dict[str, Any] = {"name": call.name}
        # A template sees absent params as a key without a value.
        absent = None if call.params is ABSENT else call.params
        function["arguments"] = _as_text(call.params) if conversion.params_as_text else absent
        own.tool_calls.append({"id": call_id, "type": "function", "function": function})
        names = conversion.tool_names
        self._messages.append(
            Message(
                "tool",
                _as_text(call.result) if conversion.results_as_text else call.result,
                tool_call_id=call_id,
                name=ABSENT if names is False or names == "" else call.name if names is True else names,
            )
        )
        if self._opened is not None and self._opened.after_function_calls:
            self._stack.append("thought")


def _as_text(value: Any) -> str:
    return "" if value is ABSENT else json_dumps(value)


def from_openai_chat(
    chat: Mapping[str, Any],
    settings: ChatWrapperSettings,
    render_call: Callable[[str, Any], LlamaText],
) -> ImportedChat:
    """The history that messages of the API stand for.

    Consecutive assistant messages become one model item. A call takes the matching tool message's content as result,
    read as JSON where it is JSON. Calls without a result wait for one if they're in the last message.
    """
    messages: Sequence[Mapping[str, Any]] = chat["messages"]
    turns = [index for index, message in enumerate(messages) if message["role"] in ("user", "assistant")]
    last_turn = turns[-1] if turns else len(messages) - 1
    history: list[HistoryItem] = []
    response: list[ResponseEntry] | None = None
    pending: list[PendingCall] = []
    for index, message in enumerate(messages):
        role = message["role"]
        text = _content_text(message.get("content"))
        if role == "assistant":
            if response is None:
                response = []
            _add_segments(response, text or "", settings)
            results = _Results(messages, index)
            for position, call in enumerate(message.get("tool_calls") or ()):
                name, params = call["function"]["name"], _value(call["function"].get("arguments"))
                result = results.of(call, position)
                if result is None:
                    pending.append(PendingCall(name, params, render_call(name, params)))
                if result is not None or index != last_turn:
                    value = ABSENT if result is None else _value(result.get("content"))
                    response.append(FunctionCall(name, params, value, starts_new_chunk=position == 0 or None))
            continue
        if (role == "system" and text is None) or role not in ("system", "user"):
            continue
        if response is not None:
            history.append(ModelItem(tuple(response)))
            response = None
        history.append(SystemItem(LlamaText(text or "")) if role == "system" else UserItem(text or ""))
    if response is not None:
        history.append(ModelItem(tuple(response)))
    return ImportedChat(history, pending, _functions(chat.get("tools") or ()))


def _add_segments(response: list[ResponseEntry], text: str, settings: ChatWrapperSettings) -> None:
    for entry in segment_text(text, settings):
        last = response[-1] if response else None
        if isinstance(entry, str) and isinstance(last, str):
            response[-1] = last + entry
        else:
            response.append(entry)


class _Results:
    """The tool messages between an assistant message and the next turn."""

    def __init__(self, messages: Sequence[Mapping[str, Any]], index: int) -> None:
        self._in_order: list[Mapping[str, Any]] = []
        self._by_id: dict[str, Mapping[str, Any]] = {}
        for position in range(index + 1, len(messages)):
            message = messages[position]
            if message["role"] in ("user", "assistant"):
                break
            if message["role"] == "tool":
                self._in_order.append(message)
                self._by_id.setdefault(message.get("tool_call_id", ""), message)

    def of(self, call: Mapping[str, Any], position: int) -> Mapping[str, Any] | None:
        """The result of a call: by its id, or by its position if it has none."""
        if call.get("id") is None:
            return self._in_order[position] if position < len(self._in_order) else None
        return self._by_id.get(call["id"])


def _functions(tools: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]] | None:
    functions: dict[str, dict[str, Any]] = {}
    for tool in tools:
        function = tool["function"]
        definition = {"description": function.get("description", ABSENT), "params": function.get("parameters", ABSENT)}
        functions[function["name"]] = {key: value for key, value in definition.items() if value is not ABSENT}
    return functions or None


def _content_text(content: Any) -> str | None:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join([(part or {}).get("text") or "" for part in content])
    return None


def _value(content: Any) -> Any:
    text = _content_text(content)
    if not text:
        return ABSENT
    try:
        return parse_json(text)
    except ValueError:
        return text
