"""The exchange form, both ways (canonical-chat.md section 5)."""

import json
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chats.domain import ChatRecord, EleanorFrameworkHeader
from chats.domain.exchange import ExchangeError, from_exchange, from_json, to_exchange, to_json
from tests.chats.domain.formats.uploads import as_lines, brief, imported
from tests.shared_data import SHARED, needs_shared

text = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), max_size=8)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | text,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(text, inner, max_size=2),
    max_leaves=5,
)
objects = st.dictionaries(text, values, max_size=3)
zones = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
moments = st.datetimes(min_value=datetime(1970, 1, 2), timezones=zones)
calls = st.lists(
    st.fixed_dictionaries({"id": text, "name": text}).flatmap(
        lambda call: st.one_of(
            objects.map(lambda a: call | {"arguments": a}), text.map(lambda a: call | {"arguments_raw": a})
        )
    ),
    max_size=3,
    unique_by=lambda call: call["id"],
)
details = st.fixed_dictionaries(
    {},
    optional={
        "tool_calls": calls,
        "finish_reason": st.sampled_from(["stop", "length", "tool_calls", "content_filter", "error"]),
        "finish_reason_raw": text,
        "reasoning": text,
        "result_status": st.sampled_from(["ok", "error", "not_run"]),
        "exit_code": st.integers(-300, 300),
        "nudge_code": text,
        "created_at": moments,
        "model": text,
        "usage": objects,
        "parts": st.lists(objects, max_size=2),
        "source_ref": text,
    },
)
messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "system", "tool", "other"]), "content": text},
    optional={"name": text, "tool_call_id": text},
)
records = st.builds(
    lambda pairs, data, roles: ChatRecord.model_validate(
        {**data, "chat": {"messages": [m for m, _ in pairs], **roles}, "details": [d for _, d in pairs]}
    ),
    st.lists(st.tuples(messages, details), max_size=4),
    st.fixed_dictionaries(
        {},
        optional={
            "external_id": text,
            "title": text,
            "tools": st.lists(
                st.fixed_dictionaries({"name": text}, optional={"description": text, "parameters": objects})
            ),
            "step_budget": st.integers(0, 99),
            "require_delivery": st.booleans(),
            "audit_mode": st.booleans(),
            "chat_type": text,
            "metadata": objects,
            "header": st.builds(EleanorFrameworkHeader, user=text),
        },
    ),
    st.fixed_dictionaries({}, optional={"ai_name": text, "human_role": text, "ai_role": text}),
)


@given(records)
def test_round_trip(record):
    assert from_json(to_json(record)) == record


@given(records)
def test_one_line_with_the_format_first(record):
    written = to_json(record)
    assert "\n" not in written
    assert list(json.loads(written))[:2] == ["format", "version"]


def minimal(*given_messages, **more):
    return {"format": "eleanor-chat", "version": 1, "chat": {"messages": list(given_messages)}, **more}


def test_what_is_missing_is_unknown():
    record = from_exchange(minimal())
    assert (record.tools, record.step_budget, record.require_delivery, record.audit_mode) == (None,) * 4
    assert from_exchange(minimal(tools=[])).tools == []


def test_details_stand_beside_the_message_fields():
    record = from_exchange(
        minimal(
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"name": "f"}, {"id": "x", "name": "g", "arguments_raw": "{"}],
            },
            {"role": "tool", "content": "r", "tool_call_id": "call-0-0", "result_status": "not_run", "exit_code": 3},
            tools=["f", {"name": "g", "description": "d"}],
        )
    )
    assert brief(record) == ["assistant:  +f{} +g!{", "tool[call-0-0 not_run 3]: r"]
    assert set(record.chat.messages[0].model_dump()) == {"role", "content", "name", "tool_call_id", "fewshot_example"}
    assert to_exchange(record)["tools"] == ["f", {"name": "g", "description": "d"}]


