"""LangChain messages and LangGraph states (section 4, 6)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from chats.domain.details import ResultStatus
from chats.domain.formats.documents import Document, Head
from chats.domain.formats.drafts import Call, ChatDraft, Reading
from chats.domain.formats.openai_chat import call_of
from chats.domain.formats.parts import Content, read_part
from chats.domain.formats.problems import Problem, ReadingProblem
from chats.domain.formats.reading_rows import Item, read_rows, share
from chats.domain.formats.values import at, label, mapping, mappings, moment, scalars, sequence, shown, text

FORMAT: Final = "langchain"
REMOVE_ALL: Final = "__remove_all__"
TYPES: Final = frozenset({"human", "ai", "system", "tool", "function", "chat", "remove", "developer"})
_CLASSES: Final = {
    "HumanMessage": "human",
    "AIMessage": "ai",
    "SystemMessage": "system",
    "ToolMessage": "tool",
    "FunctionMessage": "function",
    "ChatMessage": "chat",
    "RemoveMessage": "remove",
}
_ROLES: Final = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "tool"}
_CALL_BLOCKS: Final = frozenset({"tool_use", "tool_call", "function_call", "input_json_delta", "tool_call_chunk"})
_KNOWN: Final = frozenset(
    {
        "content",
        "additional_kwargs",
        "response_metadata",
        "type",
        "name",
        "id",
        "example",
        "tool_calls",
        "invalid_tool_calls",
        "usage_metadata",
        "tool_call_id",
        "status",
        "artifact",
        "role",
        "tool_call_chunks",
        "chunk_position",
    }
)


def recognise(head: Head) -> float:
    if head.rows and all(is_message(r) for r in head.rows):
        return 1.0
    if head.rows and all(isinstance(r, list) for r in head.rows):
        return sum(bool(r) and all(is_message(m) for m in r[:20]) for r in head.rows) / len(head.rows)
    return share(head, lambda row: _messages_of(row) is not None)


def kind_of(message: dict[str, Any]) -> str | None:
    """The message type: of `{type, data}`, of the flat form, or of the constructor form."""
    if message.get("type") == "constructor" and isinstance(message.get("kwargs"), dict):
        name = str(at(message, "id", -1) or "").removesuffix("Chunk")
        return _CLASSES.get(name)
    kind = message.get("type")
    if not isinstance(kind, str):
        return None
    if kind in TYPES:
        return kind
    return _CLASSES.get(kind.removesuffix("Chunk"))


def is_message(value: Any) -> bool:
    if not isinstance(value, dict) or kind_of(value) is None:
        return False
    return isinstance(value.get("data"), dict) or "content" in value or "kwargs" in value or value["type"] == "remove"


def _messages_of(row: dict[str, Any]) -> list[Any] | None:
    """The list of messages in a state, a checkpoint, or an object that just holds them."""
    for path in (("values", "messages"), ("channel_values", "messages"), ("checkpoint", "channel_values", "messages")):
        if _is_list(found := at(row, *path)):
            return sequence(found)
    for key in ("messages", "values", "history"):
        if _is_list(row.get(key)):
            return sequence(row[key])
    return None


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(is_message(m) for m in value)


def read(document: Document, reading: Reading) -> Iterator[Item]:
    rows = document.head.rows
    if rows and all(is_message(r) for r in rows):
        values: list[Any] = []
        for row in document.rows():
            if isinstance(row, Problem):
                yield Problem(row.code, row.place, row.args, chat_lost=False)
            else:
                values.append(row.value)
        reading.place = document.place
        try:
            yield _chat({"messages": values}, values, reading)
        except ReadingProblem as problem:
            yield problem.at(document.place)
        return
    yield from read_rows(document.rows(), reading, lambda row: [_convert(row, reading)])


def _convert(row: Any, reading: Reading) -> Item:
    if isinstance(row, list):
        return _chat({}, row, reading)
    messages = _messages_of(mapping(row))
    if messages is None:
        raise ReadingProblem("no_messages")
    return _chat(mapping(row), messages, reading)


def _chat(row: dict[str, Any], messages: list[Any], reading: Reading) -> Item:
    draft = ChatDraft(reading, FORMAT)
    configured = mapping(at(row, "config", "configurable"))
    draft.external_id = label(row.get("thread_id")) or label(configured.get("thread_id")) or label(row.get("id"))
    draft.metadata = scalars(row, without=frozenset({"thread_id", "id"})) | scalars(mapping(row.get("metadata")))
    add_messages(draft, messages)
    return draft.record()


def add_messages(draft: ChatDraft, messages: list[Any]) -> None:
    """Add a list of messages; those that a later `remove` message names are left out."""
    kept: list[dict[str, Any]] = []
    for i, message in enumerate(messages):
        if not isinstance(message, dict):
            raise ReadingProblem("wrong_type", path=f"messages[{i}]", expected="object", found=type(message).__name__)
        fields = fields_of(message)
        if kind_of(message) != "remove":
            kept.append(message)
            continue
        target = label(fields.get("id"))
        kept = [] if target == REMOVE_ALL else [m for m in kept if label(fields_of(m).get("id")) != target]
    for message in _joined(kept):
        add_message(draft, message)


def _joined(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Chunks of one answer, known by its id, as one message."""
    found: list[dict[str, Any]] = []
    parts: dict[int, list[str]] = {}
    for message in messages:
        fields = fields_of(message)
        last = fields_of(found[-1]) if found else {}
        same = label(fields.get("id")) is not None and fields.get("id") == last.get("id")
        if not (same and _is_chunk(message) and _is_chunk(found[-1])):
            found.append({"type": "AIMessageChunk", **fields} if _is_chunk(message) else message)
            continue
        if isinstance(last.get("content"), str) and isinstance(fields.get("content"), str):
            parts.setdefault(len(found) - 1, [last["content"]]).append(fields["content"])
        elif isinstance(fields.get("content"), list):
            last["content"] = [*sequence(last.get("content")), *fields["content"]]
        for key in ("response_metadata", "usage_metadata", "additional_kwargs"):
            last[key] = {**mapping(last.get(key)), **mapping(fields.get(key))}
        last["tool_call_chunks"] = sequence(last.get("tool_call_chunks")) + sequence(fields.get("tool_call_chunks"))
    for i, pieces in parts.items():
        found[i]["content"] = "".join(pieces)
    for message in found:
        pieces_of_calls = mappings(message.get("tool_call_chunks"))
        if len(pieces_of_calls) > 1:
            message["tool_calls"] = _calls_of_chunks(pieces_of_calls)
            message["invalid_tool_calls"] = []
    return found


