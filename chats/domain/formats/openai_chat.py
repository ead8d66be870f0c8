"""OpenAI chat messages: requests, logs, exchanges, bare lists (import-formats.md section 4, 1 and 2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from chats.domain.formats.cleaning import Cleaner
from chats.domain.formats.core_messages import add_core_message, holds_core_parts
from chats.domain.formats.documents import Document, Head
from chats.domain.formats.drafts import Call, ChatDraft, Reading, offered_tools
from chats.domain.formats.exchanges import Exchanges, run_of_exchanges, set_aside, with_key
from chats.domain.formats.marks import is_bare_trace, is_mini_swe_run, is_ollama_response, is_run_of_another
from chats.domain.formats.parts import Content, read_content, read_part
from chats.domain.formats.problems import Problem, ReadingProblem
from chats.domain.formats.reading_rows import Item, read_rows, read_whole, share
from chats.domain.formats.streams import CHUNK, completion_of, is_chunk, is_stream_of, whole_response
from chats.domain.formats.values import label, mapping, mappings, moment, scalars, sequence, shown, text
from chats.domain.formats.vocabulary import ROLES
from chats.domain.record import ChatRecord

FORMAT: Final = "openai-chat"
EXAMPLE_ROLES: Final = {"example_user": "user", "example_assistant": "assistant"}
MESSAGE_KEYS: Final = frozenset(
    {
        "role",
        "content",
        "name",
        "tool_calls",
        "tool_call_id",
        "function_call",
        "reasoning_content",
        "reasoning",
        "refusal",
        "finish_reason",
        "annotations",
        "audio",
        "id",
        "type",
        "created_at",
        "timestamp",
        "model",
        "usage",
        "weight",
        "cache_control",
        "provider_specific_fields",
        "thinking_blocks",
        "reasoning_details",
    }
)
IDS: Final = ("id", "uuid", "traj_id", "conversation_id", "thread_id")
TASK_IDS: Final = ("instance_id", "task_id")
TOOL_COLUMNS: Final = ("tools", "available_tools", "functions")
_UNDERSTOOD: Final = frozenset(
    {"messages", "title", "metadata", "response", "completion", "tool_choice", "system", *IDS, *TOOL_COLUMNS}
)
_ANTHROPIC_BLOCKS: Final = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use"})
OTHER_FORMATS: Final = frozenset(
    {
        "trajectory_format",
        "projectHash",
        "sessionId",
        "simulations",
        "chat_messages",
        "mapping",
        "schema_version",
        "trajectory",
        "history",
        "system",
    }
)
_REQUEST_KEYS: Final = frozenset(
    {
        "model",
        "messages",
        "tools",
        "tool_choice",
        "functions",
        "function_call",
        "parallel_tool_calls",
        "temperature",
        "top_p",
        "n",
        "stream",
        "stream_options",
        "max_tokens",
        "max_completion_tokens",
        "response_format",
        "reasoning_effort",
        "seed",
        "stop",
        "store",
        "user",
        "metadata",
        "frequency_penalty",
        "presence_penalty",
        "logit_bias",
        "logprobs",
        "top_logprobs",
        "service_tier",
        "modalities",
        "audio",
        "prediction",
        "web_search_options",
        "moderation",
        "extra_body",
        "id",
        "title",
        "created",
        "created_at",
        "url",
        "custom_id",
        "method",
    }
)

_ONLY_IN_REQUESTS: Final = frozenset(
    {
        "temperature",
        "top_p",
        "max_tokens",
        "max_completion_tokens",
        "stream",
        "tool_choice",
        "response_format",
        "parallel_tool_calls",
        "reasoning_effort",
    }
)


def recognise(head: Head) -> float:
    """A list of role/content messages, an object with one, an exchange, or a completion."""
    if holds_messages(head):
        return 0.0 if is_mini_swe_run(head.rows) else 1.0
    if head.rows and all(map(is_chunk, head.rows)):
        return 1.0
    if head.rows and all(isinstance(r, list) and r and all(is_message(m) for m in r[:5]) for r in head.rows):
        return 1.0
    alone = head.shape == "object"
    return share(head, lambda row: _fits(row, alone))


def holds_messages(head: Head) -> bool:
    """Whether the records of a file are the messages of one chat: most of them, and none that another form has."""
    rows = mappings(head.rows)
    if any("parentUuid" in r or _has_blocks(r) or "parts" in r or "toolInvocations" in r for r in rows):
        return False
    return sum(map(is_message, rows)) * 2 > len(head.rows)


def is_message(value: Any) -> bool:
    """Whether an object is a chat message of this form and not of one that looks like it."""
    if not isinstance(value, dict) or not isinstance(value.get("role"), str):
        return False
    if "content" not in value and "tool_calls" not in value and "function_call" not in value:
        return False
    if "parts" in value or "toolInvocations" in value:
        return False
    return not _has_blocks(value)


def _has_blocks(message: dict[str, Any]) -> bool:
    return any(text(mapping(p).get("type")) in _ANTHROPIC_BLOCKS for p in sequence(message.get("content")))


def _fits(row: dict[str, Any], alone: bool) -> bool:
    if row.get("object") == "chat.completion":
        return True
    if mapping(mapping(row.get("response")).get("body")).get("object") == "chat.completion":
        return True
    if row.keys() & OTHER_FORMATS:
        return False
    if "exchanges" in row:
        pairs = with_key(row["exchanges"], "messages")
        return bool(pairs) and all(_is_exchange(p) for p in pairs)
    for key in ("request", "body"):
        if isinstance(row.get(key), dict) and "messages" in row[key]:
            return _is_exchange({"request": row[key], "response": row.get("response")})
    if not has_messages(row):
        return False
    response = row.get("response", row.get("completion"))
    if isinstance(mapping(response).get("choices"), list) or is_stream_of(response, CHUNK):
        return True
    if is_bare_trace(row):
        return False
    if alone:
        return not is_run_of_another(row)
    return "model" in row and (row.keys() <= _REQUEST_KEYS or bool(row.keys() & _ONLY_IN_REQUESTS))


def _is_exchange(pair: dict[str, Any]) -> bool:
    request, response = mapping(pair.get("request")), mapping(pair.get("response"))
    if "system" in request or response.get("type") == "message" or is_ollama_response(pair.get("response")):
        return False
    if is_stream_of(pair.get("response"), "message_start"):
        return False
    return has_messages(request)


def has_messages(row: dict[str, Any]) -> bool:
    """Whether `messages` is a list of messages of this form."""
    messages = row.get("messages")
    return isinstance(messages, list) and bool(messages) and all(is_message(m) for m in messages)


def read(document: Document, reading: Reading) -> Iterator[Item]:
    """One chat a record; exchanges that continue each other are one chat; a list of messages is one chat."""
    head = document.head
    if head.rows and all(map(is_chunk, head.rows)):
        yield from read_whole(document, reading, lambda chunks: _streamed(mappings(chunks), reading))
        return
    if holds_messages(head):
        yield from read_messages_file(document, reading, FORMAT)
        return
    chain = Exchanges(reading, "messages", lambda request, response: completed(request, response, reading, FORMAT))
    yield from read_rows(document.rows(), reading, lambda row: _convert(row, reading, chain))
    yield from chain.finish()


def read_messages_file(document: Document, reading: Reading, source_format: str) -> Iterator[Item]:
    """The records of the file are the messages of one chat."""
    draft = ChatDraft(reading, source_format)

    def add(row: Any) -> Iterator[Item]:
        for message in reading.objects([row]):
            reading.place = document.place
            add_message(draft, message)
        return iter(())

    for item in read_rows(document.rows(), reading, add):
        yield Problem(item.code, item.place, item.args, chat_lost=False) if isinstance(item, Problem) else item
    reading.place = document.place
    if len(draft):
        yield draft.record()
    else:
        yield Problem("no_messages", document.place)


def _streamed(chunks: list[dict[str, Any]], reading: Reading) -> Iterator[Item]:
    """A file of chunks: each answer has an id of its own."""
    answers: dict[str, list[dict[str, Any]]] = {}
    for chunk in chunks:
        answers.setdefault(label(chunk.get("id")) or "", []).append(chunk)
    for answer in answers.values():
        yield from completed({}, answer, reading, FORMAT)


def _convert(row: Any, reading: Reading, chain: Exchanges) -> Iterator[Item]:
    if isinstance(row, list):
        yield chat_of(row, reading, FORMAT)
        return
    if not isinstance(row, dict):
        raise ReadingProblem("wrong_type", expected="object", found=type(row).__name__)
    if "exchanges" in row:
        yield from run_of_exchanges(
            row["exchanges"],
            reading,
            "messages",
            lambda request, response: completed(request, response, reading, FORMAT),
        )
        return
    for key in ("request", "body"):
        if isinstance(row.get(key), dict) and "messages" in row[key]:
            yield from chain.add(row[key], row.get("response"))
            return
    if row.get("object") == "chat.completion" and "messages" not in row:
        yield from completed({}, row, reading, FORMAT)
        return
    yield from completed(row, row.get("response", row.get("completion")), reading, FORMAT)


def completed(request: dict[str, Any], response: Any, reading: Reading, source_format: str) -> Iterator[ChatRecord]:
    """A request's messages with the first answer appended; further answers are alternatives."""
    response = whole_response(response, reading.cleaner, completion_of)
    choices = mappings(mapping(response).get("choices"))
    count = len(choices) if reading.options.all_branches else 1
    reading.report.other_branches += max(0, len(choices) - 1)
    if response is not None and not choices:
        reading.report.note_unknown_field("response")
    for n in range(max(1, count)):
        draft = ChatDraft(reading, source_format)
        fill_request(draft, request)
        if n < len(choices):
            add_choice(draft, mapping(response), choices[n])
        record = draft.record()
        if n > 0:
            record.identity_by_content = True
            set_aside(record, "branch", reading)
        yield record


