"""Open WebUI export: a tree of messages and the current one (section 4, 16)."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any, Final

from chats.domain.formats.documents import Document, Head
from chats.domain.formats.drafts import Call, ChatDraft, Reading
from chats.domain.formats.parts import Content, read_content
from chats.domain.formats.problems import ReadingProblem
from chats.domain.formats.reading_rows import Item, read_rows, share
from chats.domain.formats.trees import chats_of, ends
from chats.domain.formats.values import at, label, mapping, mappings, moment, scalars, shown, text

FORMAT: Final = "open-webui"
_OPENED: Final = re.compile(r"<details([^<>]*)>")
_CLOSED: Final = "</details>"
_ATTRIBUTE: Final = re.compile(r'\b([\w-]{1,100})="([^"]*)"')
_SUMMARY: Final = re.compile(r"^\s*<summary>.*?</summary>\s*", re.DOTALL)
_BLANKS: Final = re.compile(r"\s*")
_QUOTE: Final = re.compile(r"^> ?", re.MULTILINE)


def recognise(head: Head) -> float:
    return share(head, lambda row: _history(row) is not None)


def _history(row: dict[str, Any]) -> dict[str, Any] | None:
    for holder in (mapping(row.get("chat")), row):
        nodes = at(holder, "history", "messages")
        if isinstance(nodes, dict) and sum("role" in mapping(m) for m in nodes.values()) * 2 >= len(nodes):
            return holder
    return None


def read(document: Document, reading: Reading) -> Iterator[Item]:
    return read_rows(document.rows(), reading, lambda row: _chats(mapping(row), reading))


def _parent(node: dict[str, Any]) -> str | None:
    return label(node.get("parentId"))


def _chats(row: dict[str, Any], reading: Reading) -> Iterator[Item]:
    chat = _history(row)
    if chat is None:
        raise ReadingProblem("no_messages")
    nodes = {k: v for k, v in mapping(at(chat, "history", "messages")).items() if isinstance(v, dict)}
    found = ends(nodes, _parent, label(at(chat, "history", "currentId")))
    copy = mappings(chat.get("messages"))
    if not found and not copy:
        raise ReadingProblem("no_messages")
    if found:
        yield from chats_of(found, reading, _parent, nodes, lambda path: _chat(row, chat, path, reading))
    else:
        yield _chat(row, chat, copy, reading).record()


def _chat(row: dict[str, Any], chat: dict[str, Any], messages: list[dict[str, Any]], reading: Reading) -> ChatDraft:
    draft = ChatDraft(reading, FORMAT)
    draft.external_id = label(row.get("id")) or label(chat.get("id"))
    draft.title = text(row.get("title")) or text(chat.get("title"))
    draft.metadata = scalars({k: row.get(k, chat.get(k)) for k in ("created_at", "updated_at", "timestamp")})
    if chat.get("models"):
        draft.metadata["models"] = chat["models"]
    system = text(at(chat, "params", "system")) or text(chat.get("system"))
    if system is not None:
        draft.add("system", system)
    for message in messages:
        _add(draft, message)
    return draft


def _add(draft: ChatDraft, message: dict[str, Any]) -> None:
    role = label(message.get("role")) or "user"
    given: dict[str, Any] = {"created_at": moment(message.get("timestamp")), "ref": label(message.get("id"))}
    content = read_content(message.get("content"))
    for file in mappings(message.get("files")):
        content.add_placeholder("image" if file.get("type") == "image" else "file", file)
    if role != "assistant":
        draft.add(role, content, **given)
        return
    given["model"] = text(message.get("model"))
    usage = {k: v for k, v in mapping(message.get("usage")).items() if isinstance(v, (int, float))}
    add_marked_answer(draft, content, usage=usage or None, **given)


def add_marked_answer(draft: ChatDraft, content: Content, **given: Any) -> None:
    """An answer whose text holds `<details>` blocks: thinking, and calls with their results, which split it."""
    told = content.text
    said: list[str] = []
    thoughts: list[str] = []
    calls: list[tuple[Call, str | None]] = []
    position = 0
    for start, end, attributes, body in _blocks(told):
        kind = attributes["type"]
        before = told[position:start].strip()
        if before:
            if calls:
                _flush(draft, said, thoughts, calls, given)
                said, thoughts, calls = [], [], []
            said.append(before)
        position = end
        if kind == "reasoning":
            if calls:
                _flush(draft, said, thoughts, calls, given)
                said, thoughts, calls = [], [], []
            thoughts.append(_QUOTE.sub("", _SUMMARY.sub("", html.unescape(body))).strip())
        else:
            call = Call(attributes.get("id"), attributes.get("name") or "unknown", attributes.get("arguments"))
            result = attributes.get("result") if attributes.get("done") != "false" else None
            calls.append((call, result))
    rest = told[position:].strip() if position else told
    if rest and calls:
        _flush(draft, said, thoughts, calls, given)
        said, thoughts, calls = [], [], []
    if rest or not position:
        said.append(rest)
    if content.parts:
        given["parts"] = content.parts
    if said or thoughts or calls:
        _flush(draft, said, thoughts, calls, given)


def _blocks(told: str) -> Iterator[tuple[int, int, dict[str, str], str]]:
    """Start, end, attributes and body of each block of thinking or calls; the white space after it belongs to it."""
    opened = _OPENED.search(told)
    while opened is not None:
        attributes = {k: html.unescape(v) for k, v in _ATTRIBUTE.findall(opened.group(1))}
        end = opened.end()
        if attributes.get("type") in ("reasoning", "tool_calls"):
            closed = told.find(_CLOSED, end)
            if closed < 0:
                return
            end = _BLANKS.match(told, closed + len(_CLOSED)).end()  # type: ignore[union-attr]  # fits nothing, too
            yield opened.start(), end, attributes, told[opened.end() : closed]
        opened = _OPENED.search(told, end)


def _flush(
    draft: ChatDraft,
    said: list[str],
    thoughts: list[str],
    calls: list[tuple[Call, str | None]],
    given: dict[str, Any],
) -> None:
    cleaner = draft.reading.cleaner
    for call, _ in calls:
        inner = cleaner.parse_if_json(call.arguments or "")
        call.arguments = inner if isinstance(inner, dict) else call.arguments
        quoted = _unquoted(call.arguments, draft)
        call.arguments = quoted
    index = draft.add(
        "assistant",
        "\n".join(said),
        calls=[c for c, _ in calls],
        reasoning="\n".join(thoughts) or None,
        **given,
    )
    for n, (_, result) in enumerate(calls):
        if result is not None:
            call_id = draft.details[index].tool_calls[n].id
            draft.add("tool", shown(_unquoted(result, draft)), tool_call_id=call_id, ref=given.get("ref"))


def _unquoted(value: Any, draft: ChatDraft) -> Any:
    """Attributes hold JSON; a text in quotes is the text, which may be JSON once more."""
    if not isinstance(value, str) or not value.startswith('"'):
        return value
    try:
        inner = draft.reading.cleaner.parse(value)
    except ReadingProblem:
        return value
    return inner if isinstance(inner, str) else value