def _is_chunk(message: dict[str, Any]) -> bool:
    name = at(message, "id", -1) if message.get("type") == "constructor" else message.get("type")
    return name == "AIMessageChunk"


def _calls_of_chunks(chunks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    calls: dict[Any, dict[str, Any]] = {}
    for n, chunk in enumerate(chunks):
        index = chunk.get("index")
        known = calls.setdefault(index if isinstance(index, (int, str)) else f"n{n}", {"args": []})
        for key in ("id", "name"):
            known[key] = known.get(key) or chunk.get(key)
        known["args"].append(text(chunk.get("args")) or "")
    return [{**c, "args": "".join(c["args"]) or None} for c in calls.values()]


def fields_of(message: dict[str, Any]) -> dict[str, Any]:
    return mapping(message.get("data")) or mapping(message.get("kwargs")) or message


def add_message(draft: ChatDraft, message: dict[str, Any]) -> None:
    kind = kind_of(message)
    fields = fields_of(message)
    draft.reading.report.note_unknown_fields(fields, _KNOWN, "messages[].")
    role = _ROLES.get(kind or "", None) or label(fields.get("role")) or label(kind) or "unknown"
    extra = mapping(fields.get("additional_kwargs"))
    answer = mapping(fields.get("response_metadata"))
    content, in_content = _content(draft, fields.get("content"))
    calls: list[Call] = []
    if role == "assistant":
        calls = _calls(draft, fields, extra) or in_content
    if role == "assistant" and not content.reasoning and (told := text(extra.get("reasoning_content"))):
        content.reasoning.append(told)
    draft.add(
        role,
        content,
        name=label(fields.get("name")),
        tool_call_id=_result_id(draft, kind, fields),
        calls=calls,
        finish=text(answer.get("finish_reason")) or text(answer.get("stop_reason")) or text(answer.get("done_reason")),
        model=text(answer.get("model_name")) or text(answer.get("model")),
        usage=mapping(fields.get("usage_metadata")) or None,
        created_at=moment(answer.get("created_at")) or moment(extra.get("created_at")),
        status=_status(kind, fields),
        ref=label(fields.get("id")) or f"messages/{len(draft)}",
    )


def _content(draft: ChatDraft, value: Any) -> tuple[Content, list[Call]]:
    """The text; calls in the content only repeat `tool_calls`, and count where there are none."""
    content = Content()
    calls: list[Call] = []
    unknown: list[str] = []
    for part in value if isinstance(value, list) else [value]:
        kind = mapping(part).get("type")
        if kind in ("tool_use", "tool_call"):
            calls.append(call_of(part))
        elif kind not in _CALL_BLOCKS and kind != "redacted_thinking" and part is not None:
            read_part(content, part if isinstance(part, (str, dict)) else shown(part), unknown)
    for name in unknown:
        draft.reading.report.note_unknown_field(f"messages[].{name}")
    return content, calls


def _calls(draft: ChatDraft, fields: dict[str, Any], extra: dict[str, Any]) -> list[Call]:
    calls = [
        Call(label(c.get("id")), label(c.get("name")) or "unknown", c.get("args"))
        for key in ("tool_calls", "invalid_tool_calls")
        for c in mappings(fields.get(key))
    ]
    if calls:
        return calls
    calls = [call_of(c) for c in mappings(extra.get("tool_calls"))]
    if not calls and isinstance(extra.get("function_call"), dict):
        function = extra["function_call"]
        calls = [Call(f"fc-{len(draft)}", label(function.get("name")) or "unknown", function.get("arguments"))]
    return calls


def _result_id(draft: ChatDraft, kind: str | None, fields: dict[str, Any]) -> str | None:
    found = label(fields.get("tool_call_id"))
    if found is None and kind == "function" and draft.details and draft.details[-1].tool_calls:
        return draft.details[-1].tool_calls[-1].id
    return found


def _status(kind: str | None, fields: dict[str, Any]) -> ResultStatus | None:
    if kind != "tool":
        return None
    given = fields.get("status")
    return "error" if given == "error" else "ok" if given == "success" else None