def fill_request(draft: ChatDraft, request: dict[str, Any]) -> None:
    """Messages, offered tools and settings of a request or a log row."""
    describe(draft, request, "messages")
    for i, message in enumerate(sequence(request.get("messages"))):
        if not isinstance(message, dict):
            raise ReadingProblem("wrong_type", path=f"messages[{i}]", expected="object", found=type(message).__name__)
        add_message(draft, message)


def describe(draft: ChatDraft, row: dict[str, Any], column: str) -> None:
    """Id, title, offered tools and the other columns of a row: scalars become metadata, the rest is told.

    `column` holds the messages. An id of a task doesn't tell its runs apart.
    """
    identify(draft, row)
    draft.title = text(row.get("title"))
    tools = next((row[k] for k in TOOL_COLUMNS if row.get(k) is not None), None)
    draft.tools = offered_tools(tools, draft.reading.cleaner)
    draft.metadata = scalars(row, without=_UNDERSTOOD | {column}) | mapping(row.get("metadata"))
    for key, value in row.items():
        if isinstance(value, (dict, list)) and value and key not in _UNDERSTOOD and key != column:
            draft.reading.report.note_unknown_field(key)


def identify(draft: ChatDraft, row: dict[str, Any]) -> None:
    """The external id of a row; a task's id doesn't tell its runs apart."""
    draft.external_id = next((i for k in IDS if (i := label(row.get(k)))), None)
    if draft.external_id is None:
        draft.external_id = next((i for k in TASK_IDS if (i := label(row.get(k)))), None)
        draft.identity_by_content = draft.external_id is not None


