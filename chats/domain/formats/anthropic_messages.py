"""Anthropic Messages: blocks become calls, results, reasoning and text, in their order (section 4, 3)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from chats.domain.details import ResultStatus
from chats.domain.formats.documents import Document, Head
from chats.domain.formats.drafts import Call, ChatDraft, Reading, offered_tools
from chats.domain.formats.exchanges import Exchanges, run_of_exchanges, with_key
from chats.domain.formats.marks import is_anthropic_request
from chats.domain.formats.parts import Content, read_part
from chats.domain.formats.problems import Problem, ReadingProblem
from chats.domain.formats.reading_rows import Item, read_rows, read_whole, share
from chats.domain.formats.streams import is_stream_of, message_of, unwrapped, whole_response
from chats.domain.formats.values import label, mapping, sequence, shown, text, whole

FORMAT: Final = "anthropic-messages"
BLOCKS: Final = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use"})
_CALLS: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_OPAQUE: Final = frozenset({"encrypted_content", "encrypted_index", "signature"})
_SETTINGS: Final = ("model", "max_tokens", "temperature", "top_p", "top_k")


def recognise(head: Head) -> float:
    if head.shape != "object" and is_stream_of(head.rows, "message_start"):
        return 1.0
    if head.rows and all(_is_message(r) for r in head.rows):
        return 1.0 if any(has_blocks(r) for r in head.rows) else 0.0
    return share(head, _fits)


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and value.get("role") in ("user", "assistant", "system") and "content" in value


def has_blocks(message: Any) -> bool:
    """Whether a message holds blocks that only this form has."""
    return any(text(mapping(b).get("type")) in BLOCKS for b in sequence(mapping(message).get("content")))


def _fits(row: dict[str, Any]) -> bool:
    row = _of_batch(row)
    if "exchanges" in row:
        pairs = [(mapping(p["request"]), p.get("response")) for p in with_key(row["exchanges"], "messages")]
        if not all(_is_message(m) for request, _ in pairs for m in sequence(request["messages"])):
            return False
        return any(_fits_pair(request, response) for request, response in pairs)
    if isinstance(row.get("request"), dict):
        return _fits_pair(row["request"], row.get("response"))
    if row.get("type") == "message" and isinstance(row.get("content"), list) and row.get("role") == "assistant":
        return "parentUuid" not in row
    return _fits_pair(row, row.get("response"))


def _of_batch(row: dict[str, Any]) -> dict[str, Any]:
    """The request or the answer that a line of a batch holds."""
    for holder, key in ((row, "params"), (mapping(row.get("result")), "message")):
        if "custom_id" in row and isinstance(holder.get(key), dict):
            inner: dict[str, Any] = holder[key]
            return inner if key == "message" else {"id": row["custom_id"], **inner}
    return row


def _fits_pair(request: dict[str, Any], response: Any) -> bool:
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages or not all(_is_message(m) for m in messages):
        return False
    if (
        mapping(unwrapped(response)).get("type") == "message"
        or is_stream_of(response, "message_start")
        or any(has_blocks(m) for m in messages)
    ):
        return True
    return is_anthropic_request(request)


def read(document: Document, reading: Reading) -> Iterator[Item]:
    if text(mapping(next(iter(document.head.rows), None)).get("type")) == "message_start":
        yield from read_whole(document, reading, lambda events: completed({}, events, reading))
        return
    if document.head.rows and all(_is_message(r) for r in document.head.rows):
        yield from _read_messages_file(document, reading)
        return
    chain = Exchanges(reading, "messages", lambda request, response: completed(request, response, reading))
    yield from read_rows(document.rows(), reading, lambda row: _convert(row, reading, chain))
    yield from chain.finish()


def _read_messages_file(document: Document, reading: Reading) -> Iterator[Item]:
    draft = ChatDraft(reading, FORMAT)

    def add(row: Any) -> Iterator[Item]:
        for message in reading.objects([row]):
            add_message(draft, message)
        return iter(())

    for item in read_rows(document.rows(), reading, add):
        yield Problem(item.code, item.place, item.args, chat_lost=False) if isinstance(item, Problem) else item
    reading.place = document.place
    yield draft.record() if len(draft) else Problem("no_messages", document.place)


def _convert(row: Any, reading: Reading, chain: Exchanges) -> Iterator[Item]:
    if isinstance(row, list):
        row = {"messages": row}
    if not isinstance(row, dict):
        raise ReadingProblem("wrong_type", expected="object", found=type(row).__name__)
    row = _of_batch(row)
    if "exchanges" in row:
        yield from run_of_exchanges(
            row["exchanges"], reading, "messages", lambda request, response: completed(request, response, reading)
        )
    elif isinstance(row.get("request"), dict):
        yield from chain.add(row["request"], row.get("response"))
    elif row.get("type") == "message" and "messages" not in row:
        yield from completed({}, row, reading)
    else:
        yield from completed(row, row.get("response"), reading)


def completed(request: dict[str, Any], response: Any, reading: Reading) -> Iterator[Item]:
    """A request's messages with the answer appended."""
    draft = ChatDraft(reading, FORMAT)
    fill_request(draft, request)
    answer = mapping(whole_response(response, reading.cleaner, message_of))
    if answer.get("type") == "message" or "content" in answer:
        add_response(draft, answer)
    elif response is not None:
        reading.report.note_unknown_field("response")
    yield draft.record()


