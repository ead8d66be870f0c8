"""Short approvals such as "ok", "go ahead", "vas-y" (continuation.md section 11, is_go_ahead)."""

from __future__ import annotations

import unicodedata
from typing import Final

from rules.domain.phrases.folding import FOLDED, fold

LONGEST_APPROVAL: Final = 40

_APPROVALS_ENGLISH: Final = """
ok, okay, okey, oki, k, kk, yes, yep, yeah, yup, ya, y, sure, sure thing, of course, absolutely, definitely, certainly,
affirmative, agreed, approved, approve, i approve, accepted, fine, fine by me, fine with me, sounds good,
sounds good to me, looks good, looks good to me, lgtm, works for me, that works, go, go go, go ahead, go ahead with it,
go ahead with that, go for it, go on, go with it, go with that, proceed, continue, carry on, keep going, keep on, do it,
do that, do so, do this, please do, please continue, please proceed, please go ahead, let's go, let's do it,
let's do that, make it so, ship it, you may proceed, you can proceed, you may continue, you can continue,
you may go ahead, you can go ahead, confirm, confirmed, i confirm, correct, right, exactly, start, begin, execute,
run it, apply it, implement it
"""
_APPROVALS_FRENCH: Final = """
d'accord, daccord, dac, d'acc, oui, ouais, ouip, mouais, vas-y, vas y, allez, allez-y, allez y, allons-y, allons y,
on y va, poursuis, poursuivez, procède, procédez, continuez, fais-le, fais le, fais ça, faites-le, faites le,
faites ça, c'est bon, c'est bon pour moi, c'est parti, c'est validé, bien sûr, entendu, ça marche, ça me va, ça roule,
ça me convient, je confirme, je valide, validé, valide, approuvé, j'approuve, lance, lance-toi, lance toi, lance-le,
lancez, lancez-vous, exécute-le, feu vert, banco, tout à fait, exact, exactement, absolument, certainement,
tu peux y aller, vous pouvez y aller, tu peux continuer, vous pouvez continuer, bonne idée
"""
_FILLERS_ENGLISH: Final = """
please, pls, plz, thanks, thank you, thx, ty, now, then, great, perfect, good, nice, cool, awesome, excellent, alright,
all right, all good, well, so, and, with it, with that, for me, by all means
"""
_FILLERS_FRENCH: Final = """
s'il te plaît, s'il vous plaît, stp, svp, merci, maintenant, alors, donc, parfait, super, génial, très bien, bien, et,
toi, je t'en prie, pour moi
"""


def _phrases(table: str) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(fold(phrase).split()) for phrase in table.split(","))


_APPROVALS: Final = _phrases(_APPROVALS_ENGLISH) | _phrases(_APPROVALS_FRENCH)
_FILLERS: Final = _phrases(_FILLERS_ENGLISH) | _phrases(_FILLERS_FRENCH)
_LONGEST_PHRASE: Final = max(map(len, _APPROVALS | _FILLERS))
_BEGINNING: Final = 200
_PUNCTUATION: Final = frozenset('.,;:!…"()[]{}*_~/«»“”')

Token = tuple[str, int, int]  # folded word, start and end in the original text


def is_go_ahead(text: str | None) -> bool:
    """Whether the whole text, of at most 40 characters, is an approval in English or French. None gives False."""
    return bool(find_is_go_ahead(text))


def find_is_go_ahead(text: str | None) -> list[tuple[int, int]]:
    """The places of the approvals in the text, as code points, when all of it is an approval; else none."""
    if text is None or not _short_enough(text):
        return []
    tokens = _tokens(text)
    split = _split(tokens)
    return [(tokens[start][1], tokens[end - 1][2]) for start, end in split or []]


def _short_enough(text: str) -> bool:
    if len(text) <= LONGEST_APPROVAL:
        return True
    if len(b"".join(text[:_BEGINNING].encode("ascii", "ignore").split())) > LONGEST_APPROVAL:
        return False  # most long texts end here; composing a whole one would be slow
    visible = "".join(c for c in unicodedata.normalize("NFC", text) if not _zero_width(c))
    return len(" ".join(visible.split())) <= LONGEST_APPROVAL


def _zero_width(char: str) -> bool:
    return unicodedata.category(char) == "Cf" or "\ufe00" <= char <= "\ufe0f"


def _tokens(text: str) -> list[Token]:
    """Folded words with their places. A question gives none."""
    tokens: list[Token] = []
    word, start, end = "", 0, 0
    for at, char in enumerate(text):
        for c in FOLDED[ord(char)]:
            if c == "?":
                return []
            if c.isspace() or c in _PUNCTUATION or unicodedata.category(c)[0] == "S":
                if word:
                    tokens.append((word, start, end))
                word = ""
                continue
            if not word:
                start = at
            word += c
            end = at + 1
    if word:
        tokens.append((word, start, end))
    return [trimmed for token in tokens if (trimmed := _without_outer_hyphens(token))[0]]


def _without_outer_hyphens(token: Token) -> Token:
    word, start, end = token
    stripped = word.strip("-")
    if stripped == word:
        return token
    before = len(word) - len(word.lstrip("-"))
    after = len(word) - len(word.rstrip("-"))
    return stripped, start + before, end - after


def _split(tokens: list[Token]) -> list[tuple[int, int]] | None:
    """The approvals of a split of all tokens into phrases with at least one approval, else None.

    Tries, from each place that can be reached, every phrase that starts there: at most 40 characters, so a handful.
    """
    words = [token[0] for token in tokens]
    reached: list[list[tuple[int, int]] | None] = [None] * (len(words) + 1)
    reached[0] = []
    for start in range(len(words)):
        found = reached[start]
        if found is None:
            continue
        for end in range(start + 1, min(start + _LONGEST_PHRASE, len(words)) + 1):
            phrase = tuple(words[start:end])
            if phrase in _APPROVALS:
                candidate = [*found, (start, end)]
            elif phrase in _FILLERS:
                candidate = found
            else:
                continue
            known = reached[end]
            if known is None or len(candidate) > len(known):
                reached[end] = candidate
    return reached[-1] or None