def chat_of(messages: list[Any], reading: Reading, source_format: str) -> ChatRecord:
    draft = ChatDraft(reading, source_format)
    fill_request(draft, {"messages": messages})
    return draft.record()


def add_choice(draft: ChatDraft, response: dict[str, Any], choice: dict[str, Any]) -> None:
    """The answer of a completion, with its finish reason, model, token counts and time."""
    message = mapping(choice.get("message")) or mapping(choice.get("delta"))
    if not message and isinstance(choice.get("text"), str):
        message = {"content": choice["text"]}
    add_message(
        draft,
        {"role": "assistant", **message},
        finish=text(choice.get("finish_reason")),
        model=text(response.get("model")),
        usage=mapping(response.get("usage")) or None,
        created=response.get("created"),
    )


def add_message(
    draft: ChatDraft,
    message: dict[str, Any],
    *,
    finish: str | None = None,
    model: str | None = None,
    usage: dict[str, Any] | None = None,
    created: Any = None,
) -> int:
    """Add one message of this form and give its index."""
    index = len(draft)
    draft.reading.report.note_unknown_fields(message, MESSAGE_KEYS, "messages[].")
    role = label(message.get("role")) or "assistant"
    name = label(message.get("name"))
    if holds_core_parts(message):
        add_core_message(draft, message)
        return max(index, len(draft) - 1)
    content, calls = read_parts(draft, message)
    calls += read_calls(message, draft.reading.cleaner)
    if isinstance(message.get("function_call"), dict):
        function = message["function_call"]
        calls.append(Call(f"fc-{index}", label(function.get("name")) or "unknown", function.get("arguments")))
    tool_call_id = label(message.get("tool_call_id"))
    kind = ROLES.get(role, role)
    if kind == "tool" and tool_call_id is None:
        tool_call_id = draft.open_call(name)
    few_shot = kind == "system" and name in EXAMPLE_ROLES
    return draft.add(
        EXAMPLE_ROLES[name] if few_shot and name is not None else role,
        content,
        name=name,
        tool_call_id=tool_call_id,
        calls=calls if kind == "assistant" else None,
        reasoning=reasoning_of(message) if kind == "assistant" else None,
        finish=finish or text(message.get("finish_reason")),
        created_at=moment(created if created is not None else message.get("created_at", message.get("timestamp"))),
        model=model or text(message.get("model")),
        usage=usage or mapping(message.get("usage")) or None,
        few_shot=few_shot,
        ref=f"messages/{index}",
    )


