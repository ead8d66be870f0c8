"""Rendering of chat templates (chat-templates.md): texts that transformers gives, recorded or by its rules."""

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chats.domain.chat_templates import (
    MAX_TEMPLATE_BYTES,
    Rendered,
    RenderRequest,
    ServerHabits,
    TemplateFailure,
    as_served,
    check,
    render,
    render_or_explain,
    select_template,
    variables,
)
from tests.golden.templates import failing
from tests.shared_data import SHARED, needs_shared

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
HELLO = [{"role": "user", "content": "Hello"}]
ANSWERED = [*HELLO, {"role": "assistant", "content": "Good day"}]


def text_of(template, messages=HELLO, **more):
    return render(RenderRequest(template, messages, **more)).text


def failure_of(template, messages=HELLO, **more):
    outcome = render_or_explain(RenderRequest(template, messages, **more))
    assert isinstance(outcome, TemplateFailure)
    return outcome


@needs_shared
@pytest.mark.parametrize("profile", ["current", "classic"])
def test_all_recorded_results(profile):
    lines, total = failing(SHARED / "peers" / "chat-templates", profile, render_or_explain)
    assert lines == []
    assert total > 0


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("a\n", "a"),
        ("a\n\n", "a\n"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("{% if true %}\n  x\n  {% endif %}\ny", "  x\ny"),
        ("{{ 1 }}\n{{ 2 }}", "1\n2"),
        ("<|end|>\n{%- if true %} b{% endif %}", "<|end|> b"),
        ("[{{ nothing }}]", "[]"),
        ("{{ none }} {{ true }} {{ [1, 'a'] }} {{ {'k': 1.0} }}", "None True [1, 'a'] {'k': 1.0}"),
        ("{{ 2 ** 3 ** 2 }}", "64"),
        ("{{ {'b': '<é>', 'a': 1}|tojson }}", '{"b": "<é>", "a": 1}'),
        ("{{ [1, 2]|tojson(separators=(',', ':')) }}", "[1,2]"),
        ("{% for i in [1, 2, 3] %}{% if i == 2 %}{% continue %}{% endif %}{{ i }}{% endfor %}", "13"),
        ("{{ tools is defined and tools is none }} {{ bos_token is defined }}", "True False"),
    ],
)
def test_what_surprises_people(template, text):
    assert text_of(template) == text


def test_line_breaks_of_a_message_stay():
    assert text_of("{{ messages[0].content }}", [{"role": "user", "content": "a\r\nb"}]) == "a\r\nb"


def test_arguments_win_over_tokens_and_the_chat_over_both():
    template = "{{ bos_token }}{{ eos_token }}{{ messages|length }}{{ tools }}"
    kwargs = {"eos_token": "mine", "messages": "no"}
    assert text_of(template, tokens={"bos_token": "<s>", "eos_token": "</s>"}, kwargs=kwargs, tools=[]) == "<s>mine1[]"


def test_clock_is_the_one_given():
    now = datetime(2025, 3, 5, 14, 7, 9)
    assert text_of("{{ strftime_now('%d %b %Y %H:%M') }}", now=now) == "05 Mar 2025 14:07"


def test_reasoning_has_its_names_in_the_order_of_keys():
    messages = [{"role": "assistant", "content": "x", "reasoning": "why", "name": None}]
    template = "{{ messages[0].keys()|list }}{{ messages[0].thinking }}{{ messages[0].reasoning_content }}"
    keys = ["thinking", "role", "content", "reasoning", "reasoning_content"]
    assert text_of(template, messages) == f"{keys}whywhy"
    assert text_of(template, messages, profile="classic") == "['role', 'content', 'reasoning', 'name']"


def test_the_callers_chat_stays_as_it_was():
    messages = [{"role": "assistant", "content": [{"type": "text", "text": "abc"}]}]
    template = "{% for p in messages[0].content %}{{ p.text }}{% endfor %}"
    assert text_of(template, messages, continue_final_message=True) == "abc"
    assert messages == [{"role": "assistant", "content": [{"type": "text", "text": "abc"}]}]


def test_continuing_a_message_ends_with_it():
    assert text_of(CHATML, ANSWERED, continue_final_message=True).endswith("assistant\nGood day")


