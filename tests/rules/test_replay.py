"""Replays: exactly once, the same each time, and what the report says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django_scopes import scope

from eleanor_site.jobs import Status
from eleanor_site.problems import Refused
from eleanor_site.tenants.models import Tenant
from rules.chunks import replays as chunks
from rules.models import Replay, ReplayChunk
from rules.queries.replays import findings, rule_rows
from rules.queries.rules import rule_set
from rules.services.replays import Scope, resume_replay, start_replay, stop_replay
from tests.factories import exchange_chat, import_text, make_chat, make_replay, make_rule, publish, some_author


@pytest.fixture
def furnished(in_acme: Tenant) -> Tenant:
    """Three chats with one final point each, and two rules of which the second is shadowed."""
    lines = [json.dumps(exchange_chat(external_id=f"x-{n}")) for n in range(3)]
    import_text(in_acme, "\n".join(lines))
    publish(in_acme, make_rule(in_acme, "A"), make_rule(in_acme, "B"))
    return in_acme


def test_the_report_counts_what_each_rule_did(furnished: Tenant) -> None:
    replay = make_replay(furnished)
    assert (replay.status, replay.points, replay.fires, replay.chunks_done) == ("done", 3, 3, 1)
    first, second = rule_rows(replay)[0]
    assert (first.counts["fires"], first.counts["new"], first.counts["matches"]) == (3, 3, 3)
    assert (second.counts["fires"], second.counts["shadowed"], second.counts["matches"]) == (0, 3, 3)


def test_running_again_gives_the_same_result(furnished: Tenant) -> None:
    first, second = make_replay(furnished), make_replay(furnished)
    assert first.name_digest == second.name_digest
    assert first.result_digest == second.result_digest != ""


def test_another_rule_set_has_another_name(furnished: Tenant) -> None:
    first = make_replay(furnished)
    make_rule(furnished, "C", expression="ctx.mutated")
    assert make_replay(furnished).name_digest != first.name_digest


def test_a_chunk_that_is_delivered_twice_counts_once(furnished: Tenant) -> None:
    replay = make_replay(furnished, run=False)
    chunk = ReplayChunk.objects.get(replay=replay)
    assert chunks.run_chunk(chunk.pk) is False
    assert chunks.run_chunk(chunk.pk) is False
    replay.refresh_from_db()
    assert (replay.chunks_done, replay.points, replay.fires) == (1, 3, 3)


def test_a_result_written_by_two_workers_counts_once(furnished: Tenant) -> None:
    replay = make_replay(furnished, run=False)
    chunk = ReplayChunk.objects.get(replay=replay)
    result = chunks.compute(chunk)
    assert chunks.write(chunk, result) is True
    assert chunks.write(chunk, result) is False
    replay.refresh_from_db()
    assert (replay.chunks_done, replay.fires) == (1, 3)


def test_a_chunk_whose_worker_died_is_sent_again_once(furnished: Tenant) -> None:
    replay = make_replay(furnished, run=False)
    chunk = ReplayChunk.objects.get(replay=replay)
    ReplayChunk.objects.filter(pk=chunk.pk).update(status=Status.RUNNING, heartbeat_at="2020-01-01T00:00:00Z")
    assert chunks.chunks_to_send_again() == [chunk.pk]
    assert chunks.chunks_to_send_again() == []
    chunks.run_chunk(chunk.pk)
    replay.refresh_from_db()
    assert (replay.status, replay.fires) == ("done", 3)


def test_three_failures_leave_the_replay_incomplete_and_it_can_be_resumed(
    furnished: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    replay = make_replay(furnished, run=False)
    chunk = ReplayChunk.objects.get(replay=replay)

    def fails(*args: Any) -> None:
        raise OSError("disk")

    with monkeypatch.context() as patched:
        patched.setattr(chunks, "compute", fails)
        assert [chunks.run_chunk(chunk.pk) for _ in range(3)] == [True, True, False]
    replay.refresh_from_db()
    chunk.refresh_from_db()
    assert (replay.status, chunk.status, chunk.error) == ("incomplete", "failed", "OSError")
    resume_replay(tenant=furnished, replay=replay, by=some_author(furnished))
    chunks.run_chunk(chunk.pk)
    replay.refresh_from_db()
    assert (replay.status, replay.fires) == ("done", 3)


def test_a_stopped_replay_takes_nothing_more_until_it_is_resumed(furnished: Tenant) -> None:
    replay = make_replay(furnished, run=False)
    chunk = ReplayChunk.objects.get(replay=replay)
    by = some_author(furnished)
    result = chunks.compute(chunk)
    stop_replay(tenant=furnished, replay=replay, by=by)
    assert chunks.write(chunk, result) is False
    chunks.run_chunk(chunk.pk)
    replay.refresh_from_db()
    assert (replay.status, replay.chunks_done) == ("stopped", 0)
    resume_replay(tenant=furnished, replay=replay, by=by)
    chunks.run_chunk(chunk.pk)
    replay.refresh_from_db()
    assert (replay.status, replay.fires) == ("done", 3)


def test_nothing_to_replay_is_refused(in_acme: Tenant) -> None:
    by = some_author(in_acme)
    with pytest.raises(Refused):
        start_replay(tenant=in_acme, by=by, scope=Scope(), rules=[])
    make_rule(in_acme)
    with pytest.raises(Refused):
        start_replay(tenant=in_acme, by=by, scope=Scope(), rules=rule_set(in_acme, drafts=True))
    make_chat(in_acme)
    make_rule(in_acme, "BROKEN", expression="ctx.")
    with pytest.raises(Refused, match="BROKEN"):
        start_replay(tenant=in_acme, by=by, scope=Scope(), rules=rule_set(in_acme, drafts=True))
    assert not Replay.objects.exists()


def test_statuses_of_recorded_nudges(in_acme: Tenant) -> None:
    """Reproduced, different, new and recorded only, one each."""

    def chat(name: str, text: str, nudge: str | None) -> str:
        messages: list[dict[str, Any]] = [
            {"role": "user", "content": "Do something."},
            {"role": "assistant", "content": text},
        ]
        if nudge:
            messages += [
                {"role": "user", "content": "Go on.", "nudge_code": nudge},
                {"role": "assistant", "content": ""},
            ]
        return json.dumps(exchange_chat(*messages, external_id=name))

    given = [("same", "x", "A"), ("other", "x", "Z"), ("new", "x", None), ("only", "", "Z")]
    import_text(in_acme, "\n".join(chat(*row) for row in given))
    publish(in_acme, make_rule(in_acme, "A"))
    replay = make_replay(in_acme)
    found = {(f.code, f.recorded, f.status) for _key, f in findings(replay)}
    assert found == {
        ("A", "A", "reproduced"),
        ("A", "Z", "different"),
        ("A", None, "new"),
        (None, "Z", "recorded_only"),
    }
    rows, others = rule_rows(replay)
    assert (rows[0].counts["reproduced"], rows[0].counts["different"], rows[0].counts["new"]) == (1, 1, 1)
    assert others == {"Z": 1}


def test_findings_page_by_key_without_loss(furnished: Tenant) -> None:
    replay = make_replay(furnished)
    keys = [key for key, _ in findings(replay)]
    assert len(keys) == 3
    assert [key for key, _ in findings(replay, after=keys[0])] == keys[1:]
    assert [f.code for _, f in findings(replay, code="B")] == []


def test_the_pages_of_a_replay(viewer: Client, author: Client, acme: Tenant) -> None:
    make_chat(acme)
    publish(acme, make_rule(acme, "A"))
    answer = author.post("/t/acme/replays/new", {"rules": "live"})
    with scope(tenant=acme):
        replay = Replay.objects.get()
    assert answer["Location"] == f"/t/acme/replays/{replay.pk}/"
    url = answer["Location"]
    assert viewer.get(url, headers={"HX-Request": "true"}).status_code == 200
    with scope(tenant=acme):
        chunks.run_chunk(ReplayChunk.objects.get().pk)
    page = viewer.get(url)
    assert b"?point=1-final" in page.content
    assert viewer.get(url, headers={"HX-Request": "true"}).status_code == 286


def test_the_chat_page_opens_the_point_with_why(viewer: Client, acme: Tenant) -> None:
    chat = make_chat(acme)
    publish(acme, make_rule(acme, "A", expression="announces_action(ctx.final_text) && !ctx.mutated"))
    text = viewer.get(f"/t/acme/chats/{chat.pk}/?point=1-final").content.decode()
    assert "announces_action(ctx.final_text)" in text
    assert "not evaluated" not in text
    assert "ctx.mutated" in text
