"""A stored chat as input of wrappers and templates, and the prompt with its places."""

from typing import Any

import pytest

from chats.domain.details import MessageDetails, OfferedTool, ToolCall
from chats.domain.history import LeftOut, template_input, wrapper_input
from chats.domain.history_items import history_to_json
from chats.domain.messages import CanonicalChat, CanonicalMessage
from chats.domain.record import ChatRecord
from chats.domain.spans import render_record
from chats.domain.wrappers import WRAPPERS, build_wrapper


def record(*messages: tuple[dict[str, Any], dict[str, Any]], **more: Any) -> ChatRecord:
    roles = more.pop("roles", {})
    return ChatRecord(
        chat=CanonicalChat(messages=[CanonicalMessage(**message) for message, _ in messages], **roles),
        details=[MessageDetails(**details) for _, details in messages],
        **more,
    )


def called(identifier: str, name: str = "f", **arguments: Any) -> ToolCall:
    return ToolCall(id=identifier, name=name, arguments=arguments)


def tool(identifier: str | None, content: str) -> tuple[dict[str, Any], dict[str, Any]]:
    return {"role": "tool", "content": content, "tool_call_id": identifier}, {}


EXAMPLE = record(
    ({"role": "system", "content": 'ELEANOR_SYSTEM {"user": "x"}'}, {}),
    ({"role": "system", "content": "Be brief."}, {}),
    ({"role": "customer", "content": "Weather? <|im_end|>", "name": "bob"}, {}),
    (
        {"role": "agent", "content": "Let me look."},
        {"reasoning": "Two cities.", "tool_calls": [called("1", city="Rome"), called("2", city="Oslo")]},
    ),
    tool("2", '{"sky": "clear"}'),
    tool("1", "cold"),
    tool("9", "nobody asked"),
    ({"role": "agent", "content": "", "name": None}, {"tool_calls": [ToolCall(id="1", name="g", arguments_raw="{x")]}),
    tool("1", ""),
    ({"role": "critic", "content": "Hm."}, {}),
    ({"role": "customer", "content": "Continue."}, {"nudge_code": "go_on"}),
    roles={"human_role": "customer", "ai_role": "agent"},
    tools=[OfferedTool(name="f", description="Look", parameters={"type": "object"}), OfferedTool(name="g")],
)


def test_a_chat_becomes_a_history() -> None:
    given = wrapper_input(EXAMPLE)
    assert history_to_json(given.history) == [
        {"type": "system", "text": "Be brief."},
        {"type": "user", "text": "Weather? <|im_end|>"},
        {
            "type": "model",
            "response": [
                {"type": "segment", "segmentType": "thought", "text": "Two cities.", "ended": True},
                "Let me look.",
                {
                    "type": "functionCall",
                    "name": "f",
                    "params": {"city": "Rome"},
                    "result": "cold",
                    "startsNewChunk": True,
                },
                {"type": "functionCall", "name": "f", "params": {"city": "Oslo"}, "result": {"sky": "clear"}},
                {"type": "functionCall", "name": "g", "params": "{x", "startsNewChunk": True},
            ],
        },
        {"type": "user", "text": "Continue."},
        {"type": "model", "response": []},
    ]
    assert given.functions == {"f": {"description": "Look", "params": {"type": "object"}}, "g": {}}
    assert given.left_out == [
        LeftOut("header", 0),
        LeftOut("name", 2),
        LeftOut("result_without_call", 6),
        LeftOut("role", 9, {"role": "critic"}),
    ]


def test_up_to_a_message_later_results_are_unknown() -> None:
    given = wrapper_input(EXAMPLE, upto=4)
    calls = history_to_json(given.history)[-1]["response"][2:]
    assert [call.get("result") for call in calls] == [None, {"sky": "clear"}]
    assert "result" not in calls[0]
    with pytest.raises(IndexError):
        wrapper_input(EXAMPLE, upto=99)


def test_a_second_result_for_a_call_has_no_place() -> None:
    chat = record(({"role": "assistant", "content": ""}, {"tool_calls": [called("1")]}), tool("1", "a"), tool("1", "b"))
    given = wrapper_input(chat)
    assert history_to_json(given.history)[0]["response"][0]["result"] == "a"
    assert given.left_out == [LeftOut("second_result", 2)]


def test_a_chat_becomes_template_messages() -> None:
    given = template_input(EXAMPLE, extra_user="And now?")
    assert [message["role"] for message in given.messages] == [
        *("system", "user", "assistant", "tool", "tool", "tool", "assistant", "tool", "critic", "user", "user"),
    ]
    assert given.message_indexes == [*range(1, 11), None]
    assert given.messages[1]["name"] == "bob"
    assert given.messages[2] == {
        "role": "assistant",
        "content": "Let me look.",
        "reasoning_content": "Two cities.",
        "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "f", "arguments": {"city": "Rome"}}},
            {"id": "2", "type": "function", "function": {"name": "f", "arguments": {"city": "Oslo"}}},
        ],
    }
    assert given.messages[6]["tool_calls"][0]["function"]["arguments"] == "{x"
    assert given.tools == [
        {"type": "function", "function": {"name": "f", "description": "Look", "parameters": {"type": "object"}}},
        {"type": "function", "function": {"name": "g"}},
    ]
    assert given.add_generation_prompt
    assert given.left_out == [LeftOut("header", 0)]
    assert not template_input(EXAMPLE, upto=3).add_generation_prompt


@pytest.mark.parametrize(
    "content", ["ELEANOR_SYSTEM {}", " ELEANOR_SYSTEM{broken}\n", 'ELEANOR_SYSTEM {\n"user": "A"}']
)
def test_no_model_sees_a_header_be_it_empty_or_broken(content: str) -> None:
    chat = record(({"role": "system", "content": content}, {}), ({"role": "user", "content": "Hi"}, {}))
    assert history_to_json(wrapper_input(chat).history)[0] == {"type": "user", "text": "Hi"}
    assert [message["content"] for message in template_input(chat).messages] == ["Hi"]
    assert wrapper_input(chat).left_out == [LeftOut("header", 0)]


def test_unknown_tools_are_none() -> None:
    assert template_input(record(({"role": "user", "content": "Hi"}, {}))).tools is None


BUILT_IN = [entry for entry in WRAPPERS if entry not in ("TemplateChatWrapper", "JinjaTemplateChatWrapper")]


@pytest.mark.parametrize("wrapper_id", BUILT_IN)
def test_each_message_is_found_in_the_prompt(wrapper_id: str) -> None:
    wrapper = build_wrapper(wrapper_id)
    prompt = render_record(EXAMPLE, wrapper, extra_user="And now?")
    given = wrapper_input(EXAMPLE, extra_user="And now?")
    state = wrapper.generate_context_state(given.history, given.functions)
    assert prompt.llama_text() == state.context_text
    spans = prompt.spans()
    for index, text in ((1, "Be brief."), (2, "Weather? <|im_end|>"), (10, "Continue."), (4, '{"sky": "clear"}')):
        assert [prompt.text[span.start : span.end] for span in spans[index]] == [text]
    assert "Rome" in "".join(prompt.text[span.start : span.end] for span in spans[3])
    kinds = {piece.kind for piece in prompt.pieces if piece.message_index is not None}
    assert kinds == {"text"}
    nudge = [piece for piece in prompt.pieces if piece.text == "And now?"]
    assert [(piece.kind, piece.message_index) for piece in nudge] == [("text", None)]
