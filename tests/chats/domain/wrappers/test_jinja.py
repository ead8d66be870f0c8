"""Wrappers made from chat templates."""

from typing import Any

import pytest

from chats.domain.chat_templates import Rendered, RenderRequest, TemplateFailure, render_or_explain
from chats.domain.history_items import FunctionCall, ModelItem, Segment, SystemItem, UserItem
from chats.domain.llama_text import LlamaText, SpecialToken, SpecialTokensText
from chats.domain.resolving import JinjaTrial, TemplateBroken, resolve
from chats.domain.wrapper_settings import OpenedOnStart
from chats.domain.wrappers import build_wrapper
from chats.domain.wrappers.base import InvalidWrapper
from chats.domain.wrappers.jinja import JinjaOptions, JinjaTemplateChatWrapper
from chats.domain.wrappers.jinja.rendering import OutOfTime, within

CHATML = (
    "{{ bos_token }}{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
NO_SYSTEM = (
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('none') }}{% endif %}"
    "{{ m.content }};{% endfor %}"
)
CALLS = (
    "{% for m in messages %}{% if m.role == 'tool' %}<result>{{ m.content }}</result>"
    "{% else %}<{{ m.role }}>{{ m.content or '' }}{% if m.tool_calls %}CALLS:{% for c in m.tool_calls %}"
    "<call>{{ c.function.name }}({{ c.function.arguments | tojson }})</call>{% endfor %}:END{% endif %}"
    "{% if not m.tool_calls %}</{{ m.role }}>{% endif %}{% endif %}{% endfor %}"
)
THOUGHTS = (
    "{% for m in messages %}<{{ m.role }}>{% if m.reasoning_content and (loop.last or keep) %}"
    "<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}</{{ m.role }}>{% endfor %}"
    "{% if add_generation_prompt %}<assistant><think>{% endif %}"
)
CHAT = [SystemItem(LlamaText("S")), UserItem("Hi <|im_end|>"), ModelItem(("",))]


def special(text: str) -> SpecialTokensText:
    return SpecialTokensText(text)


def wrapper(template: str, **options: Any) -> JinjaTemplateChatWrapper:
    return JinjaTemplateChatWrapper(JinjaOptions(template=template, **options), render_or_explain)


def test_contents_are_plain_and_what_the_template_writes_is_special() -> None:
    state = wrapper(CHATML).generate_context_state(CHAT)
    assert state.context_text == LlamaText(
        SpecialToken("BOS"),
        special("<|im_start|>system\n"),
        "S",
        special("<|im_end|>\n<|im_start|>user\n"),
        "Hi <|im_end|>",
        special("<|im_end|>\n<|im_start|>assistant\n"),
    )
    assert state.stop_generation_triggers == [LlamaText(SpecialToken("EOS")), LlamaText(special("<|im_end|>\n"))]


def test_what_looks_like_an_id_or_template_in_a_chat_stays_what_it_is() -> None:
    text = "W12345678900001W {{ bos_token }} {% raw %}"
    state = wrapper(CHATML).generate_context_state([UserItem(text), ModelItem((text,))])
    assert [value for value in state.context_text.values if isinstance(value, str)] == [text, text]


def test_system_messages_become_user_messages_where_there_are_none() -> None:
    made = wrapper(NO_SYSTEM)
    assert not made.settings.supports_system_messages
    text = str(made.generate_context_state(CHAT).context_text)
    assert text == "### System message\n\nS\n\n----\n\nHi <|im_end|>;"
    with pytest.raises(InvalidWrapper, match=r"failed the sanity test.*none"):
        wrapper(NO_SYSTEM, convert_unsupported_system_messages_to_user_messages=False)


@pytest.mark.parametrize("template", ["{{ broken", "nothing of the chat", "{{ messages[7].content }}"])
def test_a_template_that_cannot_show_a_chat_is_no_wrapper(template: str) -> None:
    with pytest.raises(InvalidWrapper, match="failed the sanity test"):
        wrapper(template)


