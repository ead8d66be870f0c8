"""Gemini CLI sessions and AI Studio prompt files (section 4, 24)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from chats.domain.details import ResultStatus
from chats.domain.formats.documents import Document, Head
from chats.domain.formats.drafts import Call, ChatDraft, Reading
from chats.domain.formats.gemini_contents import ContentReader
from chats.domain.formats.parts import Content, read_content
from chats.domain.formats.problems import ReadingProblem
from chats.domain.formats.reading_rows import Item, read_rows, share
from chats.domain.formats.values import at, label, mapping, mappings, moment, scalars, sequence, shown, text

CLI: Final = "gemini-cli"
STUDIO: Final = "aistudio"
_STATUS: Final[dict[str, ResultStatus]] = {"success": "ok", "error": "error", "cancelled": "not_run"}


def recognise_cli(head: Head) -> float:
    return share(
        head,
        lambda row: (
            ("projectHash" in row or "sessionId" in row)
            and isinstance(row.get("messages"), list)
            and any(mapping(m).get("type") in ("user", "gemini") for m in row["messages"])
        ),
    )


def read_cli(document: Document, reading: Reading) -> Iterator[Item]:
    return read_rows(document.rows(), reading, lambda row: [_session(mapping(row), reading)])


def _session(row: dict[str, Any], reading: Reading) -> Item:
    draft = ChatDraft(reading, CLI)
    draft.external_id = label(row.get("sessionId"))
    draft.title = text(row.get("summary"))
    draft.metadata = scalars(row, without=frozenset({"sessionId", "summary"}))
    for message in reading.objects(row.get("messages")):
        kind = message.get("type")
        if kind == "user":
            draft.add(
                "user",
                _plain(message.get("content")),
                created_at=moment(message.get("timestamp")),
                ref=label(message.get("id")),
            )
        elif kind == "gemini":
            _add_answer(draft, message)
        else:
            reading.report.note_skipped(f"message:{kind}"[:60], reading.place)
    return draft.record()


def _plain(value: Any) -> Content:
    return read_content(mapping(value).get("parts", value))


def _add_answer(draft: ChatDraft, message: dict[str, Any]) -> None:
    created = moment(message.get("timestamp"))
    ref = label(message.get("id"))
    given = mappings(message.get("toolCalls"))
    thoughts = [
        ": ".join(t for k in ("subject", "description") if (t := text(thought.get(k))))
        for thought in mappings(message.get("thoughts"))
    ]
    index = draft.add(
        "assistant",
        _plain(message.get("content")),
        calls=[Call(label(c.get("id")), label(c.get("name")) or "unknown", c.get("args")) for c in given],
        reasoning="\n".join(t for t in thoughts if t) or None,
        model=text(message.get("model")),
        usage=mapping(message.get("tokens")) or None,
        created_at=created,
        ref=ref,
    )
    for n, call in enumerate(given):
        status = _STATUS.get(text(call.get("status")) or "")
        if status is None and call.get("result") is None:
            continue
        draft.add(
            "tool",
            _result(call),
            name=label(call.get("name")),
            tool_call_id=draft.details[index].tool_calls[n].id,
            status=status,
            created_at=moment(call.get("timestamp")) or created,
            ref=ref,
        )


def _result(call: dict[str, Any]) -> str:
    """The text of a call's function responses, else what was displayed."""
    told: list[str] = []
    for part in sequence(call.get("result")):
        response = at(part, "functionResponse", "response")
        known = mapping(response)
        value = known.get("output", known.get("error", response)) if known else mapping(part).get("text")
        if value is not None:
            told.append(shown(value))
    if not told and isinstance(call.get("result"), str):
        told.append(call["result"])
    if not told and isinstance(call.get("resultDisplay"), str):
        told.append(call["resultDisplay"])
    return "\n".join(told)


def recognise_studio(head: Head) -> float:
    return share(head, lambda row: isinstance(at(row, "chunkedPrompt", "chunks"), list))


def read_studio(document: Document, reading: Reading) -> Iterator[Item]:
    return read_rows(document.rows(), reading, lambda row: [_prompt(mapping(row), reading)])


def _prompt(row: dict[str, Any], reading: Reading) -> Item:
    draft = ChatDraft(reading, STUDIO)
    draft.metadata = scalars(mapping(row.get("runSettings")))
    model = text(draft.metadata.get("model"))
    contents = ContentReader(draft)
    instruction = row.get("systemInstruction")
    told = text(mapping(instruction).get("text")) or text(instruction)
    if told is not None:
        draft.add("system", told)
    elif mapping(instruction).get("parts"):
        contents.add_system(instruction)
    answer: int | None = None
    thoughts: list[str] = []
    for chunk in reading.objects(at(row, "chunkedPrompt", "chunks")):
        created = moment(chunk.get("createTime"))
        if chunk.get("role") != "model":
            answer = None
            draft.add(label(chunk.get("role")) or "user", _chunk(chunk), created_at=created)
            continue
        if chunk.get("isThought") is True:
            thoughts.append(text(chunk.get("text")) or "")
            continue
        reasoning, thoughts = "\n".join(t for t in thoughts if t) or None, []
        finish = text(chunk.get("finishReason"))
        content = _chunk(chunk)
        if answer is None:
            answer = draft.add(
                "assistant", content, reasoning=reasoning, finish=finish, model=model, created_at=created
            )
        else:
            draft.extend_answer(answer, content.text, reasoning=reasoning, finish=finish, parts=content.parts)
    if thoughts:
        draft.add("assistant", "", reasoning="\n".join(thoughts), model=model)
    if not len(draft):
        raise ReadingProblem("no_messages")
    return draft.record()


def _chunk(chunk: dict[str, Any]) -> Content:
    content = Content()
    if isinstance(chunk.get("text"), str):
        content.add_text(chunk["text"])
    for key, value in chunk.items():
        if isinstance(value, dict) and key.startswith(("drive", "inline")):
            kind = "image" if "Image" in key else "audio" if "Audio" in key else "file"
            content.add_placeholder(kind, value)
    return content
