"""Importing a file: what is taken, what the database holds afterwards, and twice the same."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.test import Client
from django_scopes import scope

from chats.chunks import imports_to_send_again, run_import
from chats.domain.exchange import from_json, to_exchange
from chats.models import Chat, ChatVersion, ImportedChat, ImportJob
from chats.problem_sentences import sections_of
from chats.queries.chats import record_of
from chats.services.importing import try_again
from eleanor_site.audit.models import Entry
from eleanor_site.jobs import Status
from eleanor_site.tenants.models import Tenant, User
from rules.models import RecordedNudge
from tests.factories import exchange_chat, import_text, make_chat, some_author

CALL = {"id": "c1", "name": "run_tests", "arguments": {"b": 1, "a": [1.0, 10**20]}}
MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": 'ELEANOR_SYSTEM {"source": "ST", "user": "Ada"}'},
    {"role": "user", "content": "Corrige le test, s'il te plaît.", "created_at": "2026-03-02T14:05:00+01:00"},
    {"role": "assistant", "content": "", "tool_calls": [CALL], "finish_reason": "tool_calls", "reasoning": "hm"},
    {"role": "tool", "content": "1 failed", "tool_call_id": "c1", "result_status": "error", "exit_code": 1},
    {"role": "assistant", "content": "C'est fait.", "finish_reason": "stop", "model": "m-1", "usage": {"out": 3}},
    {"role": "user", "content": "Do it.", "nudge_code": "EAI-GOV-03"},
    {"role": "assistant", "content": "Bon.", "finish_reason": None},
]


def test_a_chat_is_stored_with_its_details_and_read_back_equal(in_acme: Tenant) -> None:
    sent = exchange_chat(*MESSAGES, external_id="x-1", tools=["run_tests"], step_budget=9, metadata={"z": 1, "a": 2})
    chat = make_chat(
        in_acme, *MESSAGES, external_id="x-1", tools=["run_tests"], step_budget=9, metadata={"z": 1, "a": 2}
    )
    stored = record_of(ChatVersion.objects.get(chat=chat))
    assert to_exchange(stored) == to_exchange(from_json(json.dumps(sent)))
    assert stored.details[2].tool_calls[0].arguments == CALL["arguments"]
    assert json.dumps(stored.details[2].tool_calls[0].arguments) == json.dumps(CALL["arguments"]), (
        "key order and numbers"
    )
    assert stored.header is not None
    assert stored.header.user == "Ada"


def test_what_the_list_shows_of_a_chat(in_acme: Tenant) -> None:
    chat = make_chat(in_acme, *MESSAGES)
    assert (chat.message_count, chat.turn_count, chat.round_points, chat.final_points) == (7, 1, 1, 2)
    assert (chat.language, chat.model, chat.nudge_count) == ("fr", "m-1", 1)
    assert chat.title == "Corrige le test, s'il te plaît."
    assert chat.started_at is not None


def test_recorded_nudges_become_rows_and_follow_the_newest_version(in_acme: Tenant) -> None:
    make_chat(in_acme, *MESSAGES)
    nudge = RecordedNudge.objects.get()
    assert (nudge.code, nudge.message, nudge.turn, nudge.stage, nudge.outcome) == (
        "EAI-GOV-03",
        5,
        0,
        "final",
        "ignored",
    )
    make_chat(in_acme, *MESSAGES[:5])
    assert not RecordedNudge.objects.exists()


def test_twice_the_same_file_changes_nothing(in_acme: Tenant) -> None:
    text = "\n".join(json.dumps(exchange_chat(external_id=f"x-{n}")) for n in range(3))
    first, second = import_text(in_acme, text), import_text(in_acme, text)
    assert (first.taken, first.updated, first.unchanged) == (3, 0, 0)
    assert (second.taken, second.updated, second.unchanged) == (0, 0, 3)
    assert Chat.objects.count() == ChatVersion.objects.count() == 3


def test_a_changed_chat_becomes_a_version_and_the_old_one_stays(in_acme: Tenant) -> None:
    chat = make_chat(in_acme, *MESSAGES[:5])
    old = ChatVersion.objects.get(chat=chat).content
    job = import_text(in_acme, json.dumps(exchange_chat(*MESSAGES, external_id="chat-1")))
    assert (job.taken, job.updated) == (0, 1)
    versions = list(ChatVersion.objects.filter(chat=chat).order_by("number"))
    assert [v.number for v in versions] == [1, 2]
    assert versions[0].content == old


def test_bad_records_are_left_out_with_their_line(in_acme: Tenant) -> None:
    good = json.dumps(exchange_chat(external_id="good"))
    bad = json.dumps({"format": "eleanor-chat", "version": 1, "chat": {"messages": [{"role": "user", "contnt": "x"}]}})
    job = import_text(in_acme, "\n".join([good, bad, "{not json", good.replace('"good"', '"other"')]))
    assert job.status == Status.DONE
    assert (job.taken, job.skipped) == (2, 2)
    report = json.loads(job.report)
    shown = [place for section in sections_of(report) for row in section["rows"] for place in row["places"]]
    assert any(place.startswith("line 3: ") for place in shown)
    assert any("contnt" in place for place in shown)


def test_what_was_skipped_on_purpose_is_told_in_words() -> None:
    noted = {"count": 1, "places": [{"line": 2}]}
    codes = ["no_record", "record:summary", "event:recall", "other"]
    (section,) = sections_of({"skipped": dict.fromkeys(codes, noted)})
    assert [str(row["label"]) for row in section["rows"]] == [
        "Entries that are no records",
        "Records of type summary",
        "Records of type recall",
        "other",
    ]
    assert section["rows"][0]["places"] == ["line 2"]


@pytest.mark.parametrize(
    "content",
    [b"", b"\x00\x01\x02", b"{", b"[]", b'{"some": "thing"}', b"\xff\xfe\x00", b"PK\x03\x04broken", b"\x1f\x8bbroken"],
)
def test_a_file_that_holds_no_chat_fails_with_a_reason(in_acme: Tenant, content: bytes) -> None:
    from django.core.files.base import ContentFile

    from chats.services.importing import start_import

    file = ContentFile(content, name="bad")
    job = start_import(tenant=in_acme, by=some_author(in_acme), file=file, name="bad", send=False)
    run_import(job.pk)
    job.refresh_from_db()
    assert job.status == Status.FAILED
    assert json.loads(job.report)["problems"]
    assert not Chat.objects.exists()


def test_an_import_that_was_cut_off_goes_on_without_doubling(in_acme: Tenant) -> None:
    text = "\n".join(json.dumps(exchange_chat(external_id=f"x-{n}")) for n in range(5))
    job = import_text(in_acme, text)
    # As a killed worker leaves it: running, silent, some chats taken.
    ImportedChat.objects.filter(chat__external_id__in=["x-3", "x-4"]).delete()
    Chat.objects.filter(external_id__in=["x-3", "x-4"]).delete()
    ImportJob.objects.filter(pk=job.pk).update(status=Status.RUNNING, heartbeat_at="2020-01-01T00:00:00Z", taken=0)
    assert imports_to_send_again() == [job.pk]
    assert imports_to_send_again() == [], "two sweepers send once"
    ImportJob.objects.filter(pk=job.pk).update(heartbeat_at="2020-01-01T00:00:00Z")
    run_import(job.pk)
    job.refresh_from_db()
    assert (job.status, job.taken, job.unchanged) == (Status.DONE, 5, 0)
    assert Chat.objects.count() == ChatVersion.objects.count() == 5


def test_a_job_that_somebody_works_on_is_left_alone(in_acme: Tenant) -> None:
    job = import_text(in_acme, json.dumps(exchange_chat()))
    before = ImportJob.objects.values().get(pk=job.pk)
    run_import(job.pk)
    assert ImportJob.objects.values().get(pk=job.pk) == before


def test_a_check_says_what_an_import_would_do_and_stores_nothing(author: Client, acme: Tenant) -> None:
    make_chat(acme, external_id="known")
    lines = [exchange_chat(external_id="known"), exchange_chat(external_id="new"), {"no": "chat"}]
    upload = io.BytesIO("\n".join(json.dumps(line) for line in lines).encode())
    upload.name = "check.jsonl"
    url = author.post("/t/acme/chats/import", {"file": upload, "check": "1"})["Location"]
    pk = int(url.split("/")[-2])
    run_import(pk)
    with scope(tenant=acme):
        job = ImportJob.objects.get(pk=pk)
        assert (job.status, job.taken, job.unchanged, job.skipped) == (Status.DONE, 1, 1, 1)
        assert Chat.objects.count() == 1
    assert b"Only checked" in author.get(url).content
    author.post(f"{url}retry")
    run_import(pk)
    with scope(tenant=acme):
        job.refresh_from_db()
        assert (job.status, job.taken, job.unchanged) == (Status.DONE, 1, 1)
        assert Chat.objects.count() == 2


def test_calls_written_as_text_are_offered_for_conversion(author: Client, acme: Tenant) -> None:
    answer = "I will look.\n<function=bash>\n<parameter=command>ls</parameter>\n</function>"
    messages = [
        {"role": "user", "content": "Fix it."},
        {"role": "assistant", "content": answer},
        {"role": "user", "content": "OBSERVATION:\nsetup.py"},
        {"role": "assistant", "content": "Done."},
    ]
    upload = io.BytesIO(json.dumps({"messages": messages}).encode())
    upload.name = "agent.json"
    url = author.post("/t/acme/chats/import", {"file": upload, "check": "1"})["Location"]
    pk = int(url.split("/")[-2])
    run_import(pk)
    assert b"Import with calls converted" in author.get(url).content
    author.post(f"{url}retry", {"text_protocol": "xml-calls"})
    run_import(pk)
    with scope(tenant=acme):
        chat = Chat.objects.get()
        assert (chat.turn_count, chat.round_points, chat.final_points) == (1, 1, 1)


def test_try_again_queues_a_failed_import_only(in_acme: Tenant) -> None:
    job = import_text(in_acme, "")
    assert job.status == Status.FAILED
    again = try_again(tenant=in_acme, job=job, by=some_author(in_acme))
    assert (again.status, again.attempts) == (Status.QUEUED, 0)


def test_the_upload_page_queues_and_records(author: Client, acme: Tenant, people: dict[str, User]) -> None:
    upload = io.BytesIO(json.dumps(exchange_chat()).encode())
    upload.name = "../../etc/passwd.json"
    answer = author.post("/t/acme/chats/import", {"file": upload, "format": ""})
    with scope(tenant=acme):
        job = ImportJob.objects.get()
        entry = Entry.objects.get(action="import.start")
    assert answer["Location"] == f"/t/acme/chats/import/{job.pk}/"
    assert job.status == Status.QUEUED
    assert "passwd" not in job.file.name
    assert entry.actor == people["author"]


def test_the_upload_page_asks_for_a_file(author: Client) -> None:
    answer = author.post("/t/acme/chats/import", {"format": ""})
    assert answer.status_code == 422
    assert b"This field is required" in answer.content


def test_progress_ends_polling_when_it_is_done(viewer: Client, acme: Tenant) -> None:
    job = import_text(acme, json.dumps(exchange_chat()))
    whole = viewer.get(f"/t/acme/chats/import/{job.pk}/")
    part = viewer.get(f"/t/acme/chats/import/{job.pk}/", headers={"HX-Request": "true"})
    assert (whole.status_code, part.status_code) == (200, 286)
    assert b"<html" in whole.content
    assert b"<html" not in part.content


def test_chats_that_begin_alike_have_titles_that_tell_them_apart(in_acme: Tenant) -> None:
    said = "Solve this on your own.\nWork step by step.\n{}\nSubmit at the end."
    chats = [
        exchange_chat({"role": "user", "content": said.format(task)}, external_id=task) for task in ("Mend a", "Mend b")
    ]
    import_text(in_acme, "\n".join(json.dumps(chat) for chat in chats))
    assert set(Chat.objects.values_list("title", flat=True)) == {"Mend a", "Mend b"}
    # It goes on by itself: the title stays, as long as the text still says it.
    chats[0]["chat"]["messages"].append({"role": "assistant", "content": "Done."})
    import_text(in_acme, json.dumps(chats[0]))
    assert Chat.objects.get(external_id="Mend a").title == "Mend a"
    chats[0]["chat"]["messages"][0]["content"] = "Something else"
    import_text(in_acme, json.dumps(chats[0]))
    assert Chat.objects.get(external_id="Mend a").title == "Something else"