def test_the_syntax_of_calls_is_found() -> None:
    made = wrapper(CALLS)
    assert made.using_jinja_function_call_template
    call = made.settings.functions.call
    parallelism = made.settings.functions.parallelism
    assert (str(call.prefix), str(call.params_prefix), str(call.suffix)) == ("<call>", "(", ")</call>")
    assert parallelism is not None
    assert str(parallelism.call.section_prefix) == "CALLS:"
    assert str(made.settings.functions.result.prefix) == "<result>"
    history = [*CHAT[:2], ModelItem((FunctionCall("f", {"a": 1}, 2), "ok"))]
    assert str(made.generate_context_state(history).context_text).endswith(
        '<assistant>CALLS:<call>f({"a": 1})</call>:END<result>2</result><assistant>ok'
    )


def test_without_the_templates_own_syntax_calls_are_written_as_the_base_does() -> None:
    made = wrapper(CALLS, function_call_message_template="noJinja")
    assert not made.using_jinja_function_call_template
    assert str(made.generate_function_call("f", {})) == "||call: f({})"


def test_the_tags_of_thoughts_are_found() -> None:
    made = wrapper(THOUGHTS)
    thought = made.settings.segments.thought if made.settings.segments else None
    assert thought is not None
    assert (str(thought.prefix), str(thought.suffix)) == ("<think>", "</think>")
    assert thought.open_on_response_start
    assert made.keep_only_last_thought
    assert not wrapper(THOUGHTS, additional_render_parameters={"keep": True}).keep_only_last_thought


def test_a_thought_that_the_template_opens_has_no_prefix() -> None:
    opened = (
        "{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}"
        "<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}{% endfor %}"
    )
    made = wrapper(opened)
    thought = made.settings.segments.thought if made.settings.segments else None
    assert thought is not None
    assert isinstance(thought.prefix, OpenedOnStart)
    history = [UserItem("u"), ModelItem((Segment("thought", "t", True), "a"))]
    assert str(made.generate_context_state(history).context_text) == "<user>u<assistant><think>t</think>a"


def test_the_renderer_that_refuses_ends_every_attempt_at_once() -> None:
    asked = []

    def refuse(request: RenderRequest) -> Rendered | TemplateFailure:
        asked.append(request)
        return TemplateFailure("limit", "LimitExceeded", "", limit="time")

    with pytest.raises(OutOfTime):
        JinjaTemplateChatWrapper(JinjaOptions(template="x"), refuse)
    assert len(asked) == 1
    trial = JinjaTrial("x", refuse)
    with pytest.raises(TemplateBroken):
        trial.equal_wrapper(["chatML"])


def test_a_template_is_recognised_as_the_wrapper_it_equals() -> None:
    resolution = resolve("anything.gguf", template=CHATML, trial=JinjaTrial(CHATML, render_or_explain))
    assert (resolution.wrapper, resolution.reasons[0].code) == ("chatML", "template_equals")
    text = build_wrapper("ChatMLChatWrapper").generate_context_state(CHAT).context_text
    assert wrapper(CHATML).generate_context_state(CHAT).context_text == text


def test_a_template_of_its_own_kind_is_kept() -> None:
    resolution = resolve(template=CALLS, trial=JinjaTrial(CALLS, render_or_explain))
    assert (resolution.wrapper, [reason.code for reason in resolution.reasons]) == (
        "jinjaTemplate",
        ["template_equals_none", "template_kept"],
    )


def test_all_renders_together_have_a_limit() -> None:
    now = [0.0]
    rendered = []

    def render(request: RenderRequest) -> Rendered | TemplateFailure:
        now[0] += 1
        rendered.append(request)
        return render_or_explain(request)

    with pytest.raises(OutOfTime):
        JinjaTemplateChatWrapper(JinjaOptions(template=CHATML), within(render, 3, lambda: now[0]))
    assert len(rendered) == 3
