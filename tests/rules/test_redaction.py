"""Redacting stored chats: what is left in the database and the media folder, what stays said, and the pages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from chats.models import Chat, ChatVersion, ImportJob
from chats.queries.chats import ChatFilter, chats, record_of
from chats.services import retention
from eleanor_site.audit.models import Entry
from eleanor_site.problems import Conflict, Refused
from eleanor_site.tenants.models import Tenant
from rules.chunks.segments import derive_missing
from rules.models import RecordedNudge, RuleTest, SegmentChat, Verdict
from rules.queries import replay_findings, replays
from rules.services import redacting as services
from tests.factories import exchange_chat, import_text, make_replay, some_author
from tests.rules import test_removal as removal
from tests.rules.test_removal import PROMPT, SECRET, a_chat, chat_named, everything, files, import_chats, judged

pytestmark = pytest.mark.django_db
media, no_queue, commits, rule = removal.media, removal.no_queue, removal.commits, removal.rule
redact_chats = removal.standing(services.redact_chats)


def redact(tenant: Tenant, *names: str, pattern: str = "", chosen: tuple[int, ...] = ()) -> Any:
    found = [chat_named(name) for name in names]
    seen = {chat.pk: chat.version_count for chat in found}
    return redact_chats(tenant=tenant, by=some_author(tenant), seen=seen, pattern=pattern, chosen=chosen)


def test_a_pattern_leaves_nothing_behind(in_acme: Tenant, rule: Any, media: Path) -> None:
    import_chats(in_acme, a_chat("alpha"))
    job = import_chats(in_acme, a_chat("alpha", SECRET), a_chat("beta"))
    replay = make_replay(in_acme)
    chat = chat_named("alpha")
    was = ChatVersion.objects.get(chat=chat, number=2)
    verdict = judged(in_acme, chat)
    told = RecordedNudge.objects.get(chat=chat)
    test = RuleTest.objects.create(tenant=in_acme, rule=rule, should_fire=True, chat_version=was, message=3)

    done = redact(in_acme, "alpha", pattern="(?i)ZANZI[a-z]+")

    assert (done.chats, done.files) == (1, 2)
    assert SECRET not in everything(media)
    assert files(media / "imports") == []
    chat.refresh_from_db()
    assert chat.version_count == 3
    new = ChatVersion.objects.get(chat=chat)
    assert (new.number, new.created_at) == (3, was.created_at)
    assert record_of(new).chat.messages[0].content == "Mend the parser of alpha. [redacted]"
    assert not chats(ChatFilter(text=SECRET)).exists()
    assert chats(ChatFilter(text='"parser of alpha"')).get() == chat
    # What was said of the chat's points holds on.
    verdict.refresh_from_db()
    test.refresh_from_db()
    assert verdict.chat_version_id == test.chat_version_id == new.pk
    nudge = RecordedNudge.objects.get(chat=chat)
    assert (nudge.chat_version_id, nudge.message, nudge.outcome) == (new.pk, told.message, told.outcome)
    assert replay_findings.flaws(type(replay).objects.get(pk=replay.pk)) == []
    assert replays.removed_chats(replay) == 1
    # Deleting the import later finds the redacted chat.
    assert chat.pk in {row.chat_id for row in job.chats.all()}
    derive_missing(in_acme, seconds=60)
    assert SegmentChat.objects.filter(version=new, superseded=False).count() == 1


def test_the_change_log_tells_neither_texts_nor_the_pattern(in_acme: Tenant) -> None:
    import_chats(in_acme, a_chat("alpha", SECRET))
    redact(in_acme, "alpha", pattern=SECRET)
    entry = Entry.objects.get(action="chats.redact")
    told = f"{entry.object_label} {entry.before} {entry.after} {entry.note}"
    assert SECRET not in told
    assert "Mend" not in told
    assert json.loads(entry.after) == {"how": "pattern", "chats": 1, "places": 4, "files_deleted": 1}
    assert entry.object_label == f"#{chat_named('alpha').pk}"


def test_a_message_goes_whole(in_acme: Tenant) -> None:
    import_chats(in_acme, a_chat("alpha", SECRET))
    redact(in_acme, "alpha", chosen=(0, 2))
    chat = chat_named("alpha")
    contents = [m.content for m in record_of(ChatVersion.objects.get(chat=chat)).chat.messages]
    assert contents[0] == contents[2] == "[redacted]"
    assert chat.title == "[redacted]"
    assert (chat.message_count, chat.turn_count, chat.nudge_count) == (6, 1, 1)


def test_a_nudge_that_only_its_text_tells_stays_one(in_acme: Tenant, rule: Any) -> None:
    messages = a_chat("alpha")["chat"]["messages"]
    messages[4] = {"role": "user", "content": PROMPT}
    import_text(in_acme, json.dumps(exchange_chat(*messages, external_id="alpha")))
    before = chat_named("alpha")
    assert (before.nudge_count, before.turn_count) == (1, 1)
    redact(in_acme, "alpha", chosen=(4,))
    after = chat_named("alpha")
    assert (after.nudge_count, after.turn_count) == (1, 1)
    assert RecordedNudge.objects.get().code == "ACME-01"


def test_an_import_deleted_later_takes_the_redacted_chat_along(in_acme: Tenant, media: Path) -> None:
    job = import_chats(in_acme, a_chat("alpha", SECRET))
    redact(in_acme, "alpha", pattern=SECRET)
    job = ImportJob.objects.get(pk=job.pk)
    removal.delete_import(tenant=in_acme, by=some_author(in_acme), job=job)
    assert not Chat.objects.exists()
    assert files(media) == []


def test_the_beginning_of_a_long_text_is_not_all_that_is_looked_through(in_acme: Tenant) -> None:
    long = "x " * 600_000 + SECRET
    import_text(in_acme, json.dumps(exchange_chat({"role": "user", "content": long}, external_id="alpha")))
    assert redact(in_acme, "alpha", pattern=SECRET).places == 1
    assert SECRET not in ChatVersion.objects.get().content


@pytest.mark.parametrize("pattern", ["(", "a{1000}", "x" * 201, "a*", "(?i)\\pL{20}\\pL{20}\\pL{20}"])
def test_patterns_have_limits(in_acme: Tenant, pattern: str) -> None:
    import_chats(in_acme, a_chat("alpha"))
    with pytest.raises(Refused):
        redact(in_acme, "alpha", pattern=pattern)
    assert chat_named("alpha").version_count == 1


def test_nothing_found_and_a_chat_that_went_on(in_acme: Tenant) -> None:
    import_chats(in_acme, a_chat("alpha", nudged=False))
    with pytest.raises(Refused):
        redact(in_acme, "alpha", pattern="nowhere")
    seen = {chat_named("alpha").pk: 1}
    import_chats(in_acme, a_chat("alpha"))
    with pytest.raises(Conflict):
        redact_chats(tenant=in_acme, by=some_author(in_acme), seen=seen, pattern="alpha")
    assert chat_named("alpha").version_count == 2


# --- pages, without scripts


def test_a_chat_is_redacted_after_a_look(in_acme: Tenant, admin: Client) -> None:
    import_chats(in_acme, a_chat("alpha", SECRET))
    chat = chat_named("alpha")
    url = f"/t/acme/chats/{chat.pk}/redact"
    assert "Redact this chat" in admin.get(url).content.decode()
    shown = admin.post(url, {"pattern": SECRET, "message": ["5"], "step": "preview", "version": "1"})
    assert shown.status_code == 200
    page = shown.content.decode()
    assert f"<mark>{SECRET}</mark>" in page
    assert "5 texts would be replaced" in page
    assert chat_named("alpha").version_count == 1
    done = admin.post(url, {"pattern": SECRET, "message": ["5"], "step": "redact", "version": "1"}, follow=True)
    assert "5 texts are replaced; an uploaded file that held them is deleted." in done.content.decode()
    again = admin.post(url, {"pattern": "alpha", "step": "redact", "version": "1"})
    assert again.status_code == 409
    assert 'value="alpha"' in again.content.decode()


def test_many_chats_are_redacted_after_a_look(in_acme: Tenant, admin: Client) -> None:
    import_chats(in_acme, a_chat("alpha", SECRET), a_chat("beta", SECRET), a_chat("gamma"))
    url = "/t/acme/settings/redaction"
    shown = admin.post(url, {"pattern": SECRET, "step": "preview", "q": "beta"})
    assert [chat.version_count for chat in Chat.objects.all()] == [1, 1, 1]
    seen = shown.context["seen"]
    assert json.loads(seen) == [[chat_named("beta").pk, 1]]
    assert admin.post(url, {"pattern": SECRET, "step": "redact", "seen": seen, "q": "beta"}).status_code == 302
    assert (chat_named("alpha").version_count, chat_named("beta").version_count) == (1, 2)
    for wrong in ("", "x", "[[1]]", '{"a": 1}', "[[99999, 1]]"):
        assert admin.post(url, {"pattern": SECRET, "step": "redact", "seen": wrong}).status_code in (409, 422)


def test_more_chats_than_are_looked_at_go_on(in_acme: Tenant, admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "MOST_LOOKED_AT", 2)
    import_chats(in_acme, *(a_chat(name) for name in ("alpha", "beta", "gamma")))
    url = "/t/acme/settings/redaction"
    shown = admin.post(url, {"pattern": "parser", "step": "preview"})
    last = shown.context["preview"].last
    assert (len(json.loads(shown.context["seen"])), last) == (2, chat_named("beta").pk)
    further = admin.post(url, {"pattern": "parser", "step": "next", "after": str(last)})
    assert json.loads(further.context["seen"]) == [[chat_named("gamma").pk, 1]]
    assert further.context["preview"].last is None


def test_an_import_is_deleted_after_a_look(in_acme: Tenant, admin: Client, author: Client) -> None:
    job = import_chats(in_acme, a_chat("alpha"), a_chat("beta"))
    other = import_chats(in_acme, a_chat("beta"))
    url = f"/t/acme/chats/import/{job.pk}/delete"
    assert url in admin.get(f"/t/acme/chats/import/{job.pk}/").content.decode()
    assert url not in author.get(f"/t/acme/chats/import/{job.pk}/").content.decode()
    page = admin.get(url)
    assert (len(page.context["contents"].chats), page.context["contents"].kept) == (1, 1)
    assert "with its file and one chat" in admin.post(url, follow=True).content.decode()
    assert [chat.external_id for chat in Chat.objects.all()] == ["beta"]
    ImportJob.objects.filter(pk=other.pk).update(status="running", heartbeat_at=timezone.now())
    assert admin.post(f"/t/acme/chats/import/{other.pk}/delete").status_code == 409


def test_an_import_without_its_file_is_not_tried_again(in_acme: Tenant, author: Client) -> None:
    job = import_chats(in_acme, a_chat("alpha"))
    ImportJob.objects.filter(pk=job.pk).update(status="failed", file="")
    page = author.post(f"/t/acme/chats/import/{job.pk}/retry", follow=True).content.decode()
    assert "Upload it again" in page
    assert ImportJob.objects.get(pk=job.pk).status == "failed"


def test_a_number_that_deletes_chats_is_asked_about(in_acme: Tenant, admin: Client) -> None:
    import_chats(in_acme, a_chat("alpha"))
    removal.age(in_acme, "alpha", 40)
    url = "/t/acme/settings/retention"
    asked = admin.post(url, {"days": "30"})
    assert "One stored chat is older than that" in asked.content.decode()
    in_acme.refresh_from_db()
    assert in_acme.keep_chats_days is None
    # Another number than the one that was asked about is asked about again.
    assert admin.post(url, {"days": "20", "confirmed": "30"}).status_code == 200
    assert admin.post(url, {"days": "30", "confirmed": "30"}).status_code == 302
    in_acme.refresh_from_db()
    assert in_acme.keep_chats_days == 30
    assert "One is older and goes within the hour" in admin.get(url).content.decode()
    assert "kept until" in admin.get(f"/t/acme/chats/{chat_named('alpha').pk}/").content.decode()
    assert admin.post(url, {"days": ""}).status_code == 302
    in_acme.refresh_from_db()
    assert in_acme.keep_chats_days is None
    assert admin.post(url, {"days": "0"}).status_code == 422
    assert Entry.objects.filter(action="retention.change").count() == 2


def test_lists_mask_and_the_chat_shows(in_acme: Tenant, rule: Any, viewer: Client, admin: Client) -> None:
    mail, key = "jane.doe@example.com", "ghp_" + "AbCdEfGhIjKlMnOpQrStUvWxYz0123456789"
    said = {"role": "user", "content": f"Ask {mail} with {key}"}
    answer = {"role": "assistant", "content": f"I will ask {mail} with {key}.", "finish_reason": "stop"}
    nudge = {"role": "user", "content": PROMPT, "nudge_code": "ACME-01"}
    import_text(in_acme, json.dumps(exchange_chat(said, answer, nudge, answer, external_id=f"id-{mail}")))
    chat = Chat.objects.get()
    corpus = admin.post("/t/acme/chats/corpora/freeze", {"name": "c"}, follow=True)
    replay = make_replay(in_acme)
    judged(in_acme, chat)
    lists = ["chats/", "nudges/", "nudges/?set=replay", f"replays/{replay.pk}/", "rules/ACME-01/effect",
             corpus.redirect_chain[-1][0].removeprefix("/t/acme/")]  # fmt: skip
    for path in lists:
        answer_page = viewer.get(f"/t/acme/{path}")
        assert answer_page.status_code == 200, path
        text = answer_page.content.decode()
        assert mail not in text, path
        assert key not in text, path
        assert "•••" in text, path
    page = viewer.get(f"/t/acme/chats/{chat.pk}/").content.decode()
    assert mail in page
    assert key in page


def test_a_deleted_chat_is_told_of_in_lists(in_acme: Tenant, rule: Any, viewer: Client) -> None:
    import_chats(in_acme, a_chat("alpha"), a_chat("beta"))
    replay = make_replay(in_acme)
    retention.keep_chats_for(tenant=in_acme, by=some_author(in_acme), days=30)
    removal.age(in_acme, "alpha", 31)
    assert removal.delete_old_chats() == 1
    for path in (f"replays/{replay.pk}/", "nudges/", f"nudges/?set=replay&replay={replay.pk}"):
        assert "deleted chat" in viewer.get(f"/t/acme/{path}").content.decode(), path
    assert Verdict.objects.count() == 0
