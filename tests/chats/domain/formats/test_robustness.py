"""No upload, however shaped, raises; what it gives is always valid and storable."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chats.domain import ChatRecord
from chats.domain.exchange import from_json, to_json
from chats.domain.formats import FORMATS, PROBLEM_CODES, Problem
from tests.chats.domain.formats.uploads import imported

KEYS = [
    "messages",
    "role",
    "content",
    "type",
    "text",
    "name",
    "id",
    "tool_calls",
    "tool_call_id",
    "function",
    "arguments",
    "parts",
    "args",
    "input",
    "output",
    "request",
    "response",
    "exchanges",
    "choices",
    "message",
    "conversations",
    "from",
    "value",
    "mapping",
    "current_node",
    "parent",
    "author",
    "metadata",
    "history",
    "currentId",
    "traj",
    "info",
    "simulations",
    "results",
    "observation",
    "action",
    "kind",
    "steps",
    "source",
    "resourceSpans",
    "samples",
    "eval",
    "uuid",
    "parentUuid",
    "sessionId",
    "payload",
    "mes",
    "is_user",
    "extra",
    "versions",
    "chunkedPrompt",
    "chunks",
    "contents",
    "candidates",
    "post",
    "inputs",
    "outputs",
    "run_type",
    "observations",
    "chat_messages",
    "sender",
    "instruction",
    "chat",
    "format",
    "version",
    "data",
    "attributes",
    "spans",
]
leaves = (
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.sampled_from(["", "user", "assistant", "tool", "text", "x\u0000"])
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=30,
)


def check(upload: bytes, format: str | None = None) -> None:
    found = imported(upload, format=format, all_branches=True, text_protocol="hermes")
    for record in found.chats:
        ChatRecord.model_validate(record.model_dump())
        assert "\x00" not in to_json(record)
        assert from_json(to_json(record)).chat == record.chat
    for problem in found.problems:
        assert isinstance(problem, Problem)
        assert problem.code in PROBLEM_CODES
        json.dumps(dict(problem.args))
    assert found.report.chats == len(found.chats)


@pytest.mark.parametrize("name", [f.id for f in FORMATS])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows=st.lists(values, min_size=1, max_size=3))
def test_any_json_read_as_any_format(name, rows):
    check("\n".join(json.dumps(r) for r in rows).encode(), name)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(value=values)
def test_any_json(value):
    check(json.dumps(value).encode())


@settings(max_examples=200, deadline=None)
@given(
    upload=st.binary(max_size=200)
    | st.sampled_from([b"\x1f\x8b", b"PK\x03\x04", b"PAR1", b"PK\x05\x06"]).flatmap(
        lambda head: st.binary(max_size=60).map(lambda rest: head + rest)
    )
)
def test_any_bytes(upload):
    check(upload)
