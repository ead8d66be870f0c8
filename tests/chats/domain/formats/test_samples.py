"""The golden run over the recorded sample files, a test a format."""

import json

import pytest

from chats.domain.formats import FORMATS, Limits, open_source, state_hash
from chats.domain.formats.limits import ImportOptions
from tests.golden.formats import failures
from tests.shared_data import SHARED, needs_shared

SAMPLES = SHARED / "samples"
ENTRIES = json.loads((SAMPLES / "index.json").read_text())["files"] if SAMPLES.is_dir() else []
NAMES = sorted({e["format"] for e in ENTRIES})


@needs_shared
@pytest.mark.parametrize("name", NAMES or ["none"])
def test_every_sample_gives_the_conversations_of_the_index(name):
    entries = [e for e in ENTRIES if e["format"] == name]
    assert {e["path"]: found for e in entries if (found := failures(SAMPLES, e))} == {}


@needs_shared
def test_every_format_has_samples_and_every_folder_a_format():
    assert {f.id for f in FORMATS} == set(NAMES) - {"containers", "hostile"}


@needs_shared
@pytest.mark.parametrize("name", NAMES or ["none"])
def test_importing_again_gives_the_same_chats(name):
    for entry in [e for e in ENTRIES if e["format"] == name][:3]:
        once, twice = (
            [state_hash(found.record) for found in open_source(SAMPLES / entry["path"]) if found.record]
            for _ in range(2)
        )
        assert once == twice


@needs_shared
@pytest.mark.parametrize("name", NAMES or ["none"])
def test_branches_only_add_chats(name):
    for entry in [e for e in ENTRIES if e["format"] == name][:3]:
        few = [r for found in open_source(SAMPLES / entry["path"]) if (r := found.record)]
        many = [
            r
            for found in open_source(SAMPLES / entry["path"], options=ImportOptions(all_branches=True))
            if (r := found.record)
        ]
        assert {state_hash(r) for r in few} <= {state_hash(r) for r in many}


@needs_shared
def test_a_tight_message_limit_keeps_what_is_complete():
    entry = next(e for e in ENTRIES if e["format"] == "tau-bench" and e["conversations"] > 10)
    source = open_source(SAMPLES / entry["path"], options=ImportOptions(limits=Limits(messages=40)))
    items = list(source)
    assert [i.problem.args["limit"] for i in items if i.problem] == ["messages"]
    assert items[-1].problem is not None
    assert all(len(i.record.chat.messages) <= 40 for i in items if i.record)
