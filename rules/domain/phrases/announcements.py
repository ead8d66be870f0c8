"""Whether an answer announces an action of its own (continuation.md section 11, announces_action)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import re2

from rules.domain.phrases.french import INFINITIVE, NOT_A_VERB, PRONOUN
from rules.domain.phrases.prose import is_question, located_prose, original_span, prose, sentence_end
from rules.domain.phrases.triggers import possible

_AFTER: Final = 160  # characters looked at behind an introduction such as "I will"

# Group 1 is English with the verb to come, group 2 French with the verb to come, group 3 French with the verb inside.
_INTRODUCTION: Any = re2.compile(
    r"\b(i will|i'll|i shall|let me|(?:i am|i'm)(?: (?:now|just|also|then|currently))* (?:going|about) to)\b"
    r"|\b(je vais|nous allons|je m'apprete a|nous nous appretons a|laisse[- ]moi|laissez[- ]moi"
    r"|je suis sur le point d(?:e\b|')|(?:je ne vais|nous n'allons) pas (?:seulement|uniquement))"
    r"|\b(je (?:m'en occupe|procede|lance|commence|m'attaque|passe)\b)"
)

# --- English

_ADVERB: Final = "|".join(
    [
        "now|then|also|first|next|just|again|only|still|instead|therefore|however|indeed",
        "of course|right away|at once|[a-z]+ly",
    ]
)
_MANNER: Final = "(?:,? ?(?:{}),?)*".format(
    "|".join(
        [_ADVERB, "start by|begin by|start with|go ahead and|go on and|proceed to", "not (?:only|just|merely|simply)"]
    )
)
_VERB: Any = re2.compile(r"\A(" + _MANNER + r") ([a-z][a-z'-]*)(.{0,40})")
_SESSION: Final = "(?:the|this|our) (?:session|conversation|chat)"
_NOT_A_DEED: Any = re2.compile(
    r"\A(?:{})".format(
        "|".join(
            [
                # no verb at all, or a negated one
                rf"(?:{_ADVERB})\b[^a-z]*\z",
                r"not\b|never\b|neither\b|no longer\b|refrain|avoid",
                # speaking
                r"explain|clarif|summari[sz]|recap(?:ping)?\b|rephras|reiterat|repeat|elaborat|outlin|describ|illustrat",
                r"put(?:ting)? (?:it|this)\b|say(?:ing)?\b|not(?:e|ing)\b|point(?:ing)? (?:\w+ )?out\b|remind",
                r"apologi[sz]|tell|answer|let (?:you|everyone) know|shar(?:e|ing)\b|list(?:ing)?\b|walk(?:ing)? you",
                r"break(?:ing)? (?:[a-z]+ ){0,3}down",
                r"giv(?:e|ing) you|provid(?:e|ing) you|offer|guid(?:e|ing)\b|assist|help",
                # waiting and asking
                r"know\b|be\b|being\b|need|requir|wait|await|assum|hav(?:e|ing) to\b|leav(?:e|ing)\b|rememb",
                r"ask(?:ing)?\b|keep(?:ing)? (?:[a-z]+ ){0,3}in mind|(?:try|trying|do|doing) my best|think",
                # closing
                r"stop|conclud|wrap(?:ping)? (?:[a-z]+ ){0,2}up",
                rf"end(?:ing)? (?:here|{_SESSION})|finish(?:ing)? (?:up|here|{_SESSION})",
            ]
        )
    )
)

# --- French

_MANIERE: Final = "(?:,? ?(?:{}),?)*".format(
    "|".join(
        [
            "maintenant|donc|aussi|ensuite|d'abord|tout d'abord|alors|puis|bientot|tout de suite|de suite|egalement",
            "juste|encore|enfin|des maintenant|a present|de ce pas|sans attendre|sans tarder|a nouveau|de nouveau",
            "en premier(?: lieu)?|par ailleurs|en parallele|(?:tout )?[a-z]+ment",
        ]
    )
)
_VERBE: Any = re2.compile(
    r"\A" + _MANIERE + "(?: commencer par)? ?" + PRONOUN + "{0,2}(?:[a-z]+ment )?(" + INFINITIVE + ")"
)
_PAS_UN_ACTE: Any = re2.compile(
    r"\A(?:expliquer|clarifier|resumer|rappeler|preciser|reformuler|dire|redire|repondre|etre|avoir|attendre|devoir|rester"
    r"|aider|donner|detailler|presenter|decrire|supposer|laisser|eviter|arreter|savoir)\z"
)
_NOT_A_VERB: Any = re2.compile(NOT_A_VERB)
_PAS: Any = re2.compile(r"\A (?:pas|plus|jamais|rien)\b")
_LANCE: Any = re2.compile(r"\A" + _MANIERE + r" (?:a|au|aux|par|le|la|les|l'[a-z]+)\b")
_LANCE_A_DIRE: Any = re2.compile(r"\A" + _MANIERE + " (?:a|par) " + PRONOUN + "{0,2}(" + INFINITIVE + ")")

# --- both: a sentence that leaves the action to the user

_DEPENDS_ON_USER: Any = re2.compile(
    "|".join(
        [
            r"\b(?:if|once|when|after|as soon as|unless|until|upon|before|should)\b"
            r".*\b(?:you|your|user|confirm[a-z]*|approv[a-z]*|permission)\b",
            r"\bwould you like\b|\bdo you want\b|\b(?:shall|should|may|can|could) i\b|\blet me know\b",
            r"\bplease (?:(?:also|just|kindly|first) )?"
            r"(?:confirm|provide|share|let me|reply|choose|select|specify|tell|respond)\b",
            r"\bwith your (?:[a-z]+ )?(?:permission|approval|confirmation)\b",
            r"\b(?:si|des que|quand|lorsque|une fois|apres|avant|a moins que|tant que|jusqu'a ce que)\b"
            r".*\b(?:vous|tu|votre|vos|ton|ta|confirm[a-z]*|accord|validation)\b",
            r"\b(?:souhaitez[- ]vous|souhaites[- ]tu|voulez[- ]vous|veux[- ]tu|dois[- ]je|puis[- ]je)\b",
            r"\b(?:merci de|veuillez) (?:(?:me|nous|bien vouloir|donc|d'abord) )*"
            r"(?:confirmer|preciser|fournir|choisir|indiquer)\b",
            r"\bavec (?:votre|ton) (?:accord|permission|validation|confirmation)\b",
        ]
    )
)


def announces_action(text: str | None) -> bool:
    """Whether an answer announces an action in the first person, in English or French. None and empty give False."""
    if not text or "announces_action" not in possible(text):
        return False
    return any(True for _ in _announcements(prose(text)))


def find_announces_action(text: str | None) -> list[tuple[int, int]]:
    """The places of the announcements, from "I will" up to the verb, as code points of the text."""
    if not text:
        return []
    sentences, origins = located_prose(text)
    return [original_span(origins, start, end) for start, end in _announcements(sentences)]


def _announcements(sentences: bytes) -> Iterator[tuple[int, int]]:
    last = -1  # end of the sentence of the introduction before
    passed_over = False
    for match in _INTRODUCTION.finditer(sentences):
        start, end = match.span()
        if start >= last:
            first, last = sentences.rfind(b"\n", 0, start) + 1, sentence_end(sentences, end)
            sentence = sentences[first:last]
            passed_over = is_question(sentence) or _DEPENDS_ON_USER.search(sentence) is not None
        if passed_over:
            continue
        after = sentences[end : min(last, end + _AFTER)]
        if match.start(1) >= 0:
            length = _deed(after)
        elif match.start(2) >= 0:
            length = _acte(after)
        else:
            length = _acte_en_cours(match.group(), after)
        if length is not None:
            yield start, end + length


def _deed(after: bytes) -> int | None:
    """The length of the text up to the verb, when it names something that is done rather than said."""
    verb = _VERB.search(after)
    if verb is None or b"gladly" in verb.group(1):
        return None
    if _NOT_A_DEED.search(verb.group(2) + verb.group(3)) is not None:
        return None
    return int(verb.end(2))


def _acte(after: bytes) -> int | None:
    verb = _VERBE.search(after)
    if verb is None or _PAS_UN_ACTE.search(verb.group(1)) is not None or _NOT_A_VERB.search(verb.group(1)) is not None:
        return None
    return int(verb.end(1))


def _acte_en_cours(introduction: bytes, after: bytes) -> int | None:
    """ "Je m'en occupe", "je lance les tests": the deed is in the introduction."""
    if introduction.endswith(b"occupe"):
        return None if _PAS.search(after) is not None else 0
    following = _LANCE.search(after)
    if following is None:
        return None
    spoken = _LANCE_A_DIRE.search(after)
    if spoken is not None and _PAS_UN_ACTE.search(spoken.group(1)) is not None:
        return None
    return int(following.end())
