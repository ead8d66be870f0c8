"""Histories as OpenAI messages, and back."""

from typing import Any

from chats.domain.history_items import FunctionCall, ModelItem, Segment, SystemItem, UserItem
from chats.domain.llama_text import LlamaText, SpecialTokensText
from chats.domain.openai_format import Conversion, ImportedChat, from_openai_chat, to_messages, to_openai_chat
from chats.domain.wrappers import build_wrapper

QWEN = build_wrapper("QwenChatWrapper")


def imported(messages: list[dict[str, Any]], **chat: Any) -> ImportedChat:
    return from_openai_chat({"messages": messages, **chat}, QWEN.settings, QWEN.generate_function_call)


def call(name: str, arguments: str, call_id: str | None = None) -> dict[str, Any]:
    made = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return made if call_id is None else {"id": call_id, **made}


def test_a_turn_with_a_thought_and_calls() -> None:
    history = [
        SystemItem(LlamaText("S")),
        UserItem("Hi"),
        ModelItem((Segment("thought", "hm", True), "Wait", FunctionCall("f", {"a": 1}, [2]), "Done")),
    ]
    assert to_openai_chat(history, QWEN.settings, {"f": {"description": "d"}}) == {
        "messages": [
            {"role": "system", "content": "S"},
            {"role": "user", "content": "Hi"},
            {
                "role": "assistant",
                "content": "<think>\nhm\n</think>Wait",
                "tool_calls": [{"id": "fc_2_0002", **call("f", '{"a": 1}')}],
            },
            {"role": "tool", "tool_call_id": "fc_2_0002", "content": "[2]", "name": "f"},
            {"role": "assistant", "content": "Done"},
        ],
        "tools": [{"type": "function", "function": {"name": "f", "description": "d"}}],
    }


def test_contents_stay_llama_texts_until_they_are_asked_for_as_json() -> None:
    system = LlamaText("a", SpecialTokensText("<b>"))
    [message] = to_messages([SystemItem(system)], QWEN.settings, Conversion())
    assert message.content == system
    assert message.to_json() == {"role": "system", "content": "a<b>"}


def test_calls_that_may_not_share_a_message_get_their_own() -> None:
    history = [ModelItem(("Wait", FunctionCall("f", result=1)))]
    messages = to_messages(history, QWEN.settings, Conversion(calls_share_message=False))
    assert [(message.role, message.content, bool(message.tool_calls)) for message in messages[:2]] == [
        ("assistant", "Wait", False),
        ("assistant", messages[1].content, True),
    ]
    assert "content" not in messages[1].to_json()


def test_assistant_messages_in_a_row_become_one_item() -> None:
    chat = imported(
        [
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "assistant", "content": "<think>\nt\n</think>x", "tool_calls": [call("f", '{"a": 1}', "1")]},
            {"role": "tool", "tool_call_id": "1", "content": "not json"},
            {"role": "assistant", "content": "y"},
        ]
    )
    assert chat.history == [
        UserItem("ab"),
        ModelItem(
            (
                Segment("thought", "t", True),
                "x",
                FunctionCall("f", {"a": 1}, "not json", starts_new_chunk=True),
                "y",
            )
        ),
    ]
    assert chat.calls == []


def test_calls_of_the_last_message_wait_for_their_results() -> None:
    chat = imported(
        [
            {"role": "assistant", "content": None, "tool_calls": [call("f", ""), call("g", "[]")]},
            {"role": "tool", "content": ""},
        ]
    )
    assert chat.history == [ModelItem((FunctionCall("f", starts_new_chunk=True),))]
    assert [(pending.name, pending.params) for pending in chat.calls] == [("g", [])]
    assert chat.calls[0].raw == QWEN.generate_function_call("g", [])


def test_tools_become_functions() -> None:
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    assert imported([], tools=tools).functions == {"f": {"params": {"type": "object"}}}
    assert imported([]).functions is None