def fill_request(draft: ChatDraft, request: dict[str, Any]) -> None:
    draft.tools = offered_tools(request.get("tools"), draft.reading.cleaner)
    draft.external_id = label(request.get("id")) or label(request.get("conversation_id"))
    for key in _SETTINGS:
        if isinstance(request.get(key), (str, int, float)):
            draft.metadata[key] = request[key]
    if request.get("system"):
        draft.add_parts("system", request["system"])
    for i, message in enumerate(sequence(request.get("messages"))):
        if not isinstance(message, dict):
            raise ReadingProblem("wrong_type", path=f"messages[{i}]", expected="object", found=type(message).__name__)
        add_message(draft, message)


def add_response(draft: ChatDraft, answer: dict[str, Any]) -> None:
    add_answer(
        draft,
        answer.get("content"),
        finish=text(answer.get("stop_reason")),
        model=text(answer.get("model")),
        usage=mapping(answer.get("usage")) or None,
    )


def add_message(draft: ChatDraft, message: dict[str, Any], **given: Any) -> None:
    """Add one message of this form: several canonical ones when results or server tools are in it."""
    role = label(message.get("role")) or "user"
    content = message.get("content")
    if role == "assistant":
        given.setdefault("finish", text(message.get("stop_reason")))
        given.setdefault("model", text(message.get("model")))
        given.setdefault("usage", mapping(message.get("usage")) or None)
        add_answer(draft, content, **given)
    else:
        add_request(draft, role, content, **{k: v for k, v in given.items() if k in ("created_at", "ref")})


def add_request(
    draft: ChatDraft, role: str, content: Any, *, created_at: datetime | None = None, ref: str | None = None
) -> None:
    """A user message: a tool message for each result, then what text remains."""
    if not isinstance(content, list):
        draft.add_parts(role, content, created_at=created_at, ref=ref)
        return
    rest = Content()
    unknown: list[str] = []
    results = 0
    for block in content:
        kind = mapping(block).get("type")
        if kind == "tool_result" or (isinstance(kind, str) and kind.endswith("_tool_result")):
            add_result(draft, block, created_at=created_at, ref=ref)
            results += 1
        else:
            read_part(rest, block, unknown)
    for field in unknown:
        draft.reading.report.note_unknown_field(f"messages[].{field}")
    if rest.texts:
        draft.add(role, rest, created_at=created_at, ref=ref)
    elif not results and unknown:
        draft.reading.report.note_skipped("no_text", draft.reading.place)
    elif not results:
        draft.add(role, "", created_at=created_at, ref=ref)


def add_result(draft: ChatDraft, block: dict[str, Any], **given: Any) -> None:
    """A tool message of a `tool_result` or `…_tool_result` block."""
    content, status, exit_code = result_of(block)
    draft.add(
        "tool", content, tool_call_id=label(block.get("tool_use_id")), status=status, exit_code=exit_code, **given
    )


def result_of(block: dict[str, Any]) -> tuple[str | Content, ResultStatus, int | None]:
    value = block.get("content")
    failed = block.get("is_error") is True
    if isinstance(value, dict):
        failed = failed or str(value.get("type", "")).endswith("_error")
        code = whole(value.get("return_code"))
        return _text_of_object(value), "error" if failed else "ok", code
    if isinstance(value, list) and all(mapping(v).get("type") in ("text", "image", "document") for v in value):
        content = Content()
        for part in value:
            read_part(content, part)
        return content, "error" if failed else "ok", None
    return shown(_without_opaque(value)), "error" if failed else "ok", None


def _text_of_object(value: dict[str, Any]) -> str:
    if "stdout" in value or "stderr" in value:
        return "\n".join(t for t in (text(value.get("stdout")), text(value.get("stderr"))) if t)
    return text(value.get("text")) or shown(_without_opaque(value))


def _without_opaque(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_opaque(v) for k, v in value.items() if k not in _OPAQUE}
    if isinstance(value, list):
        return [_without_opaque(v) for v in value]
    return value


def add_answer(draft: ChatDraft, blocks: Any, *, finish: str | None = None, **given: Any) -> None:
    """One answer; what follows the result of a tool that the server ran is an answer of its own."""
    if not isinstance(blocks, list):
        draft.add_parts("assistant", blocks, finish=finish, **given)
        return
    answer, calls, unknown = Content(), list[Call](), list[str]()
    added = 0
    for block in blocks:
        known = mapping(block)
        kind = text(known.get("type"))
        if kind in _CALLS:
            calls.append(Call(label(known.get("id")), label(known.get("name")) or "unknown", known.get("input")))
        elif kind is not None and kind.endswith("tool_result"):
            if answer.texts or calls or answer.reasoning:
                draft.add("assistant", answer, calls=calls, **given)
                added += 1
                answer, calls = Content(), []
            add_result(draft, known, ref=given.get("ref"), created_at=given.get("created_at"))
            added += 1
        elif kind == "compaction":
            draft.add_parts("system", known.get("content"), ref=given.get("ref"))
            added += 1
        elif kind not in ("redacted_thinking", "container_upload"):
            read_part(answer, block, unknown)
    for field in unknown:
        draft.reading.report.note_unknown_field(f"messages[].{field}")
    if answer.texts or calls or answer.reasoning or not added:
        draft.add("assistant", answer, calls=calls, finish=finish, **given)
    elif draft.messages[-1].role == "assistant" and finish is not None:
        draft.set_finish(finish)