@pytest.mark.parametrize(
    ("template", "end"), [("{{ messages[0].content }}<e>", "a  "), ("{{ messages[0].content|trim }}<e>", "a")]
)
def test_blanks_at_the_end_stay_unless_the_template_trims(template, end):
    assert text_of(template, [{"role": "assistant", "content": "a  "}], continue_final_message=True) == end


def test_continuing_reasoning():
    messages = [{"role": "assistant", "content": "", "reasoning": "because"}]
    template = "<think>{{ messages[0].reasoning_content }}</think>{{ messages[0].content }}"
    assert text_of(template, messages, continue_final_message="reasoning") == "<think>because"


@pytest.mark.parametrize(
    ("more", "error_class"),
    [
        ({"messages": []}, "ValueError"),
        ({"messages": [], "profile": "classic"}, "IndexError"),
        ({"continue_final_message": True, "add_generation_prompt": True}, "ValueError"),
        ({"messages": [{"role": "user"}], "continue_final_message": True}, "ValueError"),
        ({"messages": [{"role": "user"}], "continue_final_message": True, "profile": "classic"}, "KeyError"),
        ({"continue_final_message": "reasoning_content"}, "ValueError"),
        ({"messages": ["Hello"]}, "TypeError"),
        ({"documents": ["text"]}, "TypeError"),
        ({"tools": ["get_weather"]}, "ValueError"),
    ],
)
def test_arguments_that_do_not_go_together(more, error_class):
    failure = failure_of(CHATML, **{"messages": HELLO, **more})
    assert (failure.kind, failure.error_class, failure.line) == ("input", error_class, None)


def test_generation_spans_cut_out_the_answers():
    template = (
        "{% for m in messages %}{% if m.role == 'user' %}Q {{ m.content }}\n"
        "{% else %}{% generation %}{{ m.content }}{% endgeneration %}\n{% endif %}{% endfor %}"
    )
    rendered = render(RenderRequest(template, ANSWERED * 2))
    assert [rendered.text[start:end] for start, end in rendered.spans] == ["Good day", "Good day"]


def test_the_classic_profile_overlooks_a_span_at_the_very_start():
    template = "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}"
    assert render(RenderRequest(template, ANSWERED)).spans == ((0, 5), (5, 13))
    assert render(RenderRequest(template, ANSWERED, profile="classic")).spans == ((5, 13),)


@pytest.mark.parametrize(
    ("template", "kind", "error_class", "line"),
    [
        ("a\n{% if %}", "syntax", "TemplateSyntaxError", 2),
        ("a\r\n\r\n{{ messages[0].x.y }}", "error", "UndefinedError", 3),
        (
            "a\n{% macro f() %}\n{{ raise_exception('Only users') }}{% endmacro %}\n\n{{ f() }}",
            "message",
            "TemplateError",
            3,
        ),
        ("\n{{ messages.__class__.x }}", "error", "SecurityError", 2),
        ("{% include 'other' %}", "error", "TypeError", 1),
        ("{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}", "limit", "RecursionError", 1),
    ],
)
def test_errors_have_kind_class_and_line(template, kind, error_class, line):
    failure = failure_of(template)
    assert (failure.kind, failure.error_class, failure.line) == (kind, error_class, line)


def test_the_authors_words_are_told():
    assert failure_of("{{ raise_exception('Only users, please') }}").message == "Only users, please"


def test_deep_nesting_is_a_limit_while_compiling():
    failure = check("{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}")
    assert failure is not None
    assert (failure.kind, failure.limit) == ("limit", "depth")


