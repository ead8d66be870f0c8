"""ChatGPT data export: a tree of nodes and the current one (section 4, 14)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Final

from chats.domain.formats.documents import Document, Head
from chats.domain.formats.drafts import Call, ChatDraft, Reading
from chats.domain.formats.parts import Content
from chats.domain.formats.problems import ReadingProblem
from chats.domain.formats.reading_rows import Item, read_rows, share
from chats.domain.formats.trees import chats_of, ends
from chats.domain.formats.values import at, label, mapping, mappings, moment, scalars, sequence, shown, text

FORMAT: Final = "chatgpt-export"
_REASONING: Final = frozenset({"thoughts", "reasoning_recap"})
_CONTEXT: Final = frozenset({"user_editable_context", "model_editable_context"})
_QUOTES: Final = frozenset({"tether_quote", "tether_browsing_display"})


def recognise(head: Head) -> float:
    return share(head, lambda row: isinstance(row.get("mapping"), dict))


def read(document: Document, reading: Reading) -> Iterator[Item]:
    return read_rows(document.rows(), reading, lambda row: _chats(mapping(row), reading))


def _parent(node: dict[str, Any]) -> str | None:
    return label(node.get("parent"))


def _chats(row: dict[str, Any], reading: Reading) -> Iterator[Item]:
    nodes = {k: v for k, v in mapping(row.get("mapping")).items() if isinstance(v, dict)}
    if not nodes:
        raise ReadingProblem("no_messages")
    found = ends(nodes, _parent, label(row.get("current_node")), _is_shown)
    if not found:
        raise ReadingProblem("no_messages")
    yield from chats_of(found, reading, _parent, nodes, lambda path: _chat(row, path, reading))


def _is_shown(node: dict[str, Any]) -> bool:
    message = node.get("message")
    if not isinstance(message, dict):
        return False
    if at(message, "metadata", "is_visually_hidden_from_conversation") is True:
        return False
    return message.get("weight") != 0 or isinstance(message.get("weight"), bool)


def _chat(row: dict[str, Any], nodes: list[dict[str, Any]], reading: Reading) -> ChatDraft:
    draft = ChatDraft(reading, FORMAT)
    draft.external_id = label(row.get("conversation_id")) or label(row.get("id"))
    draft.title = text(row.get("title"))
    draft.metadata = scalars({k: row.get(k) for k in ("default_model_slug", "gizmo_id", "is_archived")})
    for key in ("create_time", "update_time"):
        if (when := moment(row.get(key))) is not None:
            draft.metadata[key] = when.isoformat()
    reader = _Nodes(draft)
    for node in nodes:
        if not _is_shown(node):
            if isinstance(node.get("message"), dict):
                reading.report.note_skipped("hidden", reading.place)
            continue
        reader.add(node["message"], label(node.get("id")))
    reader.close()
    return draft


class _Nodes:
    """Adds messages of a branch; thoughts wait for the answer that they led to."""

    def __init__(self, draft: ChatDraft) -> None:
        self.draft = draft
        self._thoughts: list[str] = []
        self._waiting: deque[str] = deque()

    def add(self, message: dict[str, Any], ref: str | None) -> None:
        role = label(at(message, "author", "role")) or "unknown"
        value = mapping(message.get("content"))
        kind = text(value.get("content_type")) or "text"
        if kind in _REASONING:
            self._thoughts.extend(_thoughts(value))
            return
        content = self._content(value, kind)
        given: dict[str, Any] = {
            "created_at": moment(message.get("create_time")),
            "ref": label(message.get("id")) or ref,
        }
        if role == "system" and not content.text.strip() and kind not in _CONTEXT:
            self.draft.reading.report.note_skipped("empty_system", self.draft.reading.place)
        elif kind in _CONTEXT:
            self.draft.add("system", content, **given)
        elif role == "assistant":
            self._add_answer(message, content, given)
        elif role == "tool":
            name = label(at(message, "author", "name"))
            call_id = self._waiting.popleft() if self._waiting else None
            self.draft.add("tool", content, name=name, tool_call_id=call_id, **given)
        else:
            self.close()
            self.draft.add(role, content, name=label(at(message, "author", "name")), **given)

    def close(self) -> None:
        """Thoughts that no answer followed are an answer without text."""
        if self._thoughts:
            self.draft.add("assistant", "", reasoning="\n".join(self._thoughts))
            self._thoughts = []

    def _add_answer(self, message: dict[str, Any], content: Content, given: dict[str, Any]) -> None:
        reasoning, self._thoughts = "\n".join(self._thoughts) or None, []
        known = mapping(message.get("metadata"))
        finish = text(at(known, "finish_details", "type"))
        recipient = text(message.get("recipient")) or "all"
        calls: list[Call] = []
        if recipient != "all":
            calls = [Call(None, recipient, content.text)]
            content.texts = []
        index = self.draft.add(
            "assistant",
            content,
            calls=calls,
            reasoning=reasoning,
            finish=finish,
            model=text(known.get("model_slug")),
            **given,
        )
        if calls:
            self._waiting.append(self.draft.details[index].tool_calls[0].id)

    def _content(self, value: dict[str, Any], kind: str) -> Content:
        content = Content()
        for key in ("user_profile", "user_instructions", "model_set_context"):
            if kind in _CONTEXT and (told := text(value.get(key))):
                content.add_text(told)
        for part in sequence(value.get("parts")):
            if isinstance(part, str):
                content.add_text(part)
            elif isinstance(part, dict):
                self._add_part(content, part)
        for key in ("text", "result") if kind not in _CONTEXT else ():
            if not content.texts and isinstance(value.get(key), str):
                content.add_text(value[key])
        if kind in _QUOTES and (title := text(value.get("title")) or text(value.get("url"))):
            content.texts.insert(0, title)
        return content

    def _add_part(self, content: Content, part: dict[str, Any]) -> None:
        kind = text(part.get("content_type")) or ""
        if isinstance(part.get("text"), str):
            content.add_text(part["text"])
        elif "image" in kind:
            content.add_placeholder("image", part)
        elif "audio" in kind or "video" in kind:
            content.add_placeholder("audio" if "audio" in kind else "file", part)
        elif kind:
            content.add_placeholder("file", part)
        else:
            self.draft.reading.report.note_unknown_field("content.parts[]")


def _thoughts(value: dict[str, Any]) -> list[str]:
    """Summaries and texts of thoughts; a recap is one text."""
    found: list[str] = []
    for thought in mappings(value.get("thoughts")):
        told = [t for k in ("summary", "content") if (t := text(thought.get(k)))]
        if told:
            found.append("\n".join(told))
    if not found:
        found = [p if isinstance(p, str) else shown(p) for p in sequence(value.get("parts")) if p]
    if not found and (told_text := text(value.get("content"))):
        found.append(told_text)
    return found
