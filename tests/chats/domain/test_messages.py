"""The canonical chat, edge case by edge case (canonical-chat.md sections 1 to 3)."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from chats.domain import CanonicalChat, CanonicalMessage, EleanorFrameworkHeader

ROOT = Path(__file__).resolve().parents[3]
LETTERS = {"S": "system", "u": "user", "a": "assistant", "t": "tool"}


def chat_of(text: str) -> CanonicalChat:
    """`S1 u` is a system message with the content S1 and a user message with the content u."""
    return CanonicalChat(messages=[CanonicalMessage(content=w, role=LETTERS[w[0]]) for w in text.split()])


def contents(chat: CanonicalChat) -> str:
    return " ".join(m.content for m in chat.messages)


class TestMessage:
    def test_defaults(self):
        message = CanonicalMessage(content="", role="Observer")
        assert message.model_dump() == {
            "content": "",
            "role": "Observer",
            "name": None,
            "tool_call_id": None,
            "fewshot_example": False,
        }

    def test_null_content_is_refused(self):
        with pytest.raises(ValidationError, match="content"):
            CanonicalMessage(content=None, role="user")

    def test_unknown_keys_are_refused(self):
        with pytest.raises(ValueError, match="extra"):
            CanonicalMessage.model_validate({"content": "x", "role": "user", "nmae": "typo"})

    def test_types_are_converted_as_pydantic_does(self):
        assert CanonicalMessage.model_validate(
            {"content": "x", "role": "user", "name": "n", "fewshot_example": "true"}
        ).fewshot_example

    def test_a_few_shot_example_needs_a_name_which_may_be_empty(self):
        with pytest.raises(ValidationError, match="name"):
            CanonicalMessage(content="x", role="user", fewshot_example=True)
        message = CanonicalMessage(content="x", role="user", fewshot_example=True, name="")
        assert message.check_name_if_fewshot_example() is message

    def test_assignment_is_not_checked(self):
        message = CanonicalMessage(content="x", role="user")
        message.fewshot_example = True
        assert message.name is None

    def test_json_without_the_name_is_refused(self):
        with pytest.raises(ValidationError):
            CanonicalMessage.model_validate_json('{"content": "x", "role": "user", "fewshot_example": true}')

    def test_a_call_id_is_allowed_on_any_role(self):
        assert CanonicalMessage(content="x", role="user", tool_call_id="c").tool_call_id == "c"


class TestViews:
    def test_each_view_holds_the_messages_of_its_role_in_order(self):
        chat = chat_of("S1 u1 a1 t1 a2 S2 u2")
        assert [m.content for m in chat.ai_messages] == ["a1", "a2"]
        assert [m.content for m in chat.human_messages] == ["u1", "u2"]
        assert [m.content for m in chat.system_messages] == ["S1", "S2"]
        assert [m.content for m in chat.human_and_ai_messages] == ["u1", "a1", "a2", "u2"]
        assert (chat.ai_turns, chat.human_turns, chat.system_turns, chat.all_turns) == (2, 2, 2, 4)
        assert len(chat) == 7

    def test_views_are_new_lists_of_the_same_messages(self):
        chat = chat_of("u1")
        assert chat.human_messages is not chat.human_messages
        assert chat.human_messages[0] is chat.messages[0]

    def test_the_roles_of_the_chat_decide(self):
        chat = CanonicalChat(human_role="customer", messages=[CanonicalMessage(content="x", role="user")])
        assert chat.human_turns == 0
        chat.append_human("hello")
        assert chat.messages[-1].role == "customer"
        assert chat.human_turns == 1

    def test_roles_are_compared_exactly(self):
        assert CanonicalChat(messages=[CanonicalMessage(content="x", role="User")]).human_turns == 0

    def test_a_shared_role_counts_each_message_once(self):
        chat = CanonicalChat(human_role="peer", ai_role="peer", messages=[CanonicalMessage(content="x", role="peer")])
        assert chat.all_turns == chat.ai_turns == chat.human_turns == 1

    def test_few_shot_messages_are_in_the_views(self):
        chat = CanonicalChat(
            messages=[CanonicalMessage(content="x", role="user", name="example_user", fewshot_example=True)]
        )
        assert chat.human_turns == 1

    def test_an_empty_chat_is_false_and_its_list_its_own(self):
        assert not CanonicalChat()
        assert CanonicalChat().messages is not CanonicalChat().messages

    def test_iterating_gives_fields(self):
        assert [name for name, _ in chat_of("u")] == ["messages", "ai_name", "ai_role", "human_role", "system_role"]


class TestIndexing:
    @given(length=st.integers(0, 6), index=st.integers(-8, 8))
    def test_an_index_gives_a_chat_with_that_message(self, length, index):
        chat = chat_of(" ".join(f"u{i}" for i in range(length)))
        chat.ai_name, chat.ai_role = "Quill", "bot"
        if -length <= index < length:
            one = chat[index]
            assert one.messages == [chat.messages[index]]
            assert one.messages[0] is chat.messages[index]
            assert (one.ai_name, one.ai_role) == ("Quill", "bot")
        else:
            with pytest.raises(IndexError):
                chat[index]

    @given(
        length=st.integers(0, 5),
        start=st.none() | st.integers(-7, 7),
        stop=st.none() | st.integers(-7, 7),
        step=st.none() | st.integers(-3, 3).filter(bool),
    )
    def test_a_slice_gives_a_chat_with_that_slice(self, length, start, stop, step):
        chat = chat_of(" ".join(f"u{i}" for i in range(length)))
        part = chat[start:stop:step]
        assert part.messages == chat.messages[start:stop:step]
        assert part.messages is not chat.messages

    @pytest.mark.parametrize("key", [True, False, 1.0, "0", None])
    def test_anything_else_is_a_type_error(self, key):
        with pytest.raises(TypeError):
            chat_of("u1 u2")[key]


class TestAppending:
    def test_roles_and_names(self):
        chat = CanonicalChat(ai_name="Quill")
        assert chat.append_human("h", name="Ann") is None
        assert chat.append_ai("a") is None
        assert chat.append_ai("b", override_role="narrator") is None
        assert chat.append_human("c", override_role="") is None
        assert [(m.role, m.name) for m in chat.messages] == [
            ("user", "Ann"),
            ("assistant", None),
            ("narrator", None),
            ("user", None),
        ]

    def test_a_header_is_a_system_message_at_the_end(self):
        chat = chat_of("S1 u")
        chat.append_header(EleanorFrameworkHeader(user="Ann"))
        assert chat.messages[-1].role == "system"
        assert EleanorFrameworkHeader.from_header(chat.messages[-1].content).user == "Ann"

    @pytest.mark.parametrize(
        ("before", "placement", "patterns", "after"),
        [
            ("S1 S2 u", "after_system_content", None, "S1 S2 N u"),
            ("S1 S2 u", "after_system_content", "S1", "S1 N S2 u"),
            ("S1 S2 u", "after_system_content", ["1", "2"], "S1 S2 N u"),
            ("S1 S2 u", "after_system_content", "nothing", "S1 S2 N u"),
            ("S1 S2 u", "after_system_content", [], "S1 S2 N u"),
            ("S1 S2 u", "before_system_content", None, "N S1 S2 u"),
            ("S1 S2 u", "before_system_content", "S2", "N S1 S2 u"),
            ("u S1", "after_system_content", None, "N u S1"),
            ("u S1", "after_system_content", "S1", "N u S1"),
            ("u S1", "before_system_content", None, "N u S1"),
            ("S1 u S2", "after_system_content", "S2", "S1 N u S2"),
            ("S1 S2 u", "append", "S1", "S1 S2 u N"),
            ("", "append", None, "N"),
            ("", "before_system_content", None, "N"),
            ("", "after_system_content", "x", "N"),
        ],
    )
    def test_placement(self, before, placement, patterns, after):
        chat = chat_of(before)
        assert chat.append_system("N", placement=placement, system_msg_patterns=patterns) is None
        assert contents(chat) == after

    def test_patterns_are_searched_without_flags(self):
        chat = CanonicalChat(messages=[CanonicalMessage(content=c, role="system") for c in ("one\nHEAD", "two")])
        chat.append_system("N", placement="after_system_content", system_msg_patterns="^HEAD")
        chat.append_system("M", placement="after_system_content", system_msg_patterns="head")
        assert [m.content for m in chat.messages] == ["one\nHEAD", "two", "N", "M"]
        chat.append_system("K", placement="after_system_content", system_msg_patterns="EA")
        assert chat.messages[1].content == "K"

    @pytest.mark.parametrize(
        "arguments",
        [
            {"placement": "top"},
            {"placement": ""},
            {"placement": "after_system_content", "system_msg_patterns": "("},
            {"placement": "after_system_content", "system_msg_patterns": ["S1", "a{99999999999999999999}"]},
            {"placement": "after_system_content", "system_msg_patterns": "(" * 5000 + ")" * 5000},
        ],
    )
    def test_a_wrong_placement_or_pattern_changes_nothing(self, arguments):
        chat = chat_of("S1 u")
        with pytest.raises(ValueError, match=r"placement|pattern"):
            chat.append_system("N", **arguments)
        assert contents(chat) == "S1 u"

    def test_an_invalid_pattern_is_not_looked_at_elsewhere(self):
        chat = chat_of("S1")
        chat.append_system("N", placement="before_system_content", system_msg_patterns="(")
        assert contents(chat) == "N S1"

    def test_from_single(self):
        chat = CanonicalChat.from_single("text")
        assert [(m.role, m.content) for m in chat.messages] == [("system", "text")]
        assert chat.human_role == "user"


class TestParseSystemMessage:
    PATTERN = r"^ELEANOR_SYSTEM\s*({.+})$"

    def parse(self, chat: CanonicalChat, parser=lambda groups: groups):
        return chat.parse_system_message(self.PATTERN, "default", parser)

    def test_first_match_with_its_groups_and_place(self):
        chat = CanonicalChat(
            messages=[
                CanonicalMessage(content='ELEANOR_SYSTEM {"a"}', role="user"),
                CanonicalMessage(content="other", role="system"),
                CanonicalMessage(content='  ELEANOR_SYSTEM {"a":\n1}\n', role="system"),
                CanonicalMessage(content="ELEANOR_SYSTEM {2}", role="system"),
            ]
        )
        before = chat.model_copy(deep=True)
        message, value, index = self.parse(chat)
        assert message is chat.messages[2]
        assert value == ('{"a":\n1}',)
        assert index == 2
        assert chat == before

    def test_a_parser_that_fails_gives_the_default_with_the_message(self):
        chat = CanonicalChat.from_single("ELEANOR_SYSTEM {broken}")
        chat.append_system('ELEANOR_SYSTEM {"fine": 1}')

        def fail(_groups):
            raise KeyError("any exception")

        assert self.parse(chat, fail) == (chat.messages[0], "default", 0)

    def test_no_match(self):
        assert self.parse(chat_of("S1 u")) == (None, "default", None)
        assert self.parse(CanonicalChat.from_single("ELEANOR_SYSTEM {}")) == (None, "default", None)

    def test_an_invalid_pattern(self):
        with pytest.raises(re.error):
            CanonicalChat().parse_system_message("(", None, lambda groups: None)


def test_the_module_needs_neither_django_nor_langchain():
    code = (
        "import sys; from chats.domain import CanonicalChat; CanonicalChat.from_single('x');"
        "print(sorted(m for m in sys.modules if m.split('.')[0] in ('django', 'langchain_core', 'numpy', 'pyarrow')))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
