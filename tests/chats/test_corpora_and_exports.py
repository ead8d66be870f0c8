"""Freezing chats, exporting them, and proving an export whole."""

from __future__ import annotations

import hashlib
import json
from io import BytesIO, StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django_scopes import scope

from chats.models import Chat, ChatVersion, Corpus
from eleanor_site.audit.models import Entry
from eleanor_site.exports import check, csv_lines, json_lines
from eleanor_site.tenants.models import Tenant
from rules.domain.manifest import corpus_digest
from tests.factories import exchange_chat, import_text, make_chat


@pytest.fixture
def stored(acme: Tenant) -> Tenant:
    import_text(acme, "\n".join(json.dumps(exchange_chat(external_id=f"x-{n}", title=f"Chat {n}")) for n in range(3)))
    return acme


def body(answer: object) -> bytes:
    return b"".join(answer.streaming_content)  # type: ignore[attr-defined]


def test_a_corpus_names_the_versions_of_now(author: Client, stored: Tenant) -> None:
    answer = author.post("/t/acme/chats/corpora/freeze", {"name": "Base", "q": ""})
    with scope(tenant=stored):
        corpus = Corpus.objects.get()
        versions = list(ChatVersion.objects.order_by("chat_id"))
        assert json.loads(corpus.members) == [v.pk for v in versions]
        # The name that a replay gives to the same chats.
        assert corpus.digest == corpus_digest([v.content_hash for v in versions])
        assert Entry.objects.get(object_type="corpus").object_label == "Base"
    assert answer["Location"].endswith(f"/corpora/{corpus.pk}/")
    make_chat(stored, {"role": "user", "content": "changed"}, external_id="x-0")
    text = author.get(answer["Location"]).content.decode()
    assert "they give the digest" in text
    assert corpus.digest in text
    assert b"Base" in author.get("/t/acme/chats/corpora/").content


def test_a_corpus_whose_chats_are_gone_says_so(author: Client, stored: Tenant) -> None:
    author.post("/t/acme/chats/corpora/freeze", {"name": "Base"})
    with scope(tenant=stored):
        Chat.objects.get(external_id="x-1").delete()
        corpus = Corpus.objects.get()
    assert b"one of its chats is gone" in author.get(f"/t/acme/chats/corpora/{corpus.pk}/").content


@pytest.mark.parametrize("typed", [{"name": ""}, {"name": "Base"}, {"name": "None", "q": "giraffe"}])
def test_a_corpus_that_can_not_be_is_refused(author: Client, stored: Tenant, typed: dict[str, str]) -> None:
    author.post("/t/acme/chats/corpora/freeze", {"name": "Base"})
    answer = author.post("/t/acme/chats/corpora/freeze", typed)
    assert answer.status_code == 422
    with scope(tenant=stored):
        assert Corpus.objects.count() == 1


def test_the_form_to_freeze_says_how_many(author: Client, stored: Tenant) -> None:
    assert b"3 chats fit" in author.get("/t/acme/chats/corpora/freeze").content
    assert b"One chat fits" in author.get("/t/acme/chats/corpora/freeze?q=%22x-2%22").content


def test_an_export_holds_the_filtered_chats_and_proves_whole(viewer: Client, stored: Tenant) -> None:
    text = body(viewer.get("/t/acme/chats/export", {"q": '"chat 1"'}))
    *rows, trailer = [json.loads(line) for line in text.splitlines()]
    assert [row["external_id"] for row in rows] == ["x-1"]
    before = text[: text.index(b'{"eleanor_export"')]
    assert trailer == {"eleanor_export": {"rows": 1, "sha256": hashlib.sha256(before).hexdigest()}}
    assert check(BytesIO(text)).flaw is None


def test_importing_an_export_changes_nothing(viewer: Client, stored: Tenant) -> None:
    text = body(viewer.get("/t/acme/chats/export")).decode()
    job = import_text(stored, text)
    assert (job.taken, job.updated, job.unchanged) == (0, 0, 3)


def test_a_corpus_is_exported_as_it_was(author: Client, stored: Tenant) -> None:
    author.post("/t/acme/chats/corpora/freeze", {"name": "Base"})
    make_chat(stored, {"role": "user", "content": "changed"}, external_id="x-0")
    with scope(tenant=stored):
        corpus = Corpus.objects.get()
    text = body(author.get(f"/t/acme/chats/corpora/{corpus.pk}/export")).decode()
    assert "changed" not in text
    assert text.count("\n") == 4


def altered(text: bytes) -> list[tuple[bytes, str]]:
    lines = text.splitlines(keepends=True)
    return [
        (b"".join([lines[0].replace(b"n", b"m"), *lines[1:]]), "digest_differs"),
        (b"".join(lines[1:]), "digest_differs"),
        (b"".join([lines[1], lines[0], *lines[2:]]), "digest_differs"),
        (b"".join(lines[:-1]), "no_trailer"),
        (text + b"more\n", "after_trailer"),
        (text[: len(text) // 2], "no_trailer"),
        (text.replace(b"rows", b"sows"), "no_trailer"),
        (b"", "no_trailer"),
    ]


@pytest.mark.parametrize("at", range(8))
def test_an_altered_export_is_found(at: int) -> None:
    rows = [{"n": 7}, {"n": 1, "text": "é\n"}]
    for text in (b"".join(json_lines(rows)), b"".join(csv_lines(["n", "text"], [(7, "é\n"), (1, "two\nlines")]))):
        assert check(BytesIO(text)).flaw is None
        assert check(BytesIO(text)).rows == 2
        changed, flaw = altered(text)[at]
        assert check(BytesIO(changed)).flaw == flaw


def test_a_cell_never_starts_a_formula() -> None:
    assert b"'=1+1" in b"".join(csv_lines(["a"], [("=1+1",)]))


def test_the_command_writes_and_verifies(stored: Tenant, tmp_path: Path) -> None:
    target, out = tmp_path / "chats.jsonl", StringIO()
    call_command("export_chats", str(target), tenant="acme", search='q="x-2"')
    call_command("export_chats", verify=target, stdout=out)
    assert "1 rows" in out.getvalue()
    target.write_bytes(target.read_bytes().replace(b"Chat 2", b"Chat 3"))
    with pytest.raises(CommandError, match="digest differs"):
        call_command("export_chats", verify=target)
    with pytest.raises(CommandError, match="no tenant"):
        call_command("export_chats", str(target), tenant="nobody")
    with pytest.raises(CommandError, match="no corpus"):
        call_command("export_chats", str(target), tenant="acme", corpus="none")