@pytest.mark.parametrize("text", ["x" * (MAX_TEMPLATE_BYTES + 1), "é" * (MAX_TEMPLATE_BYTES // 2 + 1)])
def test_long_templates_are_refused(text):
    failure = check(text)
    assert failure is not None
    assert (failure.limit, failure.args) == ("template_size", {"allowed": MAX_TEMPLATE_BYTES})


def test_endless_text_is_stopped():
    assert failure_of("{% for i in range(100) %}{{ 'x' * 100000 }}{% endfor %}").limit == "output"


def test_addresses_are_masked_unless_the_chat_has_them():
    message = "crash at 0x7f0000001234"
    text = text_of("{{ messages[0].content }} {{ raise_exception }}", [{"role": "user", "content": message}])
    assert text.startswith(message + " <function raise_exception at 0xADDR>")


def test_odd_characters_reach_the_text():
    messages = [{"role": "user", "content": "\ud800 \x00 \u202e"}]
    assert (
        text_of("\ud83d{{ '\ude00' }}\x00{{ messages[0].content }}", messages) == "\ud83d\ude00\x00\ud800 \x00 \u202e"
    )


def test_each_character_has_its_line_and_message():
    template = (
        "{% if messages[0].role == 'system' %}\n{% set system = messages[0].content %}\n{% set rest = messages[1:] %}\n"
        "{% endif %}\n{% for m in rest %}\n<|{{ m.role }}|>\n"
        "{{ ('[' ~ system ~ '] ' if loop.first else '') ~ m.content }}\n{% endfor %}\nThe end"
    )
    messages = [{"role": "system", "content": "Be kind"}, *ANSWERED]
    rendered = render(RenderRequest(template, messages, provenance=True))
    parts = [(rendered.text[o.start : o.end], o.line, o.message) for o in rendered.provenance]
    assert ("Be kind", 7, 0) in parts
    assert ("] Hello\n", 7, 1) in parts
    assert ("Good day\n", 7, 2) in parts
    assert parts[-1] == ("The end", 9, None)
    assert "".join(text for text, _, _ in parts) == rendered.text


@given(
    st.lists(st.tuples(st.sampled_from(["user", "assistant", "system"]), st.text(max_size=20)), min_size=1, max_size=6)
)
def test_origins_cover_the_text_and_change_nothing(turns):
    messages = [{"role": role, "content": content} for role, content in turns]
    plain = render(RenderRequest(CHATML, messages, add_generation_prompt=True))
    traced = render(RenderRequest(CHATML, messages, add_generation_prompt=True, provenance=True))
    assert traced.text == plain.text
    assert "".join(traced.text[o.start : o.end] for o in traced.provenance) == plain.text


@pytest.mark.parametrize(
    ("names", "tools", "chosen"),
    [
        (["default"], [{}], "default"),
        (["default", "tool_use"], [], "tool_use"),
        (["default", "tool_use"], None, "default"),
    ],
)
def test_selection_of_named_templates(names, tools, chosen):
    assert select_template({name: f"text of {name}" for name in names}, tools=tools) == f"text of {chosen}"


def test_selection_without_default_lists_the_names():
    with pytest.raises(ValueError, match=r"\['rag', 'tool_use'\]"):
        select_template({"tool_use": "", "rag": ""})


def test_variables_are_what_a_caller_can_pass():
    template = (
        "{% if enable_thinking is not defined %}{% set enable_thinking = true %}{% endif %}"
        "{% if enable_thinking %}{{ bos_token }}{% endif %}\n"
        "{% if messages[0].role == 'system' %}{% set loop_messages = messages[1:] %}{% endif %}{{ loop_messages }}"
        "{% if effort == 'high' or effort in ['low'] %}{% endif %}{% for m in messages %}{{ m }}{% endfor %}"
    )
    found = {v.name: (v.line, v.choices, v.looks_boolean) for v in variables(template)}
    assert found == {"enable_thinking": (1, (), True), "effort": (2, ("high", "low"), False)}


def test_habits_of_servers():
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "user", "content": [{"type": "image"}]},
        {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": '{"b": 1.0}'}}]},
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": "no JSON"}}]},
    ]
    served = as_served(messages, ServerHabits(True, True, True))
    assert served[0]["content"] == "a\nb"
    assert served[1]["content"] == [{"type": "image"}]
    assert served[2]["content"] == ""
    assert served[2]["tool_calls"][0]["function"]["arguments"] == {"b": 1.0}
    assert served[3]["tool_calls"][0]["function"]["arguments"] == "no JSON"
    assert as_served(messages, ServerHabits()) == messages


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ lipsum.__globals__['os'] }}",
        "{{ cycler.__init__.__globals__.os }}",
        "{% set f = '{0.__class__.__mro__}'.format %}{{ f(1) }}",
        "{{ messages.append(1) }}",
        "{{ (messages|map(attribute='role')).gi_frame.f_globals }}",
        "{% set ns = namespace() %}{% set ns.__class__ = 1 %}",
    ],
)
def test_the_sandbox_holds(template):
    assert failure_of(template).error_class == "SecurityError"


def test_render_gives_a_value_of_its_own():
    assert render(RenderRequest("x", HELLO)) == Rendered("x", (), ())
