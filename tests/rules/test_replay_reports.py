"""Replays compared, exported, taken elsewhere and doubted."""

from __future__ import annotations

import csv
import io
import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client
from django_scopes import scope

from chats.models import ChatVersion, Corpus, ImportJob, SavedSearch
from eleanor_site.exports import check
from eleanor_site.tenants.models import Tenant
from rules.chunks.replays import run_here
from rules.domain.points import Defaults
from rules.models import Replay, ReplayChunk, Segment
from rules.queries.replay_findings import flaws
from rules.queries.replays import FindingFilter, changed_points, comparison, counts, findings, input_differences
from rules.queries.rules import rule_set
from rules.queries.segments import Scope
from rules.services.replays import Compared, start_replay
from rules.services.tools import add_entry
from tests.factories import exchange_chat, import_text, make_chat, make_rule, publish, some_author
from tests.rules.random_chats import random_lines


@pytest.fixture(autouse=True)
def media(tmp_path: Path, settings: Any) -> None:
    settings.MEDIA_ROOT = tmp_path / "media"


@pytest.fixture
def furnished(in_acme: Tenant) -> Tenant:
    import_text(in_acme, random_lines(20, 30))
    publish(
        in_acme,
        make_rule(in_acme, "A", expression="ctx.tool_calls_total == 0"),
        make_rule(in_acme, "R", expression="ctx.read_only_rounds >= 1", stage="round"),
    )
    return in_acme


def run(tenant: Tenant, *, drafts: bool = False, **given: Any) -> Replay:
    rules = given.pop("rules", None) or rule_set(tenant, drafts=drafts)
    return run_here(start_replay(tenant=tenant, by=some_author(tenant), rules=rules, send=False, **given))


# --- scopes and defaults


def test_scopes_choose_their_chats(furnished: Tenant) -> None:
    job = import_text(furnished, random_lines(21, 4))
    member = ChatVersion.objects.order_by("pk").first()
    assert member is not None
    corpus = Corpus.objects.create(tenant=furnished, name="one", digest="x", members=json.dumps([member.pk]))
    search = SavedSearch.objects.create(tenant=furnished, name="of the import", query=f"import={job.pk}")
    chats = [
        run(furnished, scope=wanted).chats_total
        for wanted in (Scope(), Scope("import", job.pk), Scope("search", search.pk), Scope("corpus", corpus.pk))
    ]
    assert chats == [34, 4, 4, 1]


def test_a_frozen_corpus_keeps_the_versions_that_it_names(in_acme: Tenant) -> None:
    publish(in_acme, make_rule(in_acme, "A", expression='ctx.final_text == "old"'))
    messages = [{"role": "user", "content": "Go"}, {"role": "assistant", "content": "old"}]
    make_chat(in_acme, *messages)
    version = ChatVersion.objects.get()
    corpus = Corpus.objects.create(tenant=in_acme, name="old", digest="x", members=json.dumps([version.pk]))
    before = run(in_acme, scope=Scope("corpus", corpus.pk))
    make_chat(in_acme, messages[0], {"role": "assistant", "content": "new"})
    after = run(in_acme, scope=Scope("corpus", corpus.pk))
    assert (before.fires, after.fires) == (1, 1)
    assert (before.name_digest, before.result_digest) == (after.name_digest, after.result_digest)
    assert run(in_acme).fires == 0


def test_defaults_of_the_replay_stand_before_the_tenants(in_acme: Tenant) -> None:
    make_chat(in_acme, {"role": "user", "content": "Go"}, {"role": "assistant", "content": "x"})
    publish(in_acme, make_rule(in_acme, "B", expression="ctx.budget_low"))
    assert run(in_acme).fires == 0
    assert run(in_acme, defaults=Defaults(step_budget=2)).fires == 1


def test_chats_without_columns_get_them_in_the_replay(furnished: Tenant) -> None:
    before = run(furnished)
    add_entry(tenant=furnished, values={"pattern": "get_rows", "kind": "read"}, by=some_author(furnished))
    chunkwise = run(furnished)
    assert (chunkwise.chunks_total, chunkwise.points) == (1, before.points)
    assert chunkwise.result_digest == before.result_digest
    assert chunkwise.name_digest != before.name_digest
    again = run(furnished)
    assert (again.name_digest, again.result_digest) == (chunkwise.name_digest, chunkwise.result_digest)
    assert Segment.objects.count() == 2


