"""Deleting a large import is a worker's job: in whole batches, going on where a killed worker stopped."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from django_scopes import scope

from chats import import_removal
from chats.import_removal import deletions_to_send_again, run_deletion
from chats.models import Chat, ChatText, ImportDeletion, ImportedChat, ImportJob
from chats.services import retention as services
from chats.services.importing import try_again
from eleanor_site.audit.models import Entry
from eleanor_site.jobs import Status
from eleanor_site.problems import Refused
from eleanor_site.tenants.models import Tenant
from rules.models import RecordedNudge, SegmentChat
from tests.factories import exchange_chat, import_text, some_author

SAID: list[dict[str, Any]] = [
    {"role": "user", "content": "Mend the parser."},
    {"role": "assistant", "content": "I will look.", "finish_reason": "stop"},
    {"role": "user", "content": "Go on.", "nudge_code": "ACME-01"},
    {"role": "assistant", "content": "Done.", "finish_reason": "stop"},
]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Any) -> None:
    settings.MEDIA_ROOT = tmp_path
    monkeypatch.setattr(services, "AT_ONCE", 1)
    monkeypatch.setattr(import_removal, "BATCH", 2)


def import_chats(tenant: Tenant, *names: str) -> ImportJob:
    return import_text(tenant, "\n".join(json.dumps(exchange_chat(*SAID, external_id=name)) for name in names))


def begin(tenant: Tenant, job: ImportJob) -> ImportDeletion:
    return services.delete_import(tenant=tenant, by=some_author(tenant), job=job)


def break_batch(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """The worker fails at the end of this batch and of those after it."""
    real, passed = import_removal.delete_part, []

    def part(*args: Any) -> bool:
        more = real(*args)
        passed.append(more)
        if len(passed) >= number:
            raise OSError("the disk is full")
        return more

    monkeypatch.setattr(import_removal, "delete_part", part)


def test_a_worker_deletes_what_is_large(in_acme: Tenant) -> None:
    job = import_chats(in_acme, *"abcde")
    deletion = begin(in_acme, job)
    assert (deletion.status, deletion.total, Chat.objects.count()) == (Status.QUEUED, 5, 5)
    run_deletion(deletion.pk)
    deletion.refresh_from_db()
    assert (deletion.status, deletion.chats, deletion.kept, deletion.job) == (Status.DONE, 5, 0, None)
    for model in (Chat, ChatText, ImportedChat, ImportJob, RecordedNudge, SegmentChat):
        assert not model.objects.exists(), model
    entries = [(e.action, json.loads(e.after)) for e in Entry.objects.filter(action__startswith="import.delete")]
    assert sorted(entries) == [
        ("import.delete", {"chats_deleted": 5, "chats_kept": 0}),
        ("import.delete_begin", {"chats": 5}),
    ]


def test_a_batch_goes_whole_and_a_killed_deletion_goes_on(in_acme: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    job = import_chats(in_acme, *"abcde")
    deletion = begin(in_acme, job)
    with monkeypatch.context() as broken:
        break_batch(broken, 2)
        run_deletion(deletion.pk)
    deletion.refresh_from_db()
    assert (deletion.status, deletion.chats, Chat.objects.count()) == (Status.QUEUED, 2, 3)
    assert RecordedNudge.objects.count() == SegmentChat.objects.count() == ImportedChat.objects.count() == 3
    with pytest.raises(Refused):
        try_again(tenant=in_acme, job=failed(job), by=some_author(in_acme))
    # As a killed worker leaves it: running and silent.
    ImportDeletion.objects.update(status=Status.RUNNING, heartbeat_at="2020-01-01T00:00:00Z")
    assert deletions_to_send_again() == [deletion.pk]
    assert deletions_to_send_again() == [], "two sweepers send once"
    run_deletion(deletion.pk)
    deletion.refresh_from_db()
    assert (deletion.status, deletion.chats, Chat.objects.count()) == (Status.DONE, 5, 0)
    assert Entry.objects.filter(action="import.delete").count() == 1


def failed(job: ImportJob) -> ImportJob:
    ImportJob.objects.filter(pk=job.pk).update(status=Status.FAILED)
    return ImportJob.objects.get(pk=job.pk)


def test_a_deletion_that_somebody_works_on_is_left_alone(in_acme: Tenant) -> None:
    deletion = begin(in_acme, import_chats(in_acme, *"abc"))
    ImportDeletion.objects.update(status=Status.RUNNING, heartbeat_at=timezone.now())
    run_deletion(deletion.pk)
    assert Chat.objects.count() == 3
    assert begin(in_acme, ImportJob.objects.get()).pk == deletion.pk, "asked for twice, it runs once"


def test_chats_that_another_import_brought_stay(in_acme: Tenant) -> None:
    first = import_chats(in_acme, *"abcd")
    second = import_chats(in_acme, "b", "d", "e")
    run_deletion(begin(in_acme, first).pk)
    deletion = ImportDeletion.objects.get()
    assert (deletion.chats, deletion.kept) == (2, 2)
    assert set(Chat.objects.values_list("external_id", flat=True)) == {"b", "d", "e"}
    run_deletion(begin(in_acme, second).pk)
    assert not Chat.objects.exists()


def test_it_waits_for_an_import_that_reads_the_same_chats(in_acme: Tenant) -> None:
    deletion = begin(in_acme, import_chats(in_acme, *"abc"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(import_removal, "busy_imports", lambda versions: True)
        for _time in range(5):
            ImportDeletion.objects.update(heartbeat_at=None)
            run_deletion(deletion.pk)
    deletion.refresh_from_db()
    assert (deletion.status, deletion.chats) == (Status.QUEUED, 0)
    run_deletion(deletion.pk)
    deletion.refresh_from_db()
    assert deletion.status == Status.DONE


def test_the_page_of_the_import_tells_how_far_it_is_and_what_became_of_it(acme: Tenant, admin: Client) -> None:
    with scope(tenant=acme):
        job = import_chats(acme, *"abcde")
    page = f"/t/acme/chats/import/{job.pk}/"
    assert "A worker deletes so many chats" in admin.get(f"{page}delete").content.decode()
    assert admin.post(f"{page}delete")["Location"] == page
    shown = admin.get(page).content.decode()
    assert "A worker deletes the chats" in shown
    assert f'data-poll="{page}"' in shown
    assert "Delete this import" not in shown
    assert "See these chats" not in shown
    assert "being deleted" in admin.get("/t/acme/chats/import").content.decode()
    polled = admin.get(page, headers={"HX-Request": "true"})
    assert polled.status_code == 200
    assert re.search(r'<progress [^>]*max="5" value="0"', polled.content.decode())

    with scope(tenant=acme):
        run_deletion(ImportDeletion.objects.get().pk)
    polled = admin.get(page, headers={"HX-Request": "true"})
    assert polled.status_code == 286
    assert "This import is deleted" in polled.content.decode()
    assert "Deleted import" in admin.get(page).content.decode()


def test_a_deletion_that_failed_is_taken_up_again_by_a_person(
    acme: Tenant, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    with scope(tenant=acme):
        job = import_chats(acme, *"abcde")
        deletion = begin(acme, job)
        with monkeypatch.context() as broken:
            break_batch(broken, 2)
            run_deletion(deletion.pk)
            break_batch(broken, 1)
            run_deletion(deletion.pk)
            run_deletion(deletion.pk)
        deletion.refresh_from_db()
        assert (deletion.status, deletion.chats) == (Status.FAILED, 2)
    page = f"/t/acme/chats/import/{job.pk}/"
    assert "Delete the rest" in admin.get(page).content.decode()
    admin.post(f"{page}delete")
    with scope(tenant=acme):
        run_deletion(deletion.pk)
        assert not Chat.objects.exists()
        deletion.refresh_from_db()
        assert (deletion.status, deletion.chats) == (Status.DONE, 5)