def read_parts(draft: ChatDraft, message: dict[str, Any]) -> tuple[Content, list[Call]]:
    """Content of any kind; parts `tool_call` hold calls as JSON."""
    unknown: list[str] = []
    calls: list[Call] = []
    value = message.get("content")
    if not isinstance(value, list):
        content = read_content(value, unknown)
    else:
        content = Content()
        for part in value:
            kind = mapping(part).get("type")
            if kind in ("tool_call", "tool_calls", "function_call"):
                calls.extend(_calls_in_part(draft, part))
            elif kind in ("tool_result", "tool_response", "function_response") and "value" in part:
                content.add_text(shown(part["value"]))
            else:
                read_part(content, part, unknown)
    if not content.texts and isinstance(message.get("refusal"), str):
        content.add_text(message["refusal"])
    if isinstance(message.get("audio"), dict):
        content.add_placeholder("audio", message["audio"])
    for field in unknown:
        draft.reading.report.note_unknown_field(f"messages[].{field}")
    return content, calls


def _calls_in_part(draft: ChatDraft, part: dict[str, Any]) -> list[Call]:
    value = part.get("value", part.get("tool_call", part.get("function", part)))
    if isinstance(value, str):
        parsed = draft.reading.cleaner.parse_if_json(value)
        if isinstance(parsed, str):
            return [Call(None, "unknown", value)]
        value = parsed
    return [call_of(v) for v in (value if isinstance(value, list) else [value]) if isinstance(v, dict)]


def call_of(value: dict[str, Any]) -> Call:
    """A call in one of the usual spellings."""
    function = mapping(value.get("function")) or mapping(value.get("custom")) or value
    name = label(function.get("name")) or label(value.get("name")) or "unknown"
    if isinstance(value.get("function"), str):
        name = value["function"]
    for key in ("arguments", "args", "parameters", "input"):
        if key in function:
            return Call(label(value.get("id")) or label(value.get("tool_call_id")), name, function[key])
    return Call(label(value.get("id")), name, None)


def read_calls(message: dict[str, Any], cleaner: Cleaner) -> list[Call]:
    """The calls of a message; some data sets keep the list as JSON text."""
    given = message.get("tool_calls")
    if isinstance(given, str):
        given = cleaner.parse_if_json(given)
    return [call_of(c) for c in mappings([given] if isinstance(given, dict) else given)]


def reasoning_of(message: dict[str, Any]) -> str | None:
    for key in ("reasoning_content", "reasoning", "thinking"):
        value = message.get(key)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, dict) and (found := text(value.get("content")) or text(value.get("text"))):
            return found
    for key in ("thinking_blocks", "reasoning_details"):
        told = [t for b in mappings(message.get(key)) for k in ("thinking", "text", "summary") if (t := text(b.get(k)))]
        if told:
            return "\n".join(told)
    return None