def test_the_result_has_the_same_digest_however_chats_lie_in_segments(acme: Tenant, elsewhere: Tenant) -> None:
    lines = random_lines(22, 12).splitlines()
    digests = []
    for tenant, portions in ((acme, [lines]), (elsewhere, [lines[6:], lines[:6]])):
        for portion in portions:
            import_text(tenant, "\n".join(portion))
        publish(tenant, make_rule(tenant, "A", expression="ctx.tool_calls_total == 0"))
        with scope(tenant=tenant):
            digests.append(run(tenant).result_digest)
    assert digests[0] == digests[1] != ""


# --- comparing


def test_newly_and_gone_are_counted_and_listed(furnished: Tenant) -> None:
    live = rule_set(furnished, drafts=False)
    make_rule(furnished, "N", expression="ctx.mutated")
    changed = [
        live[0].model_copy(update={"expression": "ctx.tool_calls_total > 0"}),
        *rule_set(furnished, drafts=True)[2:],
    ]
    replay = run(furnished, rules=changed, compared=Compared("live", live))
    of_rule = counts(replay)["rules"]["A"]
    before, after = run(furnished), run(furnished, rules=changed)
    fired = [{(f.version, f.message, f.stage) for _k, f in findings(r) if f.code == "A"} for r in (before, after)]
    assert (of_rule["newly"], of_rule["gone"]) == (len(fired[1] - fired[0]), len(fired[0] - fired[1]))
    assert counts(replay)["gone"] == {"R": counts(before)["rules"]["R"]["fires"]}
    expected = {"newly": fired[1] - fired[0], "gone": fired[0] - fired[1], "same": fired[0] & fired[1]}
    for delta, wanted in expected.items():
        listed = {(f.version, f.message, f.stage) for _k, f in findings(replay, FindingFilter("A", delta=delta))}
        assert listed == wanted
    found = comparison(before, after)
    assert found.same_corpus
    assert {row.code: (row.newly, row.gone) for row in found.rules}["A"] == (of_rule["newly"], of_rule["gone"])
    assert [d.what for d in found.differences] == ["rules-only", "rules-changed"]
    keys: list[str] = []
    key: str | None = ""
    while key is not None:
        rows, key = changed_points(before, after, after=key)
        keys += [row.key for row in rows]
    differing = {p for p, c in decided(before).items() if decided(after).get(p) != c} | {
        p for p, c in decided(after).items() if decided(before).get(p) != c
    }
    assert len(keys) == len(set(keys)) == len(differing)


def decided(replay: Replay) -> dict[tuple[int, int, str], str]:
    return {(f.version, f.message, f.stage): f.code for _k, f in findings(replay) if f.code}


def test_different_corpora_are_not_lined_up_unasked(furnished: Tenant) -> None:
    before = run(furnished)
    import_text(furnished, random_lines(23, 5))
    after = run(furnished)
    found = comparison(before, after)
    assert not found.same_corpus
    assert not found.lined_up
    assert {row.newly for row in found.rules} == {None}
    anyway = comparison(before, after, anyway=True)
    assert anyway.shared_chats == 30
    assert {(row.newly, row.gone) for row in anyway.rules} == {(0, 0)}


def test_each_input_that_differs_is_named(furnished: Tenant) -> None:
    first = run(furnished)
    second = run(furnished, rules=list(reversed(rule_set(furnished, drafts=False))), defaults=Defaults(step_budget=3))
    add_entry(tenant=furnished, values={"pattern": "read_file", "kind": "other"}, by=some_author(furnished))
    make_rule(furnished, "P", prompt_en="A prompt that is new.")
    third = run(furnished)
    assert [d.what for d in input_differences(first, second)] == ["order", "defaults"]
    assert [d.what for d in input_differences(first, third)] == ["catalogue", "prompts"]
    assert input_differences(first, first) == []


