"""What a search in French and English looks for: words without accents, by both Snowball stems, and exact phrases.

A text is kept in two forms. `stems` is the set of its words' stems, as plain ASCII tokens that every full-text index
takes as they are; each begins with a letter for its language (`w` for none). `words` is the text itself with its words
in small letters and one space between them, which is what a quoted phrase is looked for in.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import snowballstemmer

# Underscores part words, so that the name of a tool is found by any word in it.
_WORD: Final = re.compile(r"[^\W_]+")
_QUOTED: Final = re.compile(r"\"([^\"]*)\"|“([^”]*)”|«([^»]*)»")
WORD_LIMIT: Final = 40
STEM_LIMIT: Final = 40_000
CACHED_WORDS: Final = 200_000
# Between two texts of a chat, so that no phrase reaches over the border.
BORDER: Final = "\n"

_local = threading.local()  # a stemmer keeps state while it works


@dataclass(frozen=True, slots=True)
class IndexedText:
    """A text as the search index keeps it."""

    stems: str
    words: str


@dataclass(frozen=True, slots=True)
class Terms:
    """A search: of each group of stems one has to occur, and every phrase has to occur as it is.

    `impossible` marks a search that was typed but holds no word; it finds nothing.
    """

    groups: tuple[tuple[str, ...], ...] = ()
    phrases: tuple[str, ...] = ()
    impossible: bool = False


def indexed(texts: Iterable[str]) -> IndexedText:
    """The two forms of these texts together. A text beyond 40,000 different stems keeps the first ones of them."""
    found: dict[str, None] = {}
    parts = []
    for text in texts:
        words = words_of(text)
        if words:
            parts.append(" ".join(words))
            found.update(dict.fromkeys(words))
    stems: set[str] = set()
    for word in found:
        stems.update(stems_of(word))
        if len(stems) > STEM_LIMIT:
            break
    joined = f" {BORDER} ".join(parts)
    return IndexedText(" ".join(sorted(stems)), f" {joined} " if parts else "")


def parse(query: str) -> Terms:
    """What the person typed: words in any order, and phrases in quotes (`"…"`, `“…”`, `«…»`)."""
    phrases = []
    for found in _QUOTED.finditer(query):
        words = words_of("".join(group or "" for group in found.groups()))
        if words:
            phrases.append(words)
    rest = words_of(_QUOTED.sub(" ", query))
    wanted = list(dict.fromkeys([*rest, *(word for phrase in phrases for word in phrase)]))
    return Terms(
        groups=tuple(stems_of(word) for word in wanted),
        phrases=tuple(f" {' '.join(words)} " for words in phrases),
        impossible=not wanted and bool(query.strip()),
    )


def words_of(text: str) -> list[str]:
    """The words of a text in order, in small letters, accents kept."""
    if text.isascii():
        return _WORD.findall(text.lower())
    return _WORD.findall(unicodedata.normalize("NFC", text).casefold())


def folded(text: str) -> str:
    """The text without accents and other combining marks; œ and æ are written out."""
    if text.isascii():
        return text
    plain = "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))
    return plain.replace("œ", "oe").replace("æ", "ae")


@lru_cache(maxsize=CACHED_WORDS)
def stems_of(word: str) -> tuple[str, ...]:
    """The tokens under which a word is kept and looked for: what either stemmer makes of it, with and without accents.

    >>> stems_of("steps")
    ('estep', 'fstep')
    """
    word = word[:WORD_LIMIT]
    plain = folded(word)
    if not word.isalpha():  # numbers and ids have no inflection
        return ("w" + _ascii(plain),)
    found: dict[str, None] = {}
    for letter, stemmer in _stemmers():
        for form in dict.fromkeys((plain, word)):
            found[letter + _ascii(folded(stemmer.stemWord(form)) or plain)] = None
    return tuple(found)


def _ascii(stem: str) -> str:
    """Indexes differ in what they take for a letter outside ASCII; digits of the code points they take alike."""
    return stem if stem.isascii() else "0x" + stem.encode("utf-8", "replace").hex()


def _stemmers() -> tuple[tuple[str, snowballstemmer.stemmer], ...]:
    if not hasattr(_local, "stemmers"):
        _local.stemmers = (("e", snowballstemmer.stemmer("english")), ("f", snowballstemmer.stemmer("french")))
    stemmers: tuple[tuple[str, snowballstemmer.stemmer], ...] = _local.stemmers
    return stemmers
