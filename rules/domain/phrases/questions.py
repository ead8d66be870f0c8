"""Whether an answer asks the user something, and its last paragraph (continuation.md section 11, extensions)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import re2

from rules.domain.phrases.prose import fenced_lines, is_question, located_prose, original_span, prose
from rules.domain.phrases.triggers import possible

_LAST_SENTENCES: Final = 3

_REQUEST: Any = re2.compile(
    r"\bplease (?:(?:also|just|kindly|first|do|then) )?(?:confirm|provide|share|let me know|reply|choose|select|specify"
    r"|tell|respond|clarify|send|verify|type|enter)\b"
    r"|\blet me know\b"
    r"|\b(?:merci de|veuillez) (?:(?:me|nous|m'en|bien vouloir|donc|d'abord|egalement|aussi) )*"
    r"(?:confirmer|preciser|fournir|choisir|indiquer)\b"
    r"|\bdi(?:te)?s[- ]moi\b|\bconfirmez?(?:[- ]moi)? (?:si|que|qu')"
)
_CLOSING: Any = re2.compile(
    r"\bany(?:thing)? (?:other|else|further|more)\b|\bfurther (?:assistance|questions?|help|changes?)\b"
    r"|\bother questions?\b|\bmore questions?\b|\bany questions?\b|\bfeel free\b|\bneed help\b"
    r"|\bautre chose\b|\bd'autres questions?\b|\bbesoin d'aide\b|\bn'hesitez?\b"
)
_WORD: Any = re2.compile(r"[a-z]|\d\d|\?")  # a list number alone is no sentence


def asks_user(text: str | None) -> bool:
    """Whether one of the last three sentences asks the user something; closing formulas do not count."""
    if not text or "asks_user" not in possible(text):
        return False
    return any(True for _ in _requests(prose(text)))


def find_asks_user(text: str | None) -> list[tuple[int, int]]:
    """The places of the sentences that ask, as code points of the text, last one first."""
    if not text:
        return []
    sentences, origins = located_prose(text)
    return [original_span(origins, start, end) for start, end in _requests(sentences)]


def last_paragraph(text: str | None) -> str:
    """The last block of the text, blocks of closing formulas at the end passed over; empty when it ends in code."""
    return "" if text is None else text[slice(*find_last_paragraph(text))]


def find_last_paragraph(text: str | None) -> tuple[int, int]:
    """Its place in the text, as code points; (0, 0) when it is empty."""
    if not text:
        return 0, 0
    lines = text.splitlines(keepends=True)
    in_code = fenced_lines(lines) if "```" in text or "~~~" in text else [False] * len(lines)
    last_block: tuple[int, int] | None = None
    end = len(text)
    at = len(lines)
    while at > 0:
        line = lines[at - 1]
        if line.isspace() and not in_code[at - 1]:
            end -= len(line)
            at -= 1
            continue
        if in_code[at - 1]:
            return 0, 0
        start = end
        while at > 0 and not (lines[at - 1].isspace() and not in_code[at - 1]):
            start -= len(lines[at - 1])
            at -= 1
        block = start, start + len(text[start:end].rstrip())
        if "closing" not in possible(text) or not _closes(text[slice(*block)]):
            return block
        last_block = last_block or block
        end = start
    return last_block or (0, 0)


def _closes(block: str) -> bool:
    """Whether a block holds closing formulas only."""
    sentences = [sentence for sentence in prose(block).split(b"\n") if _WORD.search(sentence) is not None]
    return bool(sentences) and all(_CLOSING.search(sentence) is not None for sentence in sentences)


def _requests(sentences: bytes) -> Iterator[tuple[int, int]]:
    seen = 0
    end = len(sentences)
    while end >= 0 and seen < _LAST_SENTENCES:
        start = sentences.rfind(b"\n", 0, end) + 1
        sentence = sentences[start:end]
        if sentence and _WORD.search(sentence) is not None:
            seen += 1
            if (is_question(sentence) or _REQUEST.search(sentence) is not None) and _CLOSING.search(sentence) is None:
                yield start, end
        end = start - 1