def test_the_page_that_compares(viewer: Client, author: Client, acme: Tenant) -> None:
    import_text(acme, random_lines(24, 10))
    publish(acme, make_rule(acme, "A"))
    with scope(tenant=acme):
        first = run(acme)
        publish(acme, make_rule(acme, "A2"))
        second = run(acme)
        make_chat(acme, external_id="one more")
        other = run(acme)
    text = viewer.get(f"/t/acme/replays/compare?a={first.pk}&b={second.pk}").content.decode()
    assert "Rules that only one of them has" in text
    text = viewer.get(f"/t/acme/replays/compare?a={first.pk}&b={other.pk}").content.decode()
    assert "went over different chats" in text
    assert "Line up the chats that both have" in text
    assert viewer.get("/t/acme/replays/compare").status_code == 200
    for wrong in ("a=x&b=1", f"a={first.pk}&b=999999", f"a={'9' * 40}"):
        assert viewer.get(f"/t/acme/replays/compare?{wrong}").status_code == 404
    assert author.post(f"/t/acme/replays/{first.pk}/baseline").status_code == 302
    author.post(f"/t/acme/replays/{second.pk}/baseline")
    with scope(tenant=acme):
        assert list(Replay.objects.filter(baseline=True)) == [second]
    assert b"baseline" in viewer.get("/t/acme/replays/").content


# --- exports and manifests


def stream(answer: Any) -> bytes:
    return b"".join(answer.streaming_content)


def test_an_export_holds_every_finding_and_proves_to_be_whole(viewer: Client, acme: Tenant) -> None:
    import_text(acme, random_lines(25, 20))
    publish(acme, make_rule(acme, "A", expression="ctx.tool_calls_total == 0"))
    with scope(tenant=acme):
        replay = run(acme)
        wanted = [f for _key, f in findings(replay)]
    data = stream(viewer.get(f"/t/acme/replays/{replay.pk}/export?format=jsonl"))
    assert check(io.BytesIO(data)).flaw is None
    rows = [json.loads(line) for line in data.splitlines()[:-1]]
    assert [(r["message"], r["stage"], r["turn"], r["status"]) for r in rows] == [
        (f.message, f.stage, f.turn + 1, f.status or "") for f in wanted
    ]
    assert check(io.BytesIO(data.replace(b'"new"', b'"old"', 1))).flaw == "digest_differs"
    sheet = stream(viewer.get(f"/t/acme/replays/{replay.pk}/export?format=csv&status=new"))
    assert check(io.BytesIO(sheet)).flaw is None
    read = list(csv.DictReader(line for line in sheet.decode().splitlines() if not line.startswith("#")))
    assert len(read) == sum(f.status == "new" for f in wanted) > 0
    assert {row["rule"] for row in read} == {"A"}


@pytest.fixture
def exported(viewer: Client, acme: Tenant, tmp_path: Path) -> tuple[Replay, Path]:
    import_text(acme, random_lines(26, 15))
    publish(acme, make_rule(acme, "A", expression="announces_action(ctx.final_text)"))
    with scope(tenant=acme):
        replay = run(acme)
    path = tmp_path / "manifest.json"
    path.write_bytes(viewer.get(f"/t/acme/replays/{replay.pk}/manifest").content)
    return replay, path


def again(path: Path, tenant: str = "acme") -> str:
    out = StringIO()
    call_command("replay", str(path), tenant=tenant, stdout=out, stderr=out)
    return out.getvalue()


def test_a_manifest_runs_again_to_the_same_digest(
    exported: tuple[Replay, Path], acme: Tenant, elsewhere: Tenant
) -> None:
    replay, path = exported
    import_text(acme, random_lines(27, 3))  # more chats, other rules and tools are no matter
    publish(acme, make_rule(acme, "B"))
    with scope(tenant=acme):
        add_entry(tenant=acme, values={"pattern": "read_file", "kind": "other"}, by=some_author(acme))
    assert "The same result" in again(path)
    import_text(elsewhere, random_lines(26, 15))
    assert replay.result_digest in again(path, "elsewhere")


def test_a_manifest_that_was_altered_or_misses_chats_is_refused(
    exported: tuple[Replay, Path], elsewhere: Tenant
) -> None:
    _replay, path = exported
    with pytest.raises(CommandError, match="are not in this tenant"):
        again(path, "elsewhere")
    document = json.loads(path.read_text())
    document["manifest"]["rules"][0]["expression"] = "ctx.mutated"
    path.write_text(json.dumps(document))
    with pytest.raises(CommandError, match="another one"):
        again(path)
    document["chats"] = document["chats"][1:]
    path.write_text(json.dumps(document))
    with pytest.raises(CommandError, match="not the chats of the manifest"):
        again(path)
    path.write_text("{}")
    with pytest.raises(CommandError, match="no manifest"):
        again(path)
    with pytest.raises(CommandError, match="no tenant"):
        again(path, "nobody")


