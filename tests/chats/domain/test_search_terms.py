"""Words under the stems of two languages, and phrases as they are."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chats.domain.search_terms import indexed, parse, stems_of, words_of


def finds(query: str, *texts: str) -> bool:
    """What the database does with the two forms."""
    kept, terms = indexed(texts), parse(query)
    stems = set(kept.stems.split())
    held = all(stems & set(group) for group in terms.groups)
    return held and all(phrase in kept.words for phrase in terms.phrases) and not terms.impossible


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("étapes", "La prochaine étape est claire."),
        ("etape", "Deux ÉTAPES restent."),
        ("steps", "One step at a time"),
        ("step", "the next steps"),
        ("annulé", "Les commandes annulées"),
        ("généraux", "le cas général"),
        ("cancelling", "He cancels it"),
        ("coeur", "Le cœur du sujet"),
        ("etape", unicodedata.normalize("NFD", "l’étape")),
        ("orders search", "search_orders"),
        ("A-1234", "order a-1234 is late"),
        ("日本", "日本 です"),
        ('"next steps"', "Here are the Next Steps: deploy."),
        ('"à faire"', "Reste À\nFAIRE : rien"),
        ("«il reste»", "il   reste du café"),
        ('steps "il reste"', "Steps. Il reste à voir."),
    ],
)
def test_found(query: str, text: str) -> None:
    assert finds(query, text)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("étapes", "the steps"),
        ("step refund", "a step"),
        ('"next steps"', "the steps come next"),
        ('"next step"', "the next steps"),
        ('"a faire"', "à faire"),
        ("!!!", "!!!"),
        ('""', "anything"),
    ],
)
def test_not_found(query: str, text: str) -> None:
    assert not finds(query, text)


def test_no_phrase_reaches_from_one_message_into_the_next() -> None:
    assert not finds('"steps next"', "the steps", "next")
    assert finds('"next"', "the steps", "next")


def test_an_empty_search_asks_for_nothing() -> None:
    assert parse("  ") == parse("")
    assert not parse("").impossible


def test_an_open_quote_is_read_as_words() -> None:
    assert parse('"next steps').phrases == ()
    assert finds('"next steps', "steps, next")


@given(st.text(max_size=60), st.text(max_size=60))
def test_every_word_of_a_text_is_found_in_it(before: str, after: str) -> None:
    for word in words_of(f"{before} {after}"):
        assert finds(word, before, after) or word not in words_of(before) + words_of(after)


@given(st.text(max_size=40))
def test_stems_are_plain_for_every_index(text: str) -> None:
    for word in words_of(text):
        for stem in stems_of(word):
            assert stem.isascii()
            assert stem.isalnum()
            assert stem == stem.lower()
