"""A redacted chat keeps its shape, and none of the texts; what goes is told beforehand."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from chats.domain import ChatRecord
from chats.domain.exchange import from_exchange, from_json, to_json
from chats.domain.redaction import REDACTED, without_matches, without_messages

NAME = "Zanzibar"


def find(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(NAME, text)]


def record(**chat: Any) -> ChatRecord:
    messages = [
        {"role": "system", "content": f"You help {NAME}."},
        {"role": "user", "content": f"I am {NAME}, {NAME}!", "name": f"{NAME}-1"},
        {
            "role": "assistant",
            "content": "",
            "reasoning": f"This is {NAME}.",
            "tool_calls": [
                {"id": "a", "name": "find", "arguments": {"who": [NAME, {"also": f"x{NAME}"}], "n": 3, "ok": True}},
                {"id": "b", "name": "find", "arguments_raw": f"who={NAME}"},
            ],
            "parts": [{"type": "text", "text": NAME}],
        },
        {"role": "tool", "tool_call_id": "a", "content": f"found {NAME}", "exit_code": 1},
        {"role": "assistant", "content": "Done.", "finish_reason": "stop"},
    ]
    data = {"external_id": f"id-{NAME}", "title": f"About {NAME}", "metadata": {"tags": [NAME], "n": 1}, **chat}
    return from_exchange({"format": "eleanor-chat", "version": 1, **data, "chat": {"messages": messages}})


def test_a_pattern_is_taken_out_of_every_text() -> None:
    found = without_matches(record(), find)
    assert NAME not in to_json(found.record)
    assert [(p.message, p.part) for p in found.places] == [
        (0, "text"), (1, "text"), (1, "text"), (1, "name"), (2, "reasoning"), (2, "arguments"), (2, "arguments"),
        (2, "arguments"), (2, "parts"), (3, "text"), (None, "title"), (None, "id"), (None, "metadata"),
    ]  # fmt: skip
    assert {p.found for p in found.places} == {NAME}
    assert found.places[1].before == "I am "
    assert found.record.chat.messages[1].content == f"I am {REDACTED}, {REDACTED}!"
    call = found.record.details[2].tool_calls[0]
    assert call.arguments == {"who": [REDACTED, {"also": f"x{REDACTED}"}], "n": 3, "ok": True}


def test_the_shape_stays() -> None:
    before, after = record(), without_matches(record(), find).record
    assert [m.role for m in after.chat.messages] == [m.role for m in before.chat.messages]
    assert [[(c.id, c.name) for c in d.tool_calls] for d in after.details] == [
        [(c.id, c.name) for c in d.tool_calls] for d in before.details
    ]
    assert [(d.exit_code, d.finish_reason) for d in after.details] == [
        (d.exit_code, d.finish_reason) for d in before.details
    ]
    assert from_json(to_json(after)).chat == after.chat


def test_nothing_found_changes_nothing() -> None:
    given = record()
    found = without_matches(given, lambda text: [])
    assert found.record is given
    assert found.places == ()


def test_messages_go_whole_with_a_title_that_repeats_them() -> None:
    found = without_messages(record(title=f"I am {NAME}"), [1, 2])
    after = found.record
    assert found.messages == {1, 2}
    assert after.title == REDACTED
    assert (after.chat.messages[1].content, after.chat.messages[1].name) == (REDACTED, None)
    assert after.chat.messages[2].content == ""
    assert after.details[2].reasoning == REDACTED
    assert after.details[2].parts is None
    assert after.details[2].tool_calls[0].arguments == {
        "who": [REDACTED, {"also": REDACTED}],
        "n": REDACTED,
        "ok": True,
    }
    assert after.details[2].tool_calls[1].arguments_raw == REDACTED
    assert after.chat.messages[3].content == f"found {NAME}"


def test_a_redacted_message_has_nothing_left_to_take() -> None:
    once = without_messages(record(), [1]).record
    assert without_messages(once, [1]).places == ()


def test_a_header_loses_the_person_and_stays_a_header() -> None:
    header = {"source": "app", "user": NAME, "char": "E"}
    given = from_exchange(
        {
            "format": "eleanor-chat",
            "version": 1,
            "metadata": {"eleanor_header": header},
            "chat": {"messages": [{"role": "user", "content": "hello"}]},
        }
    )
    after = without_matches(given, find).record
    assert NAME not in to_json(after)
    assert after.header is not None
    assert (after.header.user, after.header.char) == (REDACTED, "E")


@given(st.lists(st.text(), min_size=1, max_size=4), st.sampled_from(["a", "é", "0", " ", "\n", "\\", '"']))
def test_no_found_character_is_left_in_any_text(texts: list[str], character: str) -> None:
    given = from_exchange(
        {
            "format": "eleanor-chat",
            "version": 1,
            "chat": {"messages": [{"role": "user", "content": text} for text in texts]},
        }
    )
    found = without_matches(given, lambda text: [(n, n + 1) for n, c in enumerate(text) if c == character])
    assert len(found.places) == sum(text.count(character) for text in texts)
    for before, after in zip(texts, found.record.chat.messages, strict=True):
        assert after.content == before.replace(character, REDACTED)
    assert json.loads(to_json(found.record))
