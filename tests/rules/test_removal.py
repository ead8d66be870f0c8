"""What the database and the media folder hold after deletions, retention and redaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.db import connection, models
from django.test import Client
from django.utils import timezone
from django_scopes import scope

from chats import import_removal, removing, retention
from chats.domain.exchange import from_json
from chats.import_removal import contents_of
from chats.models import Chat, ChatText, ChatVersion, Corpus, ImportedChat, ImportJob
from chats.queries.chats import ChatFilter, chats
from chats.queries.corpora import check
from chats.services import retention as services
from chats.services.corpora import freeze
from chats.services.receiving import receive_chats
from chats.services.retention import keep_chats_for
from eleanor_site.audit.models import Entry
from eleanor_site.jobs import Status
from eleanor_site.problems import Refused
from eleanor_site.tenants.models import Tenant
from rules import text_files
from rules.chunks.pruning import delete_orphaned_texts
from rules.chunks.replays import run_here
from rules.chunks.segments import derive_missing
from rules.models import (
    RecordedNudge,
    RemovedFinding,
    Replay,
    ReplayChunk,
    ReviewItem,
    ReviewQueue,
    RuleTest,
    Segment,
    SegmentAtom,
    SegmentChat,
    Verdict,
)
from rules.queries import replay_findings, replays
from rules.queries.nudge_statistics import history_counts, history_span
from rules.queries.nudges import NudgeFilter, day_cells, total
from rules.queries.replay_history import cells
from rules.queries.reviews import quality
from rules.queries.segments import corpus_view
from tests.factories import exchange_chat, import_text, make_chat, make_replay, make_rule, some_author

pytestmark = pytest.mark.django_db

SECRET = "zanzibarquux"
PROMPT = "Go on, says ACME-01."


@pytest.fixture(autouse=True)
def media(settings: Any, tmp_path: Path) -> Path:
    settings.MEDIA_ROOT = tmp_path
    return tmp_path


@pytest.fixture(autouse=True)
def no_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns are made when a test says so."""
    from rules.tasks import derive_segments

    monkeypatch.setattr(derive_segments, "apply_async", lambda *args, **kwargs: None)


_commits: Any = None


@pytest.fixture(autouse=True)
def commits(django_capture_on_commit_callbacks: Any) -> Iterator[None]:
    global _commits
    _commits = django_capture_on_commit_callbacks
    yield
    _commits = None


