"""A title for a chat whose source gives none.

Programs often write the same preamble before each task, so that the first line says nothing of the chat. The title is
then the line after a mark of the task (`ISSUE:`, `<pr_description>`, `## My request`), else the first line in which the
chat differs from those imported with it, else the beginning of the first text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final

from chats.domain.record import ChatRecord

LENGTH: Final = 300
# A preamble is looked for in so many lines of a chat, and a title isn't looked for behind them.
LINES: Final = 100
LINE_LENGTH: Final = 500
# Preambles that an import remembers from one batch to the next.
KEPT: Final = 200
# A first message of so many lines may be all preamble; a short one that many chats share is what they were asked.
LONG: Final = 5

_THING = (
    r"(?:issue|task|problem|problem statement|pull request|question|request|query|goal|objective|"
    r"tâche|problème|question|demande|requête|objectif|consigne)"
)
_TAG = re.compile(r"<[\w-]*(?:issue|pr_description|task|problem|question|request|query|goal|objective)[\w-]*>", re.I)
_LABEL = re.compile(
    rf"(?P<head>#+\s*|\*\*)?(?:(?:the|my|your|user|github|la|le|ma|mon|votre)\s+)*{_THING}"
    r"(?:\s+(?:description|text|for\s+\w+))?\s*(?P<end>:|\*\*)?[:*\s]*",
    re.I,
)
_TITLE = re.compile(r"(?:#+\s*|\*\*)?(?:title|subject|titre|objet)\s*:[\s*]*(?P<title>\S.*)", re.I)
_DECORATION = re.compile(r"^(?:#+\s+|\*\*(?=.*\*\*$))|\*\*$")


def title_of(record: ChatRecord) -> str:
    """The title of a chat by itself, of one line and at most 300 characters; empty when nobody says anything in it."""
    return _titled(record, _first_text(record), 0)


class Preambles:
    """What the chats of one import begin with alike. It learns batch by batch, and holds little."""

    def __init__(self) -> None:
        self._shared: dict[str, list[str]] = {}

    def titles(self, batch: Sequence[ChatRecord]) -> list[str]:
        """The titles of these chats, in their order."""
        all_lines = [_leading_lines(record) for record in batch]
        groups: dict[str, list[list[str]]] = {}
        for lines in all_lines:
            if lines:
                groups.setdefault(lines[0], []).append(lines)
        for first, members in groups.items():
            known = self._shared.pop(first, None)
            alike = [*([known] if known else []), *members]
            if len(alike) > 1:
                self._shared[first] = _common(alike)
        for first in list(self._shared)[:-KEPT]:
            del self._shared[first]
        return [
            _titled(record, lines, len(self._shared.get(lines[0], ())) if lines else 0)
            for record, lines in zip(batch, all_lines, strict=True)
        ]


def _titled(record: ChatRecord, lines: Sequence[str], shared: int) -> str:
    if record.title:
        return _flat(record.title)
    for line in _marked(lines, shared):
        return _plain(line)
    if 0 < shared < len(lines):
        return _plain(lines[shared])
    return _flat(next((text for text in _texts(record) if text.strip()), ""))


def _marked(lines: Sequence[str], shared: int) -> Iterator[str]:
    """Lines that a mark announces, or that name themselves the title; those of the preamble announce nothing."""
    for number, line in enumerate(lines):
        named = _TITLE.fullmatch(line)
        if named and number >= shared:
            yield named["title"]
        elif _is_mark(line) and number + 1 < len(lines) and number + 1 >= shared and not _is_mark(lines[number + 1]):
            following = _TITLE.fullmatch(lines[number + 1])
            yield following["title"] if following else lines[number + 1]


def _is_mark(line: str) -> bool:
    label = _LABEL.fullmatch(line)
    return bool(_TAG.fullmatch(line) or (label and (label["head"] or label["end"])))


def _texts(record: ChatRecord) -> Iterator[str]:
    """What people said; nudges of a runtime are nobody's words."""
    for message, details in zip(record.chat.messages, record.details, strict=True):
        if message.role == record.chat.human_role and details.nudge_code is None:
            yield message.content


def _first_text(record: ChatRecord) -> list[str]:
    return next((lines for text in _texts(record) if (lines := _lines(text))), [])


def _leading_lines(record: ChatRecord) -> list[str]:
    """The lines of the first text, and those of the others where the first is long enough to be a preamble."""
    found: list[str] = []
    for text in _texts(record):
        found += _lines(text)
        if len(found) >= LINES or 0 < len(found) < LONG:
            break
    return found[:LINES]


def _lines(text: str) -> list[str]:
    stripped = (line.strip()[:LINE_LENGTH] for line in text[: LINES * LINE_LENGTH].splitlines())
    return [line for line in stripped if line][:LINES]


def _common(alike: Sequence[Sequence[str]]) -> list[str]:
    """The leading lines that all have."""
    return [line for line, *_rest in takewhile(lambda row: len(set(row)) == 1, zip(*alike, strict=False))]


def _plain(line: str) -> str:
    return _flat(_DECORATION.sub("", line))


def _flat(text: str) -> str:
    return text.strip().replace("\n", " ")[:LENGTH]
