"""Recognising recorded nudges by the whole text of a prompt."""

import pytest

from rules.domain.nudges import KnownPrompts, normal_form_hash

PROMPTS = KnownPrompts.of_texts([("Vérifiez le résultat.", "A"), ("Go on.", "B"), ("Go  on.", "C")])


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Vérifiez le résultat.", "A"),
        (" Ve\u0301rifiez\n\tle re\u0301sultat. ", "A"),
        ("Vérifiez\u00a0le résultat.", "A"),
        ("Verifiez le resultat.", None),
        ("vérifiez le résultat.", None),
        ("Vérifiez le résultat. Merci.", None),
        ("Go on.", "B"),
        ("", None),
        ("\ud800", None),
    ],
)
def test_only_the_whole_text_counts(text, code):
    assert PROMPTS.code_of(text) == code


def test_prompts_are_kept_by_the_hash_of_their_form():
    assert normal_form_hash(" a \n b ") == normal_form_hash("a b") != normal_form_hash("a  B")
    assert KnownPrompts({normal_form_hash("a b"): "X"}).code_of("a\u2003b") == "X"
    assert KnownPrompts().code_of("anything") is None