def standing(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with what is to happen once its transaction stands."""

    @wraps(function)
    def done(*args: Any, **kwargs: Any) -> Any:
        with _commits(execute=True):
            return function(*args, **kwargs)

    return done


delete_import = standing(services.delete_import)
delete_chat = standing(services.delete_chat)
delete_old_chats = standing(retention.delete_old_chats)


def a_chat(name: str, said: str = "", *, nudged: bool = True) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": f"Mend the parser of {name}. {said}".strip()},
        {
            "role": "assistant",
            "content": f"I will look at {name}.",
            "tool_calls": [{"id": "c", "name": f"read_{name}", "arguments": {"path": f"{name}.py {said}"}}],
            "created_at": "2026-03-01T10:00:00Z",
        },
        {"role": "tool", "tool_call_id": "c", "content": f"the file of {name} {said}"},
        {"role": "assistant", "content": f"I looked at {name}. {said}", "finish_reason": "stop"},
    ]
    if nudged:
        messages += [
            {"role": "user", "content": PROMPT, "nudge_code": "ACME-01", "created_at": "2026-03-02T10:00:00Z"},
            {"role": "assistant", "content": f"Now {name} is done.", "finish_reason": "stop"},
        ]
    return exchange_chat(*messages, external_id=name)


def lines(*given: dict[str, Any]) -> str:
    return "\n".join(json.dumps(chat) for chat in given)


def import_chats(tenant: Tenant, *given: dict[str, Any]) -> ImportJob:
    return import_text(tenant, lines(*given))


def everything(media: Path) -> str:
    """All that the tables and the media folder hold, as one text."""
    found = []
    for model in apps.get_models():
        if model._meta.app_label in ("chats", "rules", "audit"):
            for row in models.QuerySet(model).values_list():
                found += [
                    bytes(value).decode("latin-1") if isinstance(value, bytes | memoryview) else str(value)
                    for value in row
                ]
    found += [path.read_bytes().decode("latin-1") for path in files(media)]
    return "\n".join(found)


def files(media: Path) -> list[Path]:
    return sorted(path for path in media.rglob("*") if path.is_file())


def judged(tenant: Tenant, chat: Chat, value: str = "right", note: str = "", message: int = 3) -> Verdict:
    version = ChatVersion.objects.get(chat=chat, number=chat.version_count)
    return Verdict.objects.create(
        tenant=tenant,
        chat=chat,
        chat_version=version,
        message=message,
        stage="final",
        code="ACME-01",
        version=1,
        value=value,
        note=note,
        by=some_author(tenant),
    )


def chat_named(name: str) -> Chat:
    return Chat.objects.get(external_id=name)


@pytest.fixture
def rule(in_acme: Tenant) -> Any:
    return make_rule(in_acme, "ACME-01", prompt_en=PROMPT)


# --- an import


def test_an_import_goes_with_everything(in_acme: Tenant, rule: Any, media: Path) -> None:
    job = import_chats(in_acme, a_chat("alpha", SECRET), a_chat("beta"))
    make_replay(in_acme)
    chat = chat_named("alpha")
    version = ChatVersion.objects.get(chat=chat)
    judged(in_acme, chat, note=f"about {SECRET}")
    RuleTest.objects.create(tenant=in_acme, rule=rule, should_fire=True, chat_version=version, message=3)
    queue = ReviewQueue.objects.create(tenant=in_acme, name="q", kind="search", item_count=1)
    ReviewItem.objects.create(
        tenant=in_acme, queue=queue, position=1, chat=chat, chat_version=version, message=3, stage="final"
    )
    assert SECRET in everything(media)
    assert Segment.objects.exists()

    delete_import(tenant=in_acme, by=some_author(in_acme), job=job)

    assert SECRET not in everything(media)
    assert files(media) == []
    for model in (
        Chat,
        ChatVersion,
        ChatText,
        ImportedChat,
        ImportJob,
        RecordedNudge,
        Verdict,
        RuleTest,
        Segment,
        SegmentAtom,
        SegmentChat,
        ReviewItem,
    ):
        assert list(model.objects.all()) == [], model
    assert total(day_cells(NudgeFilter())) == 0
    queue.refresh_from_db()
    assert queue.item_count == 0
    entry = Entry.objects.order_by("-number").first()
    assert entry is not None
    assert (entry.action, json.loads(entry.after)) == ("import.delete", {"chats_deleted": 2, "chats_kept": 0})


def test_a_chat_that_another_import_brought_stays_until_that_one_goes(in_acme: Tenant, media: Path) -> None:
    first = import_chats(in_acme, a_chat("alpha"), a_chat("beta"))
    second = import_chats(in_acme, a_chat("alpha"), a_chat("gamma"))
    delete_import(tenant=in_acme, by=some_author(in_acme), job=first)
    assert set(Chat.objects.values_list("external_id", flat=True)) == {"alpha", "gamma"}
    assert [path.parent.parent.parent.name for path in files(media / "imports")] == ["imports"]
    delete_import(tenant=in_acme, by=some_author(in_acme), job=second)
    assert not Chat.objects.exists()
    assert files(media) == []


def test_an_import_that_only_continued_a_chat_takes_its_version_back(in_acme: Tenant, rule: Any, media: Path) -> None:
    import_chats(in_acme, a_chat("alpha", nudged=False))
    later = import_chats(in_acme, a_chat("alpha", SECRET))
    chat = chat_named("alpha")
    assert (chat.version_count, chat.nudge_count, chat.message_count) == (2, 1, 6)
    delete_import(tenant=in_acme, by=some_author(in_acme), job=later)
    chat.refresh_from_db()
    assert (chat.version_count, chat.nudge_count, chat.message_count) == (1, 0, 4)
    assert not RecordedNudge.objects.exists()
    assert SECRET not in everything(media)
    assert not chats(ChatFilter(text=SECRET)).exists()
    assert chats(ChatFilter(text="parser")).get() == chat


def test_what_a_service_sent_is_no_part_of_an_import(in_acme: Tenant) -> None:
    record = from_json(json.dumps(a_chat("alpha")))
    receive_chats(tenant=in_acme, by=some_author(in_acme), records=[record])
    job = import_chats(in_acme, a_chat("alpha"))
    assert contents_of(job).kept == 1
    delete_import(tenant=in_acme, by=some_author(in_acme), job=job)
    assert chat_named("alpha").version_count == 1


def test_an_import_at_work_is_not_deleted(in_acme: Tenant) -> None:
    job = import_chats(in_acme, a_chat("alpha"))
    ImportJob.objects.filter(pk=job.pk).update(status=Status.RUNNING, heartbeat_at=timezone.now())
    with pytest.raises(Refused):
        delete_import(tenant=in_acme, by=some_author(in_acme), job=job)
    with pytest.raises(Refused):
        delete_chat(tenant=in_acme, by=some_author(in_acme), chat=chat_named("alpha"))
    assert Chat.objects.count() == 1


def test_nothing_goes_when_something_fails(
    in_acme: Tenant, rule: Any, media: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = import_chats(in_acme, a_chat("alpha", SECRET))
    other = import_chats(in_acme, a_chat("beta"))
    before = files(media)
    monkeypatch.setattr(import_removal, "clean_search_index", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        delete_import(tenant=in_acme, by=some_author(in_acme), job=job)
    assert Chat.objects.count() == 2
    assert ImportJob.objects.filter(pk__in=[job.pk, other.pk]).exclude(file="").count() == 2
    assert set(before) <= set(files(media))


# --- segments and replays


def test_a_segment_goes_on_without_the_chat(in_acme: Tenant, rule: Any, media: Path) -> None:
    import_chats(in_acme, a_chat("alpha"), a_chat("beta", SECRET), a_chat("gamma"))
    [old] = Segment.objects.all()
    delete_chat(tenant=in_acme, by=some_author(in_acme), chat=chat_named("beta"))

    [pruned] = Segment.objects.all()
    assert pruned.pk != old.pk
    assert SECRET not in everything(media)
    # The texts and the note beside them, of this segment and no other.
    assert {path.stem for path in files(media / "segments")} == {pruned.text_hash}
    assert text_files.is_whole(pruned)
    assert corpus_view().missing == 0

    # The same as if the chat had never been there.
    atoms = {key: bytes(bits) for key, bits in SegmentAtom.objects.values_list("key", "bits")}
    rows = list(
        SegmentChat.objects.order_by("number").values_list("number", "version", "first_point", "point_count", "gaps")
    )
    SegmentAtom.objects.all().delete()
    SegmentChat.objects.all().delete()
    Segment.objects.all().delete()
    derive_missing(in_acme, seconds=60)
    [fresh] = Segment.objects.all()
    for name in ("scalars", "people", "contents", "strays", "tools", "text_hash", "text_size", "digest", "point_count"):
        assert getattr(pruned, name) == getattr(fresh, name), name
    assert atoms == {key: bytes(bits) for key, bits in SegmentAtom.objects.values_list("key", "bits")}
    assert rows == list(
        SegmentChat.objects.order_by("number").values_list("number", "version", "first_point", "point_count", "gaps")
    )


def test_a_replay_keeps_its_counts_and_the_findings_of_the_chats_that_stay(in_acme: Tenant, rule: Any) -> None:
    import_chats(in_acme, *(a_chat(name) for name in ("alpha", "beta", "gamma")))
    replay = make_replay(in_acme)
    counts, chart = replays.counts(replay), cells(replay)
    before = {(f.version, f.message, f.status) for _key, f in replays.findings(replay)}
    version = ChatVersion.objects.get(chat=chat_named("beta")).pk
    gone = {finding for finding in before if finding[0] == version}

    delete_chat(tenant=in_acme, by=some_author(in_acme), chat=chat_named("beta"))

    replay = Replay.objects.get(pk=replay.pk)
    assert replays.counts(replay) == counts
    assert {(f.version, f.message, f.status) for _key, f in replays.findings(replay)} == before - gone
    assert replays.removed_findings(replay) == len(gone) > 0
    assert replays.removed_findings(replay, code="OTHER") == 0
    assert sum(
        replays.removed_findings(replay, status=s) for s in ("reproduced", "different", "new", "recorded_only")
    ) == len(gone)
    assert replays.removed_chats(replay) == 1
    from rules.queries.replay_history import _cells

    _cells.cache_clear()
    assert cells(replay) == chart
    assert replay_findings.flaws(replay) == []


def test_a_replay_of_which_nothing_is_left(in_acme: Tenant, rule: Any, admin: Client) -> None:
    job = import_chats(in_acme, a_chat("alpha"), a_chat("beta"))
    replay = make_replay(in_acme)
    fires = replay.fires
    delete_import(tenant=in_acme, by=some_author(in_acme), job=job)
    replay = Replay.objects.get(pk=replay.pk)
    assert (replay.fires, list(replays.findings(replay))) == (fires, [])
    assert replay_findings.flaws(replay) == []
    assert ReplayChunk.objects.get(replay=replay).segment is None
    page = admin.get(f"/t/acme/replays/{replay.pk}/")
    assert page.status_code == 200
    assert "deleted chat" in page.content.decode().lower()


def test_chats_that_go_one_after_the_other(in_acme: Tenant, rule: Any) -> None:
    import_chats(in_acme, *(a_chat(name) for name in ("alpha", "beta", "gamma")))
    replay = make_replay(in_acme)
    everything_told = len(list(replays.findings(replay)))
    for name in ("gamma", "alpha"):
        delete_chat(tenant=in_acme, by=some_author(in_acme), chat=chat_named(name))
        left = len(list(replays.findings(replay)))
        assert left + replays.removed_findings(replay) == everything_told
        assert replay_findings.flaws(Replay.objects.get(pk=replay.pk)) == []


def test_a_replay_that_has_not_run_yet_goes_without_the_chat(in_acme: Tenant, rule: Any) -> None:
    import_chats(in_acme, a_chat("alpha"), a_chat("beta"))
    replay = make_replay(in_acme, run=False)
    delete_chat(tenant=in_acme, by=some_author(in_acme), chat=chat_named("beta"))
    replay = run_here(replay)
    assert replay.status == Replay.Status.DONE
    version = ChatVersion.objects.get(chat=chat_named("alpha")).pk
    assert {f.version for _key, f in replays.findings(replay)} == {version}


def test_a_replay_that_waits_for_columns_goes_without_its_chats(in_acme: Tenant, rule: Any) -> None:
    import_chats(in_acme, a_chat("alpha"), a_chat("beta"))
    Segment.objects.all().delete()
    replay = make_replay(in_acme, run=False)
    assert json.loads(ReplayChunk.objects.get(replay=replay).chats)
    for name in ("alpha", "beta"):
        delete_chat(tenant=in_acme, by=some_author(in_acme), chat=chat_named(name))
    replay = run_here(replay)
    assert (replay.status, replay.fires) == (Replay.Status.DONE, 0)


def test_texts_that_are_lost_are_made_anew_before_a_chat_goes(in_acme: Tenant, rule: Any, media: Path) -> None:
    import_chats(in_acme, a_chat("alpha"), a_chat("beta"))
    make_replay(in_acme)
    for path in files(media / "segments"):
        path.unlink()
    delete_chat(tenant=in_acme, by=some_author(in_acme), chat=chat_named("beta"))
    [segment] = Segment.objects.all()
    assert text_files.is_whole(segment)


def test_files_that_nothing_names_are_deleted_when_they_are_old(in_acme: Tenant, media: Path) -> None:
    import os

    import_chats(in_acme, a_chat("alpha"))
    kept = files(media)
    left = [media / "segments" / str(in_acme.pk) / "00.arrow", media / "imports" / "2026" / "01" / "upload"]
    for path in left:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("left")
    assert delete_orphaned_texts() + removing.delete_orphaned_uploads() == 0
    for path in (*left, *kept):
        os.utime(path, (0, 0))
    assert delete_orphaned_texts() + removing.delete_orphaned_uploads() == 2
    assert files(media) == kept


# --- one chat


def test_a_chat_goes_and_so_does_the_file_that_holds_it(in_acme: Tenant, media: Path) -> None:
    job = import_chats(in_acme, a_chat("alpha", SECRET), a_chat("beta"))
    delete_chat(tenant=in_acme, by=some_author(in_acme), chat=chat_named("alpha"))
    job.refresh_from_db()
    assert not job.file
    assert SECRET not in everything(media)
    assert files(media / "imports") == []
    assert Chat.objects.get().external_id == "beta"


def test_a_corpus_says_that_it_is_no_longer_whole(in_acme: Tenant, viewer: Client) -> None:
    import_chats(in_acme, a_chat("alpha"), a_chat("beta"))
    corpus = freeze(tenant=in_acme, by=some_author(in_acme), name="both", chats=Chat.objects.all())
    delete_chat(tenant=in_acme, by=some_author(in_acme), chat=chat_named("alpha"))
    corpus = Corpus.objects.get(pk=corpus.pk)
    found = check(corpus)
    assert (corpus.missing, found.missing, found.same_digest) == (1, 1, False)
    assert "no longer whole" in viewer.get("/t/acme/chats/corpora/").content.decode()
    assert viewer.get(f"/t/acme/chats/corpora/{corpus.pk}/").status_code == 200


@pytest.mark.skipif("connection.vendor != 'sqlite'")
def test_sqlite_overwrites_what_is_deleted(in_acme: Tenant) -> None:
    job = import_chats(in_acme, a_chat("alpha", SECRET))
    delete_import(tenant=in_acme, by=some_author(in_acme), job=job)
    with connection.cursor() as cursor:
        cursor.execute("SELECT block FROM chats_search_data")
        blocks = b"".join(bytes(block) for (block,) in cursor.fetchall())
    assert SECRET.encode() not in blocks


# --- retention


def age(tenant: Tenant, name: str, days: int) -> None:
    ChatVersion.objects.filter(chat__external_id=name).update(created_at=timezone.now() - timedelta(days=days))


def test_old_chats_go_and_counts_stay(in_acme: Tenant, rule: Any, media: Path) -> None:
    import_chats(in_acme, a_chat("alpha", SECRET), a_chat("beta"))
    replay = make_replay(in_acme)
    for name, values in (("alpha", ("right", "wrong")), ("beta", ("right",))):
        for message, value in zip((3, 5), values, strict=False):
            judged(in_acme, chat_named(name), value, note=SECRET, message=message)
    keep_chats_for(tenant=in_acme, by=some_author(in_acme), days=30)
    age(in_acme, "alpha", 31)
    age(in_acme, "beta", 29)
    span = history_span(NudgeFilter())
    chart, counts, precision = history_counts(NudgeFilter(), span), replays.counts(replay), quality()
    assert sum(chart.values()) == 2

    assert delete_old_chats() == 1
    assert delete_old_chats() == 0

    assert Chat.objects.get().external_id == "beta"
    assert history_counts(NudgeFilter(), span) == chart
    assert replays.counts(Replay.objects.get(pk=replay.pk)) == counts
    assert quality() == precision
    assert RemovedFinding.objects.exists()
    left = everything(media)
    Verdict.objects.filter(chat__external_id="beta").delete()
    assert left.count(SECRET) == 1  # the note on the chat that stays
    assert RecordedNudge.objects.filter(chat=None, message=None, external_key="").count() == 1
    entry = Entry.objects.get(action="chats.expire")
    assert (entry.actor_label, json.loads(entry.after)["chats"]) == ("system", 1)


def test_a_chat_that_goes_on_is_kept(in_acme: Tenant) -> None:
    import_chats(in_acme, a_chat("alpha", nudged=False))
    age(in_acme, "alpha", 100)
    import_chats(in_acme, a_chat("alpha"))
    keep_chats_for(tenant=in_acme, by=some_author(in_acme), days=30)
    assert delete_old_chats() == 0


def test_for_ever_means_for_ever(in_acme: Tenant) -> None:
    import_chats(in_acme, a_chat("alpha"))
    age(in_acme, "alpha", 10_000)
    assert delete_old_chats() == 0


def test_an_upload_that_was_only_checked_goes_with_time(in_acme: Tenant, media: Path) -> None:
    job = import_chats(in_acme, a_chat("alpha"))
    ImportJob.objects.filter(pk=job.pk).update(created_at=timezone.now() - timedelta(days=40))
    keep_chats_for(tenant=in_acme, by=some_author(in_acme), days=30)
    assert delete_old_chats() == 0
    assert files(media / "imports") == []


def test_other_tenants_keep_theirs(in_acme: Tenant, elsewhere: Tenant) -> None:
    with scope(tenant=elsewhere):
        make_chat(elsewhere, external_id="theirs")
        age(elsewhere, "theirs", 100)
    import_chats(in_acme, a_chat("alpha"))
    age(in_acme, "alpha", 100)
    keep_chats_for(tenant=in_acme, by=some_author(in_acme), days=30)
    assert delete_old_chats() == 1
    with scope(tenant=elsewhere):
        assert Chat.objects.count() == 1
