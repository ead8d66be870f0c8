"""Whether an answer lists work that is left (continuation.md section 11, lists_remaining_work).

All patterns are matched on prose: folded, in ASCII, one sentence a line. An expression counts unless something around
it takes it back; what is looked at before and after it is bounded, so the time stays proportional to the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import re2

from rules.domain.phrases.french import INFINITIVE, NOT_A_VERB, PRONOUN
from rules.domain.phrases.prose import is_question, located_prose, original_span, prose, sentence_end
from rules.domain.phrases.triggers import possible

_BEFORE: Final = 160  # characters looked at before and after an expression
_AFTER: Final = 200

_NOUN: Final = (
    r"(?:action items?|(?:work|task|step|item|to-?do|issue|point|piece|part|test|fix|change|failure|error|bug|file"
    r"|module|section|migration|requirement)(?:s|es)?)\b"
)
_LEFT_OVER: Final = r"\b(?:remaining|outstanding|left-?over|unfinished|pending)"
_BETWEEN: Final = r"(?: (?:\d+|two|three|four|five|six|seven|eight|nine|ten|few|open|small|minor|major|failing|unit))?"
_DONE_LATER: Final = (
    r"(?:implemented|done|finished|completed?|covered|handled|fixed|migrated|tested|wired|added|addressed)\b"
)
_IL_RESTE: Final = (
    r"\bil (?:ne |n')?(?:(?:me |nous |vous |te |lui |leur |m'|t')?(?:en )?)reste(?:ra|rait)?"
    r"(?: (?:plus|encore|toujours|aussi|donc|juste|seulement|maintenant))*"
)
_TO_DO: Final = r"a (?:(?:bien|encore|aussi|juste|simplement|ensuite|enfin) )?" + PRONOUN + "{0,2}" + INFINITIVE
_NOM: Final = (
    r"(?:travail|travaux|etape|tache|point|chose|action|fichier|test|correction|element|module|cas|bug|bogue|probleme"
    r"|erreur|migration|partie|section|ticket|modification|fonction|endroit|appel|verification)s?\b"
)
_RESTANT: Final = (
    r"\b(?:taches?|etapes?|travail|travaux|points?|elements?|corrections?|tests?|fichiers?) restant(?:e|s|es)?\b"
)
_FAIT: Final = r"(?:fait|implemente|termine|traite|corrige|teste|migre|ajoute|couvert)(?:e|s|es)?\b"
_START: Final = r"(?m:^)(?:[-+#] ?)*(?:\d+[.)] )?"

# The kind of an expression decides which exceptions look at it.
_EXPRESSIONS: Final[dict[str, str]] = {
    "next": r"\bnext[ -]steps?\b",
    "left_over": _LEFT_OVER + _BETWEEN + " " + _NOUN,
    "remains": r"\b" + _NOUN + r" (?:still |also )?remains?\b",
    "to_be": r"\b(?:remains?|yet) to be [a-z]+",
    "other": "|".join(
        [
            r"\bfollow[- ]?ups? (?:work|tasks?|items?|steps?)\b",
            r"\bwhat(?:'s| is|s) (?:still )?(?:left|remaining|missing)\b",
            r"\bwhat (?:still )?remains\b",
            _START + r"(?:still )?remaining(?: \(\d+\))? ?:",
            r"\bstill (?:needs?|has|have) to\b",
            r"\bstill to (?:do|come|implement|fix|write|be [a-z]+)\b",
            r"\bstill (?:missing|needed|outstanding)\b",
            r"\bleft to (?:do|be done|implement|fix|write|finish|complete|test|migrate|handle)\b",
            r"(?:\bnot|n't) yet (?:been |fully |completely )*" + _DONE_LATER,
            r"(?:\bnot|n't) (?:been |fully |completely )*" + _DONE_LATER + r" yet\b",
            r"\bto-?dos? ?:",
            _START + r"to-?dos?\.?(?m:$)",
            _START + r"\[ \] \S",
        ]
    ),
    "prochaine": r"\bprochaines? etapes?\b|\betapes suivantes\b",
    "restant": _RESTANT,
    "il_reste_a": _IL_RESTE + r" (?:que |qu')?" + _TO_DO,
    "il_reste_nom": _IL_RESTE + r"(?: que)? (?:[a-z0-9-]+[ ']){0,3}" + _NOM,
    "il_reste": _START + r"(?:et |donc |ensuite,? )?" + _IL_RESTE + r" ?:",
    "reste_a": r"\breste(?:nt|ra|ront|rait|raient)?(?: (?:encore|donc|aussi|toujours|juste|plus))* (?:que |qu')?"
    + _TO_DO,
    "qu_il_reste": r"\b(?:ce )?qu'il (?:(?:me|nous|vous|te|lui|leur) )?reste(?:ra|rait)?\b",
    "autre": "|".join(
        [
            r"\breste a faire\b",
            r"\bpas encore (?:ete )?" + _FAIT,
            r"\bencore a (?:faire|implementer|corriger|traiter|tester|migrer|ecrire|ajouter)\b",
            _START + r"a faire ?:",
        ]
    ),
}
_ANY: Any = re2.compile("|".join(f"({pattern})" for pattern in _EXPRESSIONS.values()))
_KINDS: Final = tuple(_EXPRESSIONS)


def _before(pattern: str) -> Any:
    """A pattern that has to end where the expression starts."""
    return re2.compile("(?:" + pattern + r")\z")


_COMPLETED: Final = r"(?:completed?|finished|resolved|addressed|handled|closed|fixed|implemented)"
_WORDS: Final = r"(?:[^\s;:.,]+ ){0,4}"
_ACHEVE: Final = r"(?:fait|termine|fini|acheve|corrige|resolu|traite|regle|realise|effectue|implemente)(?:e|s|es)?\b"

_NEGATED: Any = _before(
    r"\b(?:no|nothing|none|without|zero|any|rien|aucune?) (?:[^\s;:.]+ ){0,3}(?:[^\s;:.]+')?"
    r"|(?:\A|[ (])0 |\bsans |\b(?:pas|plus) (?:de |d')(?:[a-z]+ )?"
)
_COMPLETED_BEFORE: Any = _before(r"\b" + _COMPLETED + " " + _WORDS)
_NOT_COMPLETED_BEFORE: Any = _before(
    r"(?:\b(?:not|never|cannot|without)|n't) (?:yet |been |fully )*" + _COMPLETED + " " + _WORDS
)
_COMPLETED_AFTER: Any = re2.compile(
    r"\A[^;:]{0,100}?\b(?:is|are|has|have|was|were)(?: (?:now|all|also|been))* "
    r"(?:done|completed?|finished|resolved|fixed|closed|addressed)\b"
)
_ACHEVE_BEFORE: Any = _before(
    r"(?:\b|')(?:ai|as|a|avons|avez|ont) (?:(?:deja|bien|aussi|donc) )?" + _ACHEVE + " " + _WORDS + "(?:l')?"
)
_TOUS_BEFORE: Any = _before(r"\btou(?:te)?s les (?:[^\s;:.,]+ ){0,2}")
_SONT_AFTER: Any = re2.compile(r"\A[^;:]{0,60}? (?:sont|ont ete)\b")
_ACHEVE_AFTER: Any = re2.compile(
    r"\A (?:est|sont|a ete|ont ete)(?: (?:maintenant|desormais|bien|aussi|tous|toutes|donc|enfin|deja|egalement))* "
    + _ACHEVE
)
_EMPTY_AFTER: Any = re2.compile(
    r"\A[^:]{0,40}(?::| -) ?[(\-]? ?(?:(?:none|nothing|n/?a|nil|zero|0|rien|aucune?|neant)(?:[^\w]|\z)|no[.!]?\z)"
)
_EMPTY_BELOW: Any = re2.compile(r"\A ?:?\n+(?:[-+] ?)?\(?(?:none|nothing|n/?a|nil|rien|aucune?|neant)\)?[.!]?(?:\n|\z)")
_OFFER_BEFORE: Any = _before(
    r"\b(?:guid(?:e|es|ing)|walk(?:s|ing)?|help(?:s|ing)?|assist(?:s|ing|ance)?|inform(?:s|ed|ing)?|tell(?:s|ing)?"
    r"|advis(?:e|es|ed|ing)|updat(?:e|es|ing)|instructions?|details?|information) (?:[^\s;:.]+ ){0,12}"
    r"|\bwith (?:the|your) "
)
_OFFRE_BEFORE: Any = _before(r"(?:\b|')(?:aid|guid|accompagn|inform|expliqu)[a-z]* (?:[^\s;:.]+ ){0,12}(?:[dl]')?")
_TO_SUBMIT_AFTER: Any = re2.compile(
    r"\A (?:is|are|would be|will be)(?: now| then| simply| just)? to (?:submit|conclude)\b"
)
_REMAIN_AFTER: Any = re2.compile(
    r"\A(?:[.!,;:)]|\z| -| (?:to|for|in|on|at|before|after|until|open|undone|pending|outstanding|incomplete|and|but"
    r"|which|that|here|now|failing|broken"
    r"|un(?:resolved|fixed|finished|addressed|solved|implemented|tested|handled|covered))\b)"
)
_IN_PLACE_AFTER: Any = re2.compile(r"\A (?:to be seen|in (?:place|effect|use|force|sync)|on track)\b")
_SET_PHRASE: Any = re2.compile(r"\A(?:vrai|possible|evident|clair|entendu|disponible)")
_SET_PHRASE_INSIDE: Any = re2.compile(r"reste(?:ra|rait)? (?:vrai|possible|evident|clair|entendu|disponible)")
_NOT_A_VERB: Any = re2.compile(NOT_A_VERB)
_JE_BEFORE: Any = _before(r"\b(?:je|tu) (?:(?:ne|me|te) |[mtn]')?")
_NO_LONGER: Any = re2.compile(r"reste(?:ra|rait)? pas\b|\b(?:ne |n').*reste(?:ra|rait)? plus\b")
_ONLY: Any = re2.compile(r"\bque\b|\bqu'")
_NOTHING_INSIDE: Any = re2.compile(r"\b(?:rien|aucune?)\b")


def lists_remaining_work(text: str | None) -> bool:
    """Whether an answer says that work is left, in English or French. None and empty give False."""
    if not text or "lists_remaining_work" not in possible(text):
        return False
    return any(True for _ in _expressions(prose(text)))


def find_lists_remaining_work(text: str | None) -> list[tuple[int, int]]:
    """The places of the expressions that say so, as code points of the text."""
    if not text:
        return []
    sentences, origins = located_prose(text)
    return [original_span(origins, start, end) for start, end in _expressions(sentences)]


def _expressions(sentences: bytes) -> Iterator[tuple[int, int]]:
    first = last = -1  # bounds of the sentence of the match before
    asked = False
    for match in _ANY.finditer(sentences):
        start, end = match.span()
        if start >= last:
            first, last = sentences.rfind(b"\n", 0, start) + 1, sentence_end(sentences, end)
            asked = is_question(sentences[first:last])
        if asked:
            continue
        kind = next(kind for group, kind in enumerate(_KINDS, 1) if match.start(group) >= 0)
        before = sentences[max(first, start - _BEFORE) : start]
        after = sentences[end : min(last, end + _AFTER)]
        if _NEGATED.search(before) or _said_empty(match.group(), after, sentences[end : end + _AFTER]):
            continue
        if not _EXCEPTIONS[kind](before, match.group(), after):
            yield start, end


def _said_empty(expression: bytes, after: bytes, below: bytes) -> bool:
    colon = b":" if expression.endswith(b":") else b""
    return _EMPTY_AFTER.search(colon + after) is not None or _EMPTY_BELOW.search(below) is not None


def _next_step_of_somebody_else(before: bytes, _: bytes, after: bytes) -> bool:
    return _OFFER_BEFORE.search(before) is not None or _TO_SUBMIT_AFTER.search(after) is not None


def _left_over_but_done(before: bytes, _: bytes, after: bytes) -> bool:
    if _COMPLETED_BEFORE.search(before) is not None and _NOT_COMPLETED_BEFORE.search(before) is None:
        return True
    return _COMPLETED_AFTER.search(after) is not None


def _remains_as_it_is(_: bytes, __: bytes, after: bytes) -> bool:
    return _REMAIN_AFTER.search(after) is None or _IN_PLACE_AFTER.search(after) is not None


def _offre(before: bytes, _: bytes, __: bytes) -> bool:
    return _OFFRE_BEFORE.search(before) is not None


def _restant_but_done(before: bytes, _: bytes, after: bytes) -> bool:
    if _TOUS_BEFORE.search(before) is not None and _SONT_AFTER.search(after) is not None:
        return True
    return _ACHEVE_BEFORE.search(before) is not None or _ACHEVE_AFTER.search(after) is not None


def _il_reste_rien(_: bytes, expression: bytes, after: bytes) -> bool:
    if _NOTHING_INSIDE.search(expression) is not None or _SET_PHRASE_INSIDE.search(expression) is not None:
        return True
    return _NO_LONGER.search(expression) is not None and _ONLY.search(expression) is None


def _il_reste_no_verb(before: bytes, expression: bytes, after: bytes) -> bool:
    return _NOT_A_VERB.search(expression) is not None or _il_reste_rien(before, expression, after)


def _reste_no_verb(before: bytes, expression: bytes, _: bytes) -> bool:
    return _NOT_A_VERB.search(expression) is not None or _JE_BEFORE.search(before) is not None


def _qu_il_reste_set_phrase(_: bytes, __: bytes, after: bytes) -> bool:
    return _SET_PHRASE.search(after.lstrip()) is not None


def _seen(_: bytes, expression: bytes, __: bytes) -> bool:
    return expression.endswith(b"to be seen")


def _none(_: bytes, __: bytes, ___: bytes) -> bool:
    return False


_EXCEPTIONS: Final[dict[str, Callable[[bytes, bytes, bytes], bool]]] = {
    "next": _next_step_of_somebody_else,
    "left_over": _left_over_but_done,
    "remains": _remains_as_it_is,
    "to_be": _seen,
    "other": _none,
    "prochaine": _offre,
    "restant": _restant_but_done,
    "il_reste_a": _il_reste_no_verb,
    "il_reste_nom": _il_reste_rien,
    "il_reste": _il_reste_rien,
    "reste_a": _reste_no_verb,
    "qu_il_reste": _qu_il_reste_set_phrase,
    "autre": _none,
}
