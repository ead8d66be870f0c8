"""Uploads of a few hundred kilobytes that cost hours or gigabytes unless reading takes time in proportion to them."""

import pytest

from chats.domain.formats import Limits
from chats.domain.formats.text_protocols import PROTOCOLS
from tests.chats.domain.formats.uploads import as_json, as_lines, brief, imported

N = 50_000
DEEP = 3_000
CALL = {"function": {"name": "f", "arguments": {}}}
CALLING = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "", "tool_calls": [CALL, CALL]}]
RESULTS = [{"role": "tool", "content": "x"}] * DEEP


def comb() -> dict[str, str | None]:
    """Parents of nodes: a long line, and at each of its nodes a leaf beside it."""
    return {
        name: parent
        for i in range(DEEP)
        for name, parent in ((f"n{i}", f"n{i - 1}" if i else None), (f"l{i}", f"n{i}"))
    }


def chatgpt() -> bytes:
    told = {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["x"]}}
    nodes = {i: {"id": i, "parent": p, "message": told} for i, p in comb().items()}
    return as_json({"mapping": nodes, "current_node": f"n{DEEP - 1}"})


def claude_ai() -> bytes:
    told = [{"uuid": i, "parent_message_uuid": p, "sender": "human", "text": "x"} for i, p in comb().items()]
    return as_json({"uuid": "c", "chat_messages": told, "current_leaf_message_uuid": f"n{DEEP - 1}"})


def open_webui() -> bytes:
    nodes = {i: {"id": i, "parentId": p, "role": "user", "content": "x"} for i, p in comb().items()}
    return as_json({"history": {"currentId": f"n{DEEP - 1}", "messages": nodes}})


def claude_code() -> bytes:
    said = {"role": "user", "content": "x"}
    records = [
        {"type": "user", "uuid": i, "parentUuid": p, "sessionId": "s", "message": said} for i, p in comb().items()
    ]
    return as_lines(*records, {**records[0], "uuid": "end", "parentUuid": f"n{DEEP - 1}"})


@pytest.mark.parametrize("upload", [chatgpt, claude_ai, open_webui, claude_code])
def test_combs_of_branches(upload):
    found = imported(upload())
    assert len(found.chat.chat.messages) in (DEEP, DEEP + 1)
    assert found.report.other_branches in (DEEP, DEEP - 1)


@pytest.mark.parametrize("kind", ["text", "tool_use"])
def test_an_answer_in_very_many_pieces(kind):
    def record(i: int) -> dict[str, object]:
        block = {"type": kind, "text": "y" * 40, "id": str(i), "name": "f", "input": {}}
        message = {"id": "m", "content": [block]}
        return {"type": "assistant", "uuid": str(i), "parentUuid": str(i - 1), "sessionId": "s", "message": message}

    chat = imported(as_lines(*(record(i) for i in range(DEEP)))).chat
    (message,), (details,) = chat.chat.messages, chat.details
    assert (len(message.content), len(details.tool_calls)) in ((DEEP * 41 - 1, 0), (0, DEEP))


def test_pieces_of_an_answer_count_together():
    def record(i: int) -> dict[str, object]:
        message = {"id": "m", "content": [{"type": "text", "text": "é" * 100}]}
        return {"type": "assistant", "uuid": str(i), "parentUuid": str(i - 1), "sessionId": "s", "message": message}

    assert imported(as_lines(*map(record, range(4))), limits=Limits(message_bytes=803)).codes == []
    assert imported(as_lines(*map(record, range(4))), limits=Limits(message_bytes=802)).codes == ["limit"]


@pytest.mark.parametrize(
    ("format", "upload"),
    [
        ("invariant", as_json({"messages": CALLING + RESULTS})),
        ("ollama", as_json({"messages": CALLING + RESULTS, "response": {"done": True, "message": {"content": "a"}}})),
    ],
)
def test_very_many_results_without_ids(format, upload):
    found = imported(upload, format=format)
    ids = [m.tool_call_id for m in found.chat.chat.messages if m.role == "tool"]
    assert ids == ["call-1-0", "call-1-1", *[None] * (DEEP - 2)]


@pytest.mark.parametrize(
    "content", ["<details>" * N, "<details " + "a" * N + "></details>", '<details type="reasoning">' * N]
)
def test_blocks_that_never_end(content):
    nodes = {"a": {"id": "a", "role": "assistant", "content": content, "parentId": None}}
    found = imported(as_json({"history": {"currentId": "a", "messages": nodes}}))
    assert found.chat.chat.messages[0].content == content


@pytest.mark.parametrize(
    "content",
    [
        "<function=a>" + "<parameter=k>" * N,
        "<function=" * N,
        "Action:" + " " * N + "b\nAction Input:" + " " * N,
        "<tool_call>" + " " * N + "x",
        "```bash\n" * N + "x",
        "Act: bash" + "```bash\n" * N,
        "<execute>" + " " * N,
    ],
)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_text_protocols_over_hostile_answers(protocol, content):
    results = "<tool_response>" + " " * N + "x"
    told = [("user", "q"), ("assistant", content), ("user", results)]
    found = imported(as_json({"messages": [{"role": r, "content": c} for r, c in told]}), text_protocol=protocol)
    assert len(found.chats) == 1


def test_blanks_around_a_control_mark():
    run = {"traj": [{"role": "user", "content": "###" + " " * N + "x ###STOP###"}], "reward": 1}
    assert imported(as_json([run])).chat.chat.messages[0].content == "###" + " " * N + "x"


def test_references_that_blow_up():
    reference = "attachment://" + "a" * 32
    sample = {"id": 1, "epoch": 1, "target": "", "attachments": {"a" * 32: "z" * N}}
    messages = [{"role": "user", "content": (reference + "\n") * 5000}]
    assert imported(as_json({"eval": {}, "samples": [{**sample, "messages": messages}]})).codes == ["limit"]
    pool = [{"role": "user", "content": "x"}] * DEEP
    ranges = {**sample, "messages": [[0, DEEP]] * DEEP, "message_pool": pool}
    assert imported(as_json({"eval": {}, "samples": [ranges]})).codes == ["limit"]


def test_traces_of_very_many_steps():
    def span(i: int) -> dict[str, object]:
        told = as_json([{"role": "system", "parts": [{"type": "text", "content": str(i)}]}]).decode()
        attributes = [{"key": "gen_ai.input.messages", "value": {"stringValue": told}}]
        return {"traceId": "t", "spanId": str(i), "parentSpanId": str(i - 1), "attributes": attributes}

    found = imported(as_lines(*({"resourceSpans": [{"scopeSpans": [{"spans": [span(i)]}]}]} for i in range(1500))))
    assert len(found.chats) == 1500
    steps = [
        {
            "id": str(i),
            "traceId": "t",
            "type": "GENERATION",
            "parentObservationId": str(i - 1),
            "input": [{"role": "user", "content": str(i)}],
            "output": "x",
        }
        for i in range(DEEP)
    ]
    assert brief(imported(as_json(steps)).chat)[1] == "assistant: x"
