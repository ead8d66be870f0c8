from hypothesis import given
from hypothesis import strategies as st

from chats.domain.visible_text import encodable, has_hidden, segments

ANY_TEXT = st.text(st.characters(codec=None))


def test_hidden_characters_are_shown():
    shown = [(s.kind, s.shown, s.end - s.start) for s in segments("a\x00\x00\u202eb\ud800\u200b\x7f\r\n")]
    assert shown == [
        ("text", "a", 1),
        ("control", "␀", 2),
        ("direction", "U+202E", 1),
        ("text", "b", 1),
        ("surrogate", "U+D800", 1),
        ("invisible", "U+200B", 1),
        ("control", "␡", 1),
        ("control", "␍", 1),
        ("text", "\n", 1),
    ]


def test_names_are_those_of_unicode():
    assert segments("\u202e")[0].name == "RIGHT-TO-LEFT OVERRIDE"


def test_scripts_and_emoji_stay_whole():
    text = "नमस्ते 👩\u200d👩\u200d👧 שלום"
    assert not has_hidden(text)
    assert [s.shown for s in segments(text)] == [text]


@given(ANY_TEXT)
def test_segments_cover_the_text_and_can_be_sent(text):
    found = segments(text)
    assert "".join(text[s.start : s.end] for s in found) == text
    "".join(s.shown for s in found).encode("utf-8")
    assert has_hidden(text) == any(s.kind != "text" for s in found)


@given(ANY_TEXT)
def test_encodable_moves_nothing(text):
    sent = encodable(text)
    sent.encode("utf-8")
    assert len(sent) == len(text)
