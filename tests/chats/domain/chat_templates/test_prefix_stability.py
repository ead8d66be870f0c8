from hypothesis import given
from hypothesis import strategies as st

from chats.domain.chat_templates import RenderRequest, render_or_explain
from chats.domain.chat_templates.prefix_stability import difference, stability

CHAT = [
    {"role": "user", "content": "one"},
    {"role": "assistant", "content": "two"},
    {"role": "user", "content": "three"},
    {"role": "assistant", "content": "four"},
    {"role": "user", "content": "five"},
]
PLAIN = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
# Counts the messages at the top, so that every turn changes the first character.
COUNTING = "{{ messages|length }}" + PLAIN


def steps(template):
    return stability(RenderRequest(template, CHAT), render_or_explain)


def test_a_plain_template_is_stable_in_every_way():
    found = steps(PLAIN)
    assert [(s.comparison, s.turn, s.message, s.stable) for s in found] == [
        (comparison, turn, message, True)
        for comparison in ("with_generation_prompt", "without_generation_prompt", "after_closed_turn")
        for turn, message in ((1, 1), (2, 3))
    ]


def test_the_first_difference_is_shown():
    first = steps(COUNTING)[0]
    assert first.stable is False
    assert first.difference is not None
    assert (first.difference.at, first.difference.earlier[0], first.difference.later[0]) == (0, "1", "3")
    assert first.lost_characters == len("1<user>one\n<assistant>")


def test_a_turn_that_cannot_be_rendered_says_why():
    template = "{% if messages|length > 3 %}{{ raise_exception('too long') }}{% endif %}" + PLAIN
    found = {(s.comparison, s.turn): s for s in steps(template)}
    assert found[("with_generation_prompt", 1)].stable is True
    failed = found[("with_generation_prompt", 2)]
    assert failed.stable is None
    assert failed.failure is not None
    assert failed.failure.message == "too long"


def test_a_chat_without_a_second_turn_has_no_steps():
    assert stability(RenderRequest(PLAIN, CHAT[:2]), render_or_explain) == ()


@given(st.text("ab", max_size=30), st.text("ab", max_size=30))
def test_difference_is_the_first_one(a, b):
    found = difference(a, b)
    if b.startswith(a):
        assert found is None
        return
    assert found is not None
    assert a[: found.at] == b[: found.at]
    assert a[found.at : found.at + 1] != b[found.at : found.at + 1]
