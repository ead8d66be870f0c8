"""Necessary conditions on the raw text, so that most texts need not be folded at all (rule-engine.md section 5).

All helpers share one pass over the text: RE2 tells in one go which of their stems it may hold.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import re2

# Folded stems by helper; `<` and `>` stand for the edges of a word. A text in which a helper is true holds one of them.
_STEMS: Final[dict[str, str]] = {
    "lists_remaining_work": (
        "<next> follow remain outstanding leftover left-over unfinished pending <what <still> <left> <yet> todo to-do ["
        " prochain suivantes restant reste <encore> faire"
    ),
    "announces_action": (
        "<will> 'll> <shall> <going> <about> <let> <vais> <allons> appret laisse <point> occupe procede lance commence"
        " attaque passe"
    ),
    "asks_user": "? please <let> merci veuillez moi confirme",
    "closing": "<any further <other> <more> <feel <need> autre besoin hesite",
}
# Letters as they may stand in the raw text before accents are dropped.
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
# such a text may hold every stem. Listed here is what ordinary English and French texts consist of.
_UNUSUAL: Final = (
    r"[^\x00-\x7F\x{A0}«»°·´×÷ß-öø-ÿÀ-ÖØ-ÞŒœŸʹʼ\x{2002}-\x{200A}\x{2010}-\x{2015}‘’‛“”„•…\x{202F}′€"
    r"\x{2190}-\x{21FF}\x{2200}-\x{22FF}\x{2500}-\x{27BF}\x{1F300}-\x{1F6FF}\x{1F900}-\x{1FAFF}]"
)


def _as_written(char: str) -> str:
    if char in "<>":
        return r"(?:\b|_)"  # an underscore beside a word may be an emphasis mark
    return _ACCENTED.get(char) or str(re2.escape(char))


def _triggers() -> Any:
    found = re2.Set.SearchSet()
    for stems in _STEMS.values():
        found.Add("(?i)" + "|".join("".join(map(_as_written, stem)) for stem in stems.split()))
    found.Add(_UNUSUAL)
    found.Compile()
    return found


_TRIGGERS: Final = _triggers()
_NAMES: Final = tuple(_STEMS)
_NONE: Final[frozenset[str]] = frozenset()
_ALL: Final = frozenset(_NAMES)


@lru_cache(maxsize=64)
def possible(text: str) -> frozenset[str]:
    """The names of those whose phrases the text may hold; the others are surely false.

    Kept for the last texts, since several helpers ask for the same one.
    """
    # a lone surrogate cannot be encoded; nothing is lost by reading a question mark in its place
    found = _TRIGGERS.Match(text.encode("utf-8", "replace"))
    if not found:
        return _NONE
    return _ALL if len(_NAMES) in found else frozenset(_NAMES[at] for at in found)
