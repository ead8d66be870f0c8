"""SillyTavern chats: a header line, then one line a message; groups; swipes (section 4, 10)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from chats.domain.formats.documents import Document, Head
from chats.domain.formats.drafts import Call, ChatDraft, Reading
from chats.domain.formats.exchanges import set_aside
from chats.domain.formats.problems import ReadingProblem
from chats.domain.formats.reading_rows import Item, read_whole
from chats.domain.formats.values import at, label, mapping, mappings, moment, sequence, shown, text
from chats.domain.header import EleanorFrameworkHeader

FORMAT: Final = "sillytavern"
_HEADER_KEYS: Final = frozenset({"user_name", "character_name", "chat_metadata"})
_UNUSED: Final = "unused"


def recognise(head: Head) -> float:
    if not head.rows:
        return 0.0
    rows = [mapping(r) for r in head.rows]
    first = 1 if _is_header(rows[0]) else 0
    if first and len(rows) == 1:
        return 1.0
    if not first and not _is_line(rows[0]):
        return 0.0
    return (first + sum(map(_is_line, rows[first:]))) / len(rows)


def _is_header(row: dict[str, Any]) -> bool:
    return bool(row.keys() & _HEADER_KEYS) and "mes" not in row


def _is_line(row: dict[str, Any]) -> bool:
    return isinstance(row.get("mes"), str) and ("is_user" in row or "name" in row)


def read(document: Document, reading: Reading) -> Iterator[Item]:
    return read_whole(document, reading, lambda rows: _chats(reading.objects(rows), reading))


def _chats(rows: list[dict[str, Any]], reading: Reading) -> Iterator[Item]:
    header = rows[0] if rows and _is_header(rows[0]) else {}
    lines = [r for r in rows if _is_line(r)]
    for _ in range(len(rows) - len(lines) - bool(header)):
        reading.report.note_skipped("no_record", reading.place)
    if not lines:
        raise ReadingProblem("no_messages")
    for i, line in enumerate(lines):
        others = _other_swipes(line)
        reading.report.other_branches += len(others)
        for swipe in others if reading.options.all_branches else []:
            record = _chat(header, [*lines[:i], {**line, "mes": swipe}], reading).record()
            record.external_id = None
            yield set_aside(record, "branch", reading)
    yield _chat(header, lines, reading).record()


def _other_swipes(line: dict[str, Any]) -> list[str]:
    """The alternatives that were not taken: what `mes` says is the one that was."""
    swipes = [s for s in sequence(line.get("swipes")) if isinstance(s, str)]
    chosen = line.get("swipe_id")
    if isinstance(chosen, int) and 0 <= chosen < len(swipes):
        return [s for i, s in enumerate(swipes) if i != chosen]
    return [s for s in swipes if s != line["mes"]]


def _chat(header: dict[str, Any], lines: list[dict[str, Any]], reading: Reading) -> ChatDraft:
    draft = ChatDraft(reading, FORMAT)
    user, char = _name(header.get("user_name")), _name(header.get("character_name"))
    speakers = {n for x in lines if not x.get("is_user") and not _is_note(x) and (n := label(x.get("name")))}
    is_group = len(speakers) > 1 or any("original_avatar" in x for x in lines)
    user = user or next((n for x in lines if x.get("is_user") and (n := label(x.get("name")))), None)
    if not is_group:
        char = char or next(iter(speakers), None)
    draft.chat_type = "group" if is_group else "single"
    draft.header = EleanorFrameworkHeader(
        source="ST", user=user, char=None if is_group else char, chat_type=draft.chat_type
    )
    created = label(header.get("create_date"))
    if created is not None and char is not None and not is_group:
        draft.external_id = f"{char} - {created}"
    draft.title = char if not is_group else ", ".join(sorted(speakers)) or None
    if created is not None:
        draft.metadata["create_date"] = created
    if integrity := text(at(header, "chat_metadata", "integrity")):
        draft.metadata["integrity"] = integrity
    for i, line in enumerate(lines):
        _add(draft, line, f"message {i}")
    return draft


def _name(value: Any) -> str | None:
    found = label(value)
    return None if found == _UNUSED else found


def _is_note(line: dict[str, Any]) -> bool:
    """Hidden from the model, or told by the narrator."""
    return line.get("is_system") is True or at(line, "extra", "type") == "narrator"


def _add(draft: ChatDraft, line: dict[str, Any], ref: str) -> None:
    extra = mapping(line.get("extra"))
    created = moment(line.get("send_date"))
    invocations = mappings(extra.get("tool_invocations"))
    if invocations:
        calls = [Call(label(i.get("id")), label(i.get("name")) or "unknown", i.get("parameters")) for i in invocations]
        index = draft.add("assistant", "", calls=calls, created_at=created, model=text(extra.get("model")), ref=ref)
        for n, invocation in enumerate(invocations):
            if "result" in invocation:
                call_id = draft.details[index].tool_calls[n].id
                draft.add("tool", shown(invocation["result"]), tool_call_id=call_id, created_at=created, ref=ref)
        return
    role = "system" if _is_note(line) else "user" if line.get("is_user") is True else "assistant"
    parts = [{"placeholder": "image"}] if extra.get("image") else None
    content = "\n".join([line["mes"], "[image]"]) if parts and line["mes"] else "[image]" if parts else line["mes"]
    draft.add(
        role,
        content,
        name=label(line.get("name")),
        reasoning=text(extra.get("reasoning")) if role == "assistant" else None,
        model=text(extra.get("model")) if role == "assistant" else None,
        created_at=created,
        parts=parts,
        ref=ref,
    )
