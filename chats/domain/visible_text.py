"""Text cut into what can be shown as it is and what must be made visible (chat-templates.md, "Limits").

A rendered prompt may hold control characters, marks that turn the writing direction, characters without a width, and
lone surrogates, which no encoding accepts. Shown as they are they vanish, deceive or break the page.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

SegmentKind = Literal["text", "control", "direction", "invisible", "surrogate"]

# Line feed and tab are shown by the page itself.
_CONTROL = r"\x00-\x08\x0b-\x1f\x7f-\x9f"
_DIRECTION = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
# Not the joiners U+200C and U+200D, which scripts and emoji need.
_INVISIBLE = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b\u2028\u2029"
    "\u2060-\u2064\u206a-\u206f\u3164\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
)
_SURROGATE = "\ud800-\udfff"
_HIDDEN = re.compile(rf"([{_CONTROL}{_DIRECTION}{_INVISIBLE}{_SURROGATE}])\1*")
_KINDS: tuple[tuple[re.Pattern[str], SegmentKind], ...] = (
    (re.compile(f"[{_CONTROL}]"), "control"),
    (re.compile(f"[{_DIRECTION}]"), "direction"),
    (re.compile(f"[{_SURROGATE}]"), "surrogate"),
    (re.compile(f"[{_INVISIBLE}]"), "invisible"),
)


@dataclass(frozen=True, slots=True)
class Segment:
    """Characters `start` to `end` of the text and what to show for them: printable, and encodable in UTF-8.

    A hidden character, or `end - start` of the same, is a segment of its own; `shown` is then its sign (␀) or number
    (U+202E), `name` its Unicode name, empty where it has none. `text` segments are shown as they are.
    """

    start: int
    end: int
    kind: SegmentKind
    shown: str
    name: str = ""


def segments(text: str) -> tuple[Segment, ...]:
    """The whole text in order, every run of one hidden character on its own."""
    found: list[Segment] = []
    at = 0
    for match in _HIDDEN.finditer(text):
        if match.start() > at:
            found.append(Segment(at, match.start(), "text", text[at : match.start()]))
        found.append(_hidden(match))
        at = match.end()
    if at < len(text):
        found.append(Segment(at, len(text), "text", text[at:]))
    return tuple(found)


def _hidden(match: re.Match[str]) -> Segment:
    character = match[1]
    code = ord(character)
    shown = f"U+{code:04X}"
    if code < 0x20:
        shown = chr(0x2400 + code)
    elif code == 0x7F:
        shown = "\u2421"
    kind = next(kind for pattern, kind in _KINDS if pattern.match(character))
    return Segment(match.start(), match.end(), kind, shown, unicodedata.name(character, ""))


def has_hidden(text: str) -> bool:
    return _HIDDEN.search(text) is not None


def encodable(text: str) -> str:
    """The text with each lone surrogate as U+FFFD, so that it can be sent and stored; no place in it moves."""
    return re.sub(f"[{_SURROGATE}]", "\ufffd", text)