def test_a_header_among_the_messages_is_known():
    record = from_exchange(minimal({"role": "system", "content": 'ELEANOR_SYSTEM {"user": "Ann"}'}))
    assert record.header == EleanorFrameworkHeader(user="Ann")
    assert "metadata" not in to_exchange(record)
    assert from_exchange(minimal({"role": "system", "content": "ELEANOR_SYSTEM {broken}"})).header is None


def test_keys_beside_the_chat_are_told_and_keys_inside_refused():
    unknown: list[str] = []
    from_exchange(minimal(colour="red"), unknown)
    assert unknown == ["colour"]
    given_chat = minimal(
        {"role": "user", "content": "x", "colour": "red"},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "name": "f", "colour": 1}]},
    )
    given_chat["chat"]["colour"] = 1
    with pytest.raises(ExchangeError) as caught:
        from_exchange(given_chat)
    assert sorted((f.code, f.path) for f in caught.value.faults) == [
        ("refused_key", "chat.colour"),
        ("refused_key", "chat.messages[0].colour"),
        ("refused_key", "chat.messages[1].tool_calls[0].colour"),
    ]


@pytest.mark.parametrize(
    ("given_chat", "path"),
    [
        ({"format": "other", "version": 1, "chat": {}}, "format"),
        ({"format": "eleanor-chat", "version": 2, "chat": {}}, "version"),
        ({"format": "eleanor-chat", "chat": {}}, "version"),
        ({"format": "eleanor-chat", "version": 1}, "chat"),
        ([], "format"),
        (minimal({"role": "user"}), "chat.messages[0].content"),
        (minimal({"role": "user", "content": None}), "chat.messages[0].content"),
        (minimal("x"), "chat.messages[0]"),
        (minimal({"role": "user", "content": "x", "fewshot_example": True}), "chat.messages[0]"),
        (minimal({"role": "user", "content": "x", "created_at": "2026-01-01T00:00:00"}), "chat.messages[0].created_at"),
        (minimal({"role": "tool", "content": "x", "result_status": "maybe"}), "chat.messages[0].result_status"),
        (
            minimal(
                {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "name": "f"}, {"id": "c", "name": "f"}]}
            ),
            "chat.messages[0].tool_calls[1].id",
        ),
        (
            minimal({"role": "assistant", "content": "", "tool_calls": [{"id": [], "name": "f"}]}),
            "chat.messages[0].tool_calls[0].id",
        ),
        (minimal(step_budget="many"), "step_budget"),
        (minimal(tools="f"), "tools"),
        ({"format": "eleanor-chat", "version": 1, "chat": {"messages": {}}}, "chat.messages"),
    ],
)
def test_refusals_name_their_path(given_chat, path):
    with pytest.raises(ExchangeError) as caught:
        from_exchange(given_chat)
    assert path in [f.path for f in caught.value.faults]


def test_import_reports_faults_at_their_line_and_takes_the_others():
    good = minimal({"role": "user", "content": "hi"}, extra=1)
    bad = minimal({"role": "user", "content": "hi", "a": 1, "b": 2})
    found = imported(as_lines(good, bad, good))
    assert len(found.chats) == 2
    assert [(p.code, p.place.line, p.place.path) for p in found.problems] == [
        ("refused_key", 2, "chat.messages[0].a"),
        ("refused_key", 2, "chat.messages[0].b"),
    ]
    assert found.report.chats_lost == 1
    assert found.report.not_understood == {"extra": 2}


@needs_shared
def test_the_recorded_chats_come_back_as_they_were():
    for line in (SHARED / "samples/eleanor-chat/chats.jsonl").read_text().splitlines():
        assert to_exchange(from_json(line)) == json.loads(line) | {"chat": to_exchange(from_json(line))["chat"]}
        for written, read in zip(
            to_exchange(from_json(line))["chat"]["messages"], json.loads(line)["chat"]["messages"], strict=True
        ):
            assert written == read
