"""Where each character of a rendered text came from: a line of the template, and a message."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from chats.domain.chat_templates.compiling import CompiledTemplate
from chats.domain.chat_templates.requests import Origin

_LINES = re.compile("[^\n]*\n|[^\n]+")
_MAX_PIECES = 20_000
# Shorter contents ("ok", "1") turn up in template text and other messages too often to say where they came from.
_SHORTEST_TRACED_CONTENT = 4


class Tracer:
    """Where each piece of the output came from: the running frame knows its line and holds the message.

    A loop over messages has the very dict among its locals, and the innermost loop counts. A message picked by
    `{% set m = messages[0] %}` counts on lines that name it. Where the content of another message stands in the
    piece, that part is told to be its own: templates like to put the system message into the first user turn.
    """

    def __init__(self, compiled: CompiledTemplate, messages: list[dict[str, Any]]) -> None:
        self._compiled = compiled
        self._index_by_id = {id(message): index for index, message in enumerate(messages)}
        self._lines = template_lines(compiled.text)
        self._contents = _traceable_contents(messages, compiled.text)
        self._origins: list[Origin] = []

    def note(self, running: Any, piece: str, start: int) -> None:
        if len(self._origins) >= _MAX_PIECES:
            return
        frame = running
        while frame.gi_yieldfrom is not None and hasattr(frame.gi_yieldfrom, "gi_frame"):
            frame = frame.gi_yieldfrom
        line = self._compiled.line_of(frame.gi_frame.f_lineno)
        message = self._message_of(frame.gi_frame.f_locals, line)
        if "\n" in piece[:-1] and self._is_template_text(piece, line):
            for number, part in enumerate(_LINES.findall(piece)):
                self._add(start, start + len(part), line + number, message)
                start += len(part)
            return
        at = start
        for begin, end, index in self._contents_in(piece, message):
            self._add(at, start + begin, line, message)
            self._add(start + begin, start + end, line, index)
            at = start + end
        self._add(at, start + len(piece), line, message)

    def _is_template_text(self, piece: str, line: int) -> bool:
        """Whether the piece stands in the template as it is, so that each of its lines has a line there."""
        count = piece.count("\n")
        return piece in "\n".join(self._lines[line - 1 : line + count]) + "\n"

    def _add(self, start: int, end: int, line: int, message: int | None) -> None:
        if start == end:
            return
        last = self._origins[-1] if self._origins else None
        if last is not None and last.end == start and (last.line, last.message) == (line, message):
            self._origins[-1] = Origin(last.start, end, line, message)
            return
        self._origins.append(Origin(start, end, line, message))

    def _message_of(self, variables: dict[str, Any], line: int) -> int | None:
        best, depth = None, 0
        for name, value in variables.items():
            index = self._index_by_id.get(id(value))
            if index is None or not name.startswith("l_"):
                continue
            level, _, own_name = name[2:].partition("_")
            if not level.isdigit() or int(level) < depth:
                continue
            if int(level) == 0 and not self._line_names(line, own_name):
                continue
            best, depth = index, int(level)
        return best

    def _line_names(self, line: int, name: str) -> bool:
        text = self._lines[line - 1] if line <= len(self._lines) else ""
        return re.search(rf"\b{re.escape(name)}\b", text) is not None

    def _contents_in(self, piece: str, own: int | None) -> list[tuple[int, int, int]]:
        if len(piece) < _SHORTEST_TRACED_CONTENT:
            return []
        found: list[tuple[int, int, int]] = []
        for content, index in self._contents:
            at = piece.find(content) if index != own else -1
            if at >= 0 and all(at >= end or at + len(content) <= begin for begin, end, _ in found):
                found.append((at, at + len(content), index))
        return sorted(found)

    def origins(self, length: int) -> tuple[Origin, ...]:
        """In order of the text and cut at its end, which continuing a message moves forward."""
        return tuple(
            o if o.end <= length else Origin(o.start, length, o.line, o.message)
            for o in self._origins
            if o.start < length
        )


def _traceable_contents(messages: list[dict[str, Any]], template: str) -> list[tuple[str, int]]:
    """Texts that one message alone has and the template hasn't, longest first, with the message's index."""
    owners: dict[str, int | None] = {}
    for index, message in enumerate(messages):
        for text in _texts_of(message.get("content")):
            owners[text] = index if text not in owners else None
    texts = [(t, i) for t, i in owners.items() if i is not None and t not in template]
    return sorted(texts, key=lambda pair: -len(pair[0]))


def _texts_of(content: Any) -> Iterator[str]:
    parts = content if isinstance(content, list) else [content]
    for part in parts:
        text = part.get("text") if isinstance(part, dict) else part
        if isinstance(text, str) and len(text.strip()) >= _SHORTEST_TRACED_CONTENT:
            yield text.strip()


def template_lines(text: str) -> list[str]:
    """The lines as jinja2 counts them: by CRLF, CR and LF, and by no other character that ends a line elsewhere."""
    return re.split("\r\n|\r|\n", text)
