"""Canonical chats as messages of the real langchain-core (canonical-chat.md section 3)."""

import sys

import pytest

from chats.domain import CanonicalChat, CanonicalMessage, MessageDetails, ToolCall
from chats.domain.langchain_messages import to_langchain

messages = pytest.importorskip("langchain_core.messages", reason="the extra 'langchain' is not installed")


def chat_of(*given: CanonicalMessage, **fields: str) -> CanonicalChat:
    return CanonicalChat(messages=list(given), **fields)


def test_each_role_has_its_class_and_keeps_content_and_name():
    chat = chat_of(
        CanonicalMessage(content="be kind", role="system"),
        CanonicalMessage(content="hi", role="user", name="Ann"),
        CanonicalMessage(content="", role="assistant", name="Quill"),
        CanonicalMessage(content="42", role="tool", tool_call_id="c1", name="read"),
        CanonicalMessage(content="later", role="narrator"),
    )
    got = chat.to_langchain()
    assert [type(m) for m in got] == [
        messages.SystemMessage,
        messages.HumanMessage,
        messages.AIMessage,
        messages.ToolMessage,
        messages.ChatMessage,
    ]
    assert [m.content for m in got] == ["be kind", "hi", "", "42", "later"]
    assert [m.name for m in got] == [None, "Ann", "Quill", "read", None]
    assert got[3].tool_call_id == "c1"
    assert got[4].role == "narrator"


@pytest.mark.parametrize("role", ["user", "assistant", "system", "tool"])
def test_few_shot_examples_are_named_system_messages(role):
    chat = chat_of(CanonicalMessage(content="2+2?", role=role, name="example_user", fewshot_example=True))
    (got,) = chat.to_langchain()
    assert isinstance(got, messages.SystemMessage)
    assert got.name == "example_user"


def test_the_roles_of_the_chat_decide_and_the_human_wins_when_shared():
    chat = chat_of(
        CanonicalMessage(content="x", role="peer"),
        CanonicalMessage(content="y", role="rules"),
        CanonicalMessage(content="z", role="user"),
        human_role="peer",
        ai_role="peer",
        system_role="rules",
    )
    assert [type(m) for m in chat.to_langchain()] == [
        messages.HumanMessage,
        messages.SystemMessage,
        messages.ChatMessage,
    ]


def test_calls_come_from_the_details():
    chat = chat_of(CanonicalMessage(content="", role="assistant"))
    details = [
        MessageDetails(
            tool_calls=[
                ToolCall(id="c1", name="read", arguments={"path": "a"}),
                ToolCall(id="c2", name="edit", arguments_raw='{"path": "a'),
            ]
        )
    ]
    (got,) = to_langchain(chat, details)
    assert got.content == ""
    assert got.tool_calls == [{"name": "read", "args": {"path": "a"}, "id": "c1", "type": "tool_call"}]
    (invalid,) = got.invalid_tool_calls
    assert (invalid["name"], invalid["args"], invalid["id"]) == ("edit", '{"path": "a', "c2")


@pytest.mark.parametrize(
    ("stored", "status"), [("error", "error"), ("ok", "success"), ("not_run", "success"), (None, "success")]
)
def test_the_status_of_a_result(stored, status):
    chat = chat_of(CanonicalMessage(content="x", role="tool", tool_call_id="c"))
    (got,) = to_langchain(chat, [MessageDetails(result_status=stored)])
    assert got.status == status


def test_a_result_without_id_is_refused_with_its_index():
    chat = chat_of(CanonicalMessage(content="a", role="user"), CanonicalMessage(content="x", role="tool"))
    with pytest.raises(ValueError, match="message 1"):
        chat.to_langchain()


def test_headers_stay():
    chat = CanonicalChat.from_single('ELEANOR_SYSTEM {"user": "Ann"}')
    assert chat.to_langchain()[0].content.startswith("ELEANOR_SYSTEM")


def test_without_langchain_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "langchain_core", None)
    monkeypatch.setitem(sys.modules, "langchain_core.messages", None)
    with pytest.raises(ImportError, match="extra 'langchain'"):
        CanonicalChat.from_single("x").to_langchain()


def test_langchain_reads_back_what_it_was_given():
    chat = chat_of(
        CanonicalMessage(content="hi", role="user"),
        CanonicalMessage(content="", role="assistant"),
        CanonicalMessage(content="done", role="tool", tool_call_id="c1"),
    )
    details = [
        MessageDetails(),
        MessageDetails(tool_calls=[ToolCall(id="c1", name="run", arguments={})]),
        MessageDetails(result_status="error"),
    ]
    got = to_langchain(chat, details)
    assert messages.messages_from_dict(messages.messages_to_dict(got)) == got
