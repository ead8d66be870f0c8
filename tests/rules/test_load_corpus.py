"""`manage.py load_corpus`: what stands afterwards is what an import gives."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django_scopes import scope

from chats.models import Chat, ChatVersion, ImportJob
from chats.queries.search import found_by
from eleanor_site.audit.models import Entry
from eleanor_site.tenants.models import Tenant
from rules.models import RecordedNudge
from rules.queries.segments import Scope, corpus_view
from rules.services import loading
from tests.factories import exchange_chat, import_text
from tests.rules.random_chats import random_lines

SUMMARY = (
    "external_id", "title", "message_count", "turn_count", "round_points", "final_points", "nudge_count", "language",
    "model", "started_at", "version_count",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, settings: Any) -> Path:
    settings.MEDIA_ROOT = tmp_path / "media"
    path = tmp_path / "corpus"
    path.mkdir()
    (path / "conversations.jsonl").write_text(random_lines(1, 30) + "\n", encoding="utf-8")
    (path / "points.jsonl").write_text("{}\n")
    (path / "manifest.json").write_text("{}")
    return path


def load(path: Path, tenant: str, **options: Any) -> str:
    out = StringIO()
    call_command("load_corpus", str(path), tenant=tenant, stdout=out, **options)
    return out.getvalue()


def content_of(tenant: Tenant) -> tuple[Any, ...]:
    with scope(tenant=tenant):
        chats = list(Chat.objects.order_by("external_id").values_list(*SUMMARY))
        versions = list(ChatVersion.objects.order_by("chat__external_id", "number").values_list("content", flat=True))
        fields = ("code", "message", "turn", "stage", "point", "outcome", "language")
        nudges = sorted(RecordedNudge.objects.values_list(*fields), key=str)
        view = corpus_view()
        return chats, versions, nudges, view.points, view.chats, view.missing


def test_a_loaded_folder_is_what_an_import_gives(folder: Path, acme: Tenant, elsewhere: Tenant) -> None:
    output = load(folder, "acme", processes=1)
    assert "30 chats taken, 0 unchanged, 0 left out" in output
    import_text(elsewhere, (folder / "conversations.jsonl").read_text(encoding="utf-8"))
    assert content_of(acme) == content_of(elsewhere)


def test_a_repeated_load_adds_nothing(folder: Path, acme: Tenant) -> None:
    load(folder, "acme", processes=1)
    before = content_of(acme)
    assert "0 chats taken, 30 unchanged" in load(folder, "acme", processes=1)
    assert content_of(acme) == before


def test_a_load_is_an_import_that_can_be_replayed_alone(folder: Path, in_acme: Tenant) -> None:
    import_text(in_acme, random_lines(2, 3))
    load(folder, "acme", processes=1)
    job = ImportJob.objects.get(file_name="conversations.jsonl")
    assert (job.status, job.taken) == ("done", 30)
    assert corpus_view(Scope("import", job.pk)).chats == 30
    assert Entry.objects.filter(action="import.load", object_id=job.pk).count() == 1


def test_a_chat_that_has_grown_is_a_new_version(folder: Path, acme: Tenant, elsewhere: Tenant) -> None:
    def line(*texts: str) -> str:
        messages = [{"role": "user", "content": "Go"}, *({"role": "assistant", "content": text} for text in texts)]
        return json.dumps(exchange_chat(*messages, external_id="grows"))

    for lines in ([line("one")], [line("one", "two"), random_lines(4, 2)]):
        (folder / "conversations.jsonl").write_text("\n".join(lines))
        load(folder, "acme", processes=1)
        import_text(elsewhere, "\n".join(lines))
    assert content_of(acme) == content_of(elsewhere)
    with scope(tenant=acme):
        assert [v.number for v in ChatVersion.objects.filter(chat__external_id="grows").order_by("number")] == [1, 2]


def test_the_search_index_is_made_when_it_is_asked_for(folder: Path, in_acme: Tenant) -> None:
    load(folder, "acme", processes=1)
    assert not found_by(Chat.objects.all(), "suite", in_acme).exists()
    load(folder, "acme", processes=1, index=True)
    assert found_by(Chat.objects.all(), "suite", in_acme).exists()


def test_blocks_hold_whole_lines_and_each_line_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "BLOCK_BYTES", 50)
    for text in ("", "one\n", "x" * 200, "\n".join("y" * n for n in range(60)), "a\n" * 100):
        path = tmp_path / "lines"
        path.write_text(text)
        data = path.read_bytes()
        parts = [data[start : start + length] for start, length in loading._line_blocks(path)]
        assert b"".join(parts) == data
        assert all(part.endswith(b"\n") for part in parts[:-1])


def test_several_processes_load_what_one_does(folder: Path, acme: Tenant, tmp_path: Path) -> None:
    """In a database of its own, since processes share no database in memory."""
    code = f"""
import django; django.setup()
from django.core.management import call_command
from django_scopes import scope
from eleanor_site.tenants.models import Tenant
from chats.models import Chat
from rules.queries.segments import corpus_view
from rules.services import loading
loading.BLOCK_BYTES = 4_000
call_command("migrate", verbosity=0)
call_command("load_corpus", {str(folder)!r}, tenant="acme", processes=2)
with scope(tenant=Tenant.objects.get()):
    view = corpus_view()
    print("found", Chat.objects.count(), view.points, view.chats, view.missing)
"""
    environment = {**os.environ, "ELEANOR_VAR": str(tmp_path / "var"), "DJANGO_SETTINGS_MODULE": "tests.settings"}
    environment.pop("DATABASE_URL", None)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    load(folder, "acme", processes=1)
    with scope(tenant=acme):
        view = corpus_view()
    assert f"found 30 {view.points} 30 0" in done.stdout, done.stderr


def test_what_is_no_corpus_is_said(tmp_path: Path, acme: Tenant) -> None:
    with pytest.raises(CommandError, match="nothing at"):
        load(tmp_path / "nowhere", "acme")
    with pytest.raises(CommandError, match="no file"):
        load(tmp_path, "acme")
    (tmp_path / "odd.json").write_text('{"no": "chat"}')
    with pytest.raises(CommandError, match="Nothing was taken"):
        load(tmp_path, "acme", processes=1)
