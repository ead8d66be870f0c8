"""Folding: the form of a text in which phrases are looked for, never shown (continuation.md section 11)."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

APOSTROPHES: Final = "\u2018\u2019\u201b\u02bc\u02b9\u2032\u00b4`"
DASHES: Final = "\u2010\u2011\u2012\u2013\u2014\u2212"

_LIGATURES: Final = {"œ": "oe", "æ": "ae"}
_KEPT_CHARACTERS: Final = 20_000  # a text of all of Unicode must not make a table grow without bound


def folded_character(char: str) -> str:
    """What one character becomes: empty for a mark or a zero-width character, several for a ligature.

    Every step of folding works on single characters once marks are dropped: composing (NFKC) and decomposing again
    changes nothing that is kept. White space stays as it is; it is collapsed over the whole text.
    """
    if char in APOSTROPHES:  # before NFKC, which splits U+00B4 into a space and an accent
        return "'"
    kept = []
    for part in unicodedata.normalize("NFKD", char):
        if part in APOSTROPHES:
            kept.append("'")
        elif part in DASHES:
            kept.append("-")
        elif unicodedata.category(part) not in ("Mn", "Me", "Cf"):
            kept.extend(_LIGATURES.get(c, c) for c in part.casefold())
    return "".join(
        c for c in unicodedata.normalize("NFKD", "".join(kept)) if unicodedata.category(c) not in ("Mn", "Me")
    )


def prose_character(char: str) -> str:
    """The folded character in ASCII: other letters become `x`, symbols a space, typographic quotes `"`.

    All phrases are ASCII once folded, so a placeholder changes no answer, and offsets in bytes and characters agree.
    """
    if char.isascii():
        return folded_character(char)
    if char.isspace():
        return "\x0b" if char in "\x85\u2028\u2029" else " "  # a line end that never joins with a "\r" before it
    return "".join(c if c.isascii() else _placeholder(c) for c in folded_character(char))


def _placeholder(char: str) -> str:
    if unicodedata.category(char)[0] in "LMN":
        return "x"
    return '"' if char in "“”„«»" else " "


class _Table(dict[int, str]):
    """What `str.translate` asks for a character; each answer is worked out once."""

    def __init__(self, *, prose: bool) -> None:
        super().__init__()
        self._translate = prose_character if prose else folded_character

    def __missing__(self, code: int) -> str:
        value = self._translate(chr(code))
        if len(self) < _KEPT_CHARACTERS:
            self[code] = value
        return value


_FOREIGN: Final = re.compile(r"[^\x00-\x7f]+")  # few characters of a text: translating the rest would be slow
FOLDED: Final = _Table(prose=False)
PROSE: Final = _Table(prose=True)


def fold(text: str) -> str:
    """Plain apostrophes and dashes, no accents or zero-width characters, case folded, white space collapsed."""
    plain = text if text.isascii() else _FOREIGN.sub(lambda run: run[0].translate(FOLDED), text)
    return " ".join(plain.lower().replace("`", "'").split())


def prose_characters(text: str) -> str:
    """The text with each character as `prose_character` gives it. White space stays as it is."""
    plain = text if text.isascii() else _FOREIGN.sub(lambda run: run[0].translate(PROSE), text)
    return plain.lower().replace("`", "'")
