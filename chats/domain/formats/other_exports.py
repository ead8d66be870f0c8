"""Invariant traces and the Grok export (section 4, 28)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from chats.domain.formats.documents import Document, Head
from chats.domain.formats.drafts import ChatDraft, Reading
from chats.domain.formats.openai_chat import add_message
from chats.domain.formats.problems import ReadingProblem
from chats.domain.formats.reading_rows import Item, read_rows, share
from chats.domain.formats.trees import chats_of, ends
from chats.domain.formats.values import at, label, mapping, moment, scalars, sequence, text

INVARIANT: Final = "invariant"
GROK: Final = "grok-export"


def recognise_invariant(head: Head) -> float:
    """Rows of messages, with lines of annotations or metadata between."""
    fits = share(head, lambda r: _is_trace(r) or r.keys() <= {"metadata", "annotations"})
    return fits if any(_is_trace(mapping(r)) for r in head.rows) else 0.0


def _is_trace(row: dict[str, Any]) -> bool:
    messages = row.get("messages")
    return isinstance(messages, list) and bool(messages) and all("role" in mapping(m) for m in messages)


def read_invariant(document: Document, reading: Reading) -> Iterator[Item]:
    return read_rows(document.rows(), reading, lambda row: [_trace(row, reading)])


def _trace(row: Any, reading: Reading) -> Item:
    known = {"messages": row} if isinstance(row, list) else mapping(row)
    if not _is_trace(known):
        raise ReadingProblem("no_messages")
    draft = ChatDraft(reading, INVARIANT)
    draft.external_id = label(known.get("id"))
    draft.metadata = scalars(known, without=frozenset({"id"}))
    for key in ("metadata", "extra_metadata"):
        draft.metadata.update(scalars(mapping(known.get(key))))
    if known.get("annotations"):
        draft.metadata["annotations"] = len(sequence(known["annotations"]))
    for message in reading.objects(known["messages"]):
        if message.get("role") == "tool" and message.get("tool_call_id") is None:
            message = {**message, "tool_call_id": draft.open_call(label(message.get("name")))}
        add_message(draft, message)
    return draft.record()


def recognise_grok(head: Head) -> float:
    top = head.top
    if top is not None and isinstance(top.get("conversations"), list):
        rows = top["conversations"]
        return 1.0 if rows and all(_is_grok(mapping(r)) for r in rows) else 0.0
    return share(head, _is_grok)


def _is_grok(row: dict[str, Any]) -> bool:
    return isinstance(row.get("conversation"), dict) and isinstance(row.get("responses"), list)


def read_grok(document: Document, reading: Reading) -> Iterator[Item]:
    top = document.head.top
    rows = document.items("conversations") if top is not None and "conversations" in top else document.rows()
    return read_rows(rows, reading, lambda row: _conversations(mapping(row), reading))


def _parent(response: dict[str, Any]) -> str | None:
    return label(response.get("parent_response_id"))


def _conversations(row: dict[str, Any], reading: Reading) -> Iterator[Item]:
    about = mapping(row.get("conversation"))
    responses = [mapping(r.get("response")) or r for r in reading.objects(row.get("responses"))]
    if not responses:
        raise ReadingProblem("no_messages")
    nodes = {i: r for r in responses if (i := label(r.get("response_id")) or label(r.get("_id"))) is not None}
    linked = len(nodes) == len(responses) and any(_parent(r) in nodes for r in responses)
    found = ends(nodes, _parent, label(about.get("leaf_response_id"))) if linked else []
    if found:
        yield from chats_of(found, reading, _parent, nodes, lambda path: _conversation(about, path, reading))
    else:
        yield _conversation(about, responses, reading).record()


def _conversation(about: dict[str, Any], responses: list[dict[str, Any]], reading: Reading) -> ChatDraft:
    draft = ChatDraft(reading, GROK)
    draft.external_id = label(about.get("conversation_id")) or label(about.get("id"))
    draft.title = text(about.get("title"))
    draft.metadata = scalars({k: about.get(k) for k in ("create_time", "modify_time", "summary", "temporary")})
    for response in responses:
        role = (label(response.get("sender")) or "human").lower()
        model = text(response.get("model")) or text(at(response, "metadata", "requestModelDetails", "modelId"))
        created = response.get("create_time")
        draft.add_parts(
            role,
            response.get("message"),
            reasoning=text(response.get("thinking_trace")) if role == "assistant" else None,
            model=model if role == "assistant" else None,
            created_at=moment(created) or moment(label(at(created, "$date", "$numberLong"))),
            ref=label(response.get("response_id")),
        )
    return draft
