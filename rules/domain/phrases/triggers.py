"""Necessary conditions on the raw text, so that most texts need not be folded at all (rule-engine.md section 5)."""

from __future__ import annotations

from typing import Any, Final

import re2

# Letters as they may stand in the raw text before accents are dropped, and characters that fold to nothing else.
_ACCENTED: Final = {
    "a": "[aàáâãäåÀÁÂÃÄÅ]",
    "c": "[cçÇ]",
    "e": "[eèéêëÈÉÊË]",
    "i": "[iìíîïÌÍÎÏ]",
    "n": "[nñÑ]",
    "o": "[oòóôõöÒÓÔÕÖ]",
    "u": "[uùúûüÙÚÛÜ]",
    "y": "[yýÿÝŸ]",
    "'": "['`´‘’‛ʼʹ′]",
}
# Anything else may fold to a letter or to nothing (full-width and mathematical letters, zero-width characters, marks):
# such a text is always folded. Listed here is what ordinary English and French texts hold.
_UNUSUAL: Final = (
    r"[^\x00-\x7F\x{A0}«»°·´×÷ß-öø-ÿÀ-ÖØ-ÞŒœŸʹʼ\x{2002}-\x{200A}\x{2010}-\x{2015}‘’‛“”„•…\x{202F}′€"
    r"\x{2190}-\x{21FF}\x{2200}-\x{22FF}\x{2500}-\x{27BF}\x{1F300}-\x{1F6FF}\x{1F900}-\x{1FAFF}]"
)


class Trigger:
    """Whether a text may hold one of some stems once it is folded; false means that it surely holds none."""

    def __init__(self, stems: str) -> None:
        """Takes folded stems with spaces between; `<` and `>` stand for the edges of a word."""
        words = ["".join(map(_as_written, stem)) for stem in stems.split()]
        self._found: Any = re2.compile("(?i)" + "|".join([*words, _UNUSUAL]))

    def may_hold(self, text: str) -> bool:
        # a lone surrogate cannot be encoded; nothing is lost by reading a question mark in its place
        return self._found.search(text.encode("utf-8", "replace")) is not None


def _as_written(char: str) -> str:
    if char in "<>":
        return r"(?:\b|_)"  # an underscore beside a word may be an emphasis mark
    return _ACCENTED.get(char) or str(re2.escape(char))