def alter_outcome(replay: Replay) -> None:
    from rules.domain.replaying import pack_outcome, unpack_outcome

    chunk = ReplayChunk.objects.get(replay=replay)
    outcome = unpack_outcome(bytes(chunk.result or b"")).copy()
    outcome[0] = 0 if outcome[0] else 1
    ReplayChunk.objects.filter(pk=chunk.pk).update(result=pack_outcome(outcome))


def alter_counts(replay: Replay) -> None:
    chunk = ReplayChunk.objects.get(replay=replay)
    changed = json.loads(chunk.counts)
    changed["rules"]["A"]["fires"] += 1
    ReplayChunk.objects.filter(pk=chunk.pk).update(counts=json.dumps(changed))


def alter_sum(replay: Replay) -> None:
    changed = json.loads(replay.counts)
    changed["rules"]["A"]["matches"] += 1
    Replay.objects.filter(pk=replay.pk).update(counts=json.dumps(changed))


def alter_digest(replay: Replay) -> None:
    Replay.objects.filter(pk=replay.pk).update(result_digest="0" * 64)


def alter_rules(replay: Replay) -> None:
    text = replay.manifest.replace("announces_action", "asks_user")
    Replay.objects.filter(pk=replay.pk).update(manifest=text)


def alter_columns(replay: Replay) -> None:
    segment = Segment.objects.get()
    scalars = bytearray(segment.scalars)
    scalars[-20] ^= 1
    Segment.objects.filter(pk=segment.pk).update(scalars=bytes(scalars))


def alter_chat(replay: Replay) -> None:
    version = ChatVersion.objects.order_by("pk").first()
    assert version is not None
    ChatVersion.objects.filter(pk=version.pk).update(content_hash="f" * 64)


@pytest.mark.parametrize(
    "alter", [alter_outcome, alter_counts, alter_sum, alter_digest, alter_rules, alter_columns, alter_chat]
)
def test_an_altered_row_of_a_result_is_found(exported: tuple[Replay, Path], acme: Tenant, alter: Any) -> None:
    replay, _path = exported
    with scope(tenant=acme):
        assert flaws(replay) == []
        alter(replay)
        assert flaws(Replay.objects.get(pk=replay.pk)) != []
    with pytest.raises(CommandError, match="isn't what was written"):
        call_command("replay", tenant="acme", verify=replay.pk, stdout=StringIO())


def test_an_untouched_result_is_confirmed(exported: tuple[Replay, Path]) -> None:
    out = StringIO()
    call_command("replay", tenant="acme", verify=exported[0].pk, stdout=out)
    assert "all as written" in out.getvalue()


# --- nudges without a point before them


def test_recorded_nudges_without_a_point_before_them_are_recorded_only(in_acme: Tenant) -> None:
    messages = [
        {"role": "user", "content": "Go"},
        {"role": "assistant", "content": "Well."},
        {"role": "user", "content": "Nudge.", "nudge_code": "A"},
        {"role": "user", "content": "Nudge.", "nudge_code": "Z"},
        {"role": "assistant", "content": ""},
    ]
    make_chat(in_acme, *messages)
    publish(in_acme, make_rule(in_acme, "A"))
    replay = run(in_acme)
    assert counts(replay)["recorded_only"] == {"Z": 1}
    found = [(f.code, f.recorded, f.stage, f.message, f.status) for _key, f in findings(replay)]
    assert found == [("A", "A", "final", 1, "reproduced"), (None, "Z", "", 3, "recorded_only")]
    keys = [key for key, _f in findings(replay)]
    assert [key for n in range(2) for key, _f in list(findings(replay, after=keys[n]))[:1]] == keys[1:]
    assert len(list(findings(replay, status="recorded_only", code="Z"))) == 1


# --- the form


