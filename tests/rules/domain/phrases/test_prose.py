"""Laws of the reduction that all helpers share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.domain import phrases
from rules.domain.phrases import announcements, questions, remaining_work
from rules.domain.phrases.folding import fold
from rules.domain.phrases.prose import located_prose, prose
from rules.domain.phrases.triggers import _ALL

PIECES = [
    "Next steps", "il reste à", "écrire", "les tests", "I will", "je vais", "lancer", "let me", "know", "no",
    "please confirm",
    "remaining", "work", "TODO:", "[ ] x", "a faire", "not yet", "done", "Anything else", "`", "```", "~~~", "\n",
    "\r\n", "\n\n",
    "> ", "- ", "*", "_", '"', "“", "”", "«", "»", ". ", "? ", "!", "…", " ", "\u00a0", "\u200b", "\u00ad", "\u0301",
    "’", "œ", "ﬁ",
    "Ｎ", "\u2028", "\ud800", "ß", "😀", "İ", "'ll", "\x1c", "Ⅷ", "ok",
]  # fmt: skip
TEXTS = st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=25).map("".join))


@given(TEXTS)
def test_prose_with_places_is_the_same_prose(text):
    found, origins = located_prose(text)
    assert found == prose(text)
    assert len(found) == len(origins)
    assert origins == sorted(origins)
    assert all(0 <= at < len(text) for at in origins)


@given(TEXTS)
def test_places_are_given_exactly_when_a_helper_is_true(text):
    for name in ("is_go_ahead", "lists_remaining_work", "announces_action", "asks_user"):
        places = getattr(phrases, f"find_{name}")(text)
        assert bool(places) == getattr(phrases, name)(text)
        assert all(0 <= start < end <= len(text) for start, end in places)


@given(TEXTS)
def test_the_quick_look_at_the_raw_text_rules_out_nothing_that_is_true(text):
    quick = phrases.helper_results(text)
    with pytest.MonkeyPatch.context() as patch:
        for module in (announcements, questions, remaining_work):
            patch.setattr(module, "possible", lambda _: _ALL)
        assert phrases.helper_results(text) == quick


@given(TEXTS)
def test_folding_twice_changes_nothing(text):
    assert fold(fold(text)) == fold(text)


@given(TEXTS)
def test_the_last_paragraph_is_a_part_of_the_text(text):
    paragraph = phrases.last_paragraph(text)
    assert paragraph in text
    assert paragraph == paragraph.rstrip()
    assert phrases.last_paragraph(paragraph) in ("", paragraph)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Run `pytest -q` now.", [b"run now."]),
        ("Run ``a ` b`` now.", [b"run now."]),
        ("One ` tick. Two.", [b"one ' tick.", b"two."]),
        ("a\n```sh\nb\n```\nc", [b"a", b"", b"", b"", b"c"]),
        ("a\n~~~\nb", [b"a", b"", b""]),
        ("a\n  > b\nc", [b"a", b"", b"c"]),
        ('He said "no. Never" and « non », then “x”.', [b"he said and , then ."]),
        (f'It is 5" wide. {"x" * 210} 6" high.', [b'it is 5" wide.', b"x" * 210 + b' 6" high.']),
        ("## **Next** _steps_ of snake_case", [b"## next steps of snake_case"]),
        ("L’été… Cœur — ﬁn", [b"l'ete...", b"coeur - fin"]),
        ("Да 漢", [b"xx x"]),
    ],
)
def test_what_is_left_of_a_text(text, sentences):
    assert prose(text).split(b"\n") == sentences
