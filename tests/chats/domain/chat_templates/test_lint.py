import pytest

from chats.domain.chat_templates.lint import control_tokens, lint, typed_tokens
from tests.golden.lint import failing
from tests.shared_data import SHARED, needs_shared

GOOD = (
    "{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
TOKENS = {"bos_token": "<s>", "eos_token": "<|end|>"}

CALLS = "{{ m.content }}{% for c in m.tool_calls or [] %}{{ c.function.arguments|PRINT }}{% endfor %}"
LAST_ONLY = "{{ m.content.split('</think>')[-1] }}{{ m.reasoning_content if loop.last }}"
LATE_SYSTEM = "{% if m.role == 'system' and not loop.first %}{{ raise_exception('no') }}{% endif %}{{ m.content }}"


def with_content(expression):
    """The good template, writing each message's content another way."""
    return GOOD.replace("{{ m.content }}", expression)


def codes(template, **more):
    return {f.code: f for f in lint(template, TOKENS, **more).findings}


@needs_shared
def test_recorded_facts():
    lines, total = failing(SHARED / "peers" / "chat-templates")
    assert lines == []
    assert total > 0


def test_a_template_that_does_not_compile_has_one_finding():
    report = lint("a\n{% if %}", {})
    assert [(f.code, f.severity, f.args) for f in report.findings] == [("does_not_compile", "error", {"line": 2})]
    assert report.facts == {}


def test_a_template_that_renders_nothing_says_why_once():
    found = codes("{{ raise_exception('never') }}")
    assert found["user_turn_refused"].left.text == "never"
    assert found["user_turn_refused"].left.failed
    assert "system_refused" not in found


@pytest.mark.parametrize(
    ("template", "code"),
    [
        (GOOD.partition("{% if add_")[0], "generation_prompt_ignored"),
        ("{% if add_generation_prompt %}!{% endif %}" + GOOD, "generation_prompt_changes_text"),
        (GOOD, "starts_with_bos"),
        ("{{ bos_token }}" + GOOD, "bos_twice"),
        (GOOD.replace("{{ bos_token }}", ""), "bos_never_written"),
        (GOOD.replace("in messages", "in messages if m.role != 'system'"), "system_dropped"),
        (with_content(LATE_SYSTEM), "late_system_refused"),
        (GOOD, "tools_ignored"),
        (GOOD, "call_dropped"),
        ("{% for t in tools or [] %}{{ t }}{% endfor %}" + GOOD, "python_data"),
        (with_content(CALLS.replace("PRINT", "tojson")), "text_arguments_encoded_twice"),
        (with_content(CALLS.replace("PRINT", "dictsort|tojson")), "text_arguments_refused"),
        (GOOD, "null_content_printed"),
        (with_content("{{ m.content|trim }}"), "content_trimmed"),
        (GOOD, "text_parts_printed"),
        ("{{ messages|length }}" + GOOD, "unstable_after_closed_turn"),
        (with_content(LAST_ONLY), "reasoning_dropped"),
        ("{{ strftime_now('%Y') }}" + GOOD, "depends_on_clock"),
        (with_content("{{ m.content[:2] }}"), "prefill_refused"),
        (with_content("{{ m.content|e }}"), "html_escapes"),
        (GOOD.replace("{{ bos_token }}", "{{ bos_token }}You are a careful and kind one.\n"), "own_system_prompt"),
        (GOOD.replace("<|assistant|>\n", "<|assistant|> "), "prompt_ends_in_blanks"),
        (GOOD + "{{ '.' }}\n", "final_line_break_lost"),
        (GOOD.replace("{% endfor", "{%- endfor"), "tokens_glued"),
        (GOOD, "no_generation_tags"),
        (GOOD, "control_tokens_pass"),
    ],
)
def test_each_check_finds_its_case(template, code):
    assert code in codes(template)


@pytest.mark.parametrize(
    ("template", "code"),
    [
        (GOOD, "tokens_glued"),
        (GOOD, "own_system_prompt"),
        (GOOD, "late_system_refused"),
        (GOOD, "depends_on_clock"),
        (GOOD, "html_escapes"),
        (GOOD, "final_line_break_lost"),
        (GOOD, "bos_never_written"),
        (GOOD, "user_turn_refused"),
        (GOOD, "unstable_after_closed_turn"),
        (GOOD, "reasoning_dropped"),
        ("{% generation %}{% endgeneration %}" + GOOD, "no_generation_tags"),
    ],
)
def test_a_good_template_is_left_alone(template, code):
    assert code not in codes(template)


def test_glued_tokens_show_both_texts_and_the_line():
    finding = codes(GOOD.replace("{% endfor", "{%- endfor"))["tokens_glued"]
    assert finding.args == {"token": "<|end|>", "line": 3}
    assert "<|end|><|assistant|>" in finding.left.text
    assert "<|end|>\n<|assistant|>" in finding.right.text


def test_an_argument_with_a_typing_error_is_named():
    found = codes("{% if enable_thinking %}{% endif %}" + GOOD, kwargs=["enable_thinkin"])
    assert found["argument_never_read"].args == {"name": "enable_thinkin", "read": ["enable_thinking"]}
    assert found["variables_not_passed"].args == {"names": ["enable_thinking"]}
    assert "argument_never_read" not in codes("{{ enable_thinking }}" + GOOD, kwargs=["enable_thinking"])


def test_typed_control_tokens_are_placed():
    messages = [{"role": "user", "content": "plain"}, {"role": "user", "content": "a <|end|> b <s>"}]
    found = [(t.message, t.field, t.start, t.end, t.token) for t in typed_tokens(messages, GOOD, TOKENS)]
    assert found == [(1, "content", 2, 9, "<|end|>"), (1, "content", 12, 15, "<s>")]
    assert "<|assistant|>" in control_tokens(GOOD, TOKENS)