def test_the_new_page_says_what_it_takes_and_starts_with_what_was_chosen(author: Client, acme: Tenant) -> None:
    job = import_text(acme, random_lines(28, 6))
    publish(acme, make_rule(acme, "A"))
    make_rule(acme, "B")
    page = author.get(f"/t/acme/replays/new?import={job.pk}").content.decode()
    assert "6 chats" in page
    assert author.get("/t/acme/replays/new?scope=import:999", headers={"HX-Request": "true"}).status_code == 200
    given = {"scope": f"import:{job.pk}", "rules": "drafts", "compare": "live", "step_budget": "3", "title": "mine"}
    answer = author.post("/t/acme/replays/new", given)
    with scope(tenant=acme):
        replay = Replay.objects.get()
        assert (replay.title, replay.chats_total) == ("mine", 6)
        assert json.loads(replay.manifest)["defaults"]["step_budget"] == 3
        assert [r["code"] for r in json.loads(replay.manifest)["rules"]] == ["A", "B"]
        assert [r["code"] for r in json.loads(replay.compared_with)["rules"]] == ["A"]
        run_here(replay)
    assert b"compared with release 1" in author.get(answer["Location"]).content
    wrong = author.post("/t/acme/replays/new", {**given, "step_budget": "-1", "title": "kept"})
    assert (wrong.status_code, b'value="kept"' in wrong.content) == (422, True)
    with scope(tenant=acme):
        assert ImportJob.objects.count() == 1


def test_chunks_wait_for_room_and_replays_take_turns(in_acme: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    from rules.chunks import replays as chunks
    from rules.services import replays as services

    monkeypatch.setattr(chunks, "IN_FLIGHT", 2)
    monkeypatch.setattr(services, "FIRST_TASKS", 2)
    monkeypatch.setattr(services, "DERIVED_CHATS", 1)
    add_entry(tenant=in_acme, values={"pattern": "x", "kind": "read"}, by=some_author(in_acme))
    lines = [json.dumps(exchange_chat(external_id=f"c{n}")) for n in range(3)]
    import_text(in_acme, "\n".join(lines))
    Segment.objects.all().delete()
    publish(in_acme, make_rule(in_acme, "A"))
    first, second = (
        start_replay(tenant=in_acme, by=None, rules=rule_set(in_acme, drafts=False), send=True) for _ in range(2)
    )
    ReplayChunk.objects.filter(replay=second).update(heartbeat_at=None)
    sent = list(ReplayChunk.objects.filter(heartbeat_at__isnull=False).values_list("pk", flat=True))
    assert len(sent) == 2
    order: list[int] = []
    while sent:
        pk = sent.pop(0)
        order.append(pk)
        sent += chunks.run_chunk_and_next(pk)
    assert len(order) == len(set(order)) == 6
    assert [Replay.objects.get(pk=r.pk).status for r in (first, second)] == ["done", "done"]
    after_start = [ReplayChunk.objects.get(pk=pk).replay_id for pk in order[2:]]
    assert after_start[:2] == [second.pk, second.pk]


# --- the chats of a time


def test_a_time_holds_the_chats_that_began_on_its_days(author: Client, acme: Tenant) -> None:
    days = ("2026-01-31T23:59:59Z", "2026-02-01T00:00:00Z", "2026-02-28T23:59:59Z", "2026-03-01T00:00:00Z")
    for n, day in enumerate(days):
        asked = {"role": "user", "content": "Go", "created_at": day}
        make_chat(acme, asked, {"role": "assistant", "content": "x"}, external_id=f"c{n}")
    publish(acme, make_rule(acme, "A"))
    with scope(tenant=acme):
        whole, since, until = (
            Scope.parse(f"time:{text}") for text in ("2026-02-01..2026-02-28", "2026-02-01..", "..2026-01-31")
        )
        assert [Scope.parse(str(one)) for one in (whole, since, until)] == [whole, since, until]
        assert [run(acme, scope=one).chats_total for one in (whole, since, until)] == [2, 3, 1]
    for wrong in ("time:", "time:..", "time:x..", "time:2026-02-30..", "time:2026-02-01"):
        with pytest.raises(ValueError, match=r"."):
            Scope.parse(wrong)
    url = "/t/acme/replays/new"
    page = author.get(f"{url}?scope=time&since=2026-02-01&until=2026-02-28").content.decode()
    assert "2 chats" in page
    assert 'value="2026-02-28"' in page
    typed = {"scope": "time", "rules": "live", "compare": ""}
    assert author.post(url, typed).status_code == 422
    assert author.post(url, {**typed, "since": "2026-03-01", "until": "2026-02-01"}).status_code == 422
    started = author.post(url, {**typed, "since": "2026-02-01", "until": "2026-02-28"})
    assert "Chats from 2026-02-01 to 2026-02-28" in author.get(started["Location"]).content.decode()
    with scope(tenant=acme):
        replay = Replay.objects.order_by("-pk")[0]
        assert replay.chats_total == 2
        assert Scope.read(json.loads(replay.scope)) == whole
