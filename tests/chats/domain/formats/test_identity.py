"""When two imported chats are one, and when a chat has changed (import-formats.md section 5)."""

from chats.domain.formats import content_hash, identity_key, state_hash
from tests.chats.domain.formats.uploads import as_json, as_lines, imported

TALK = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]


def row(messages=TALK, **more):
    return {"messages": messages, "extra": "x", **more}


def test_an_external_id_identifies_and_a_task_does_not():
    by_id, by_task, by_content = (imported(as_json([row(**m)])).chat for m in ({"id": "7"}, {"task_id": "7"}, {}))
    assert identity_key(by_id) == "id:7"
    assert identity_key(by_task) == identity_key(by_content) == "content:" + content_hash(by_content)


def test_the_same_file_gives_the_same_identities_and_states():
    upload = as_lines(row(id="1"), row(task_id="t"), row())
    first, second = imported(upload).chats, imported(upload).chats
    assert [identity_key(c) for c in first] == [identity_key(c) for c in second]
    assert [state_hash(c) for c in first] == [state_hash(c) for c in second]


def test_the_place_in_the_file_does_not_matter():
    alone = imported(as_json([row(id="1")])).chat
    later = imported(as_lines(row(id="0"), row(id="1"))).chats[1]
    assert state_hash(alone) == state_hash(later)


def test_calls_are_part_of_the_content_and_details_of_the_state():
    def with_call(arguments, **more):
        call = {"id": "c", "function": {"name": "f", "arguments": arguments}}
        return imported(as_json([row([{"role": "assistant", "content": "", "tool_calls": [call], **more}])])).chat

    one = with_call("{}")
    assert content_hash(one) != content_hash(with_call('{"a": 1}'))
    thinking = with_call("{}", reasoning_content="T")
    assert content_hash(one) == content_hash(thinking)
    assert state_hash(one) != state_hash(thinking)


def test_chat_data_is_part_of_the_state():
    assert state_hash(imported(as_json([row(id="1")])).chat) != state_hash(imported(as_json([row(id="1", n=2)])).chat)


def test_an_id_used_twice_with_other_messages_goes_by_hash():
    other = [{"role": "user", "content": "else"}]
    found = imported(as_lines(row(id="1"), row(id="1"), row(other, id="1")))
    assert [identity_key(c).split(":")[0] for c in found.chats] == ["id", "id", "content"]
    assert found.report.ids_used_twice == 1
