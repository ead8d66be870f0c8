"""What the pages do, over HTTP: imports, searches, corpora, review, tests, effects, tools, proposals, replays."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import datetime
from io import BytesIO
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import override_settings
from django_scopes import scope

from chats.chunks import run_import
from chats.models import Chat, ChatVersion, ImportJob
from eleanor_site.audit.models import Entry
from eleanor_site.exports import check
from eleanor_site.tenants.models import Role, Tenant
from eleanor_site.tenants.services import make_api_key
from rules.models import Proposal, Replay, Rule
from rules.queries.effects import effect
from rules.queries.rules import edited_set
from rules.services import reviewing
from rules.services.segments import prepare_segments
from tests.api.conftest import ApiClient, key_for
from tests.factories import (
    exchange_chat,
    import_text,
    make_chat,
    make_person,
    make_replay,
    make_rule,
    make_schedule,
    make_wrapper,
    next_run,
    publish,
)

Keys = Callable[..., ApiClient]


def lines(*names: str) -> bytes:
    return "\n".join(json.dumps(exchange_chat(external_id=name)) for name in names).encode()


def actions(tenant: Tenant) -> list[str]:
    with scope(tenant=tenant):
        return list(Entry.objects.order_by("number").values_list("action", flat=True))


# --- imports


def test_a_file_is_sent_read_and_told_of(api: ApiClient, acme: Tenant) -> None:
    sent = api.send("POST", "/imports?name=week.jsonl", lines("a", "b"))
    job = sent.json()["job"]
    assert (sent.status_code, job["status"], job["file_name"]) == (202, "queued", "week.jsonl")
    with scope(tenant=acme):
        stored = ImportJob.objects.get(pk=job["id"])
        assert stored.file.read() == lines("a", "b")
        stored.file.close()
        run_import(job["id"])
    done = api.get(f"/imports/{job['id']}").json()
    assert (done["job"]["status"], done["job"]["taken"], done["job"]["format"]) == ("done", 2, "eleanor-chat")
    assert done["report"]["chats"] == 2
    assert [row["external_id"] for row in api.get(f"/chats?import={job['id']}").json()["items"]] == ["b", "a"]
    assert [row["id"] for row in api.get("/imports").json()["items"]] == [job["id"]]


def test_a_form_carries_the_same_file(api: ApiClient, acme: Tenant) -> None:
    answer = api.client.post(
        "/api/v1/imports?check_only=true",
        {"file": SimpleUploadedFile("week.jsonl", lines("a"))},
        headers={"Authorization": f"Bearer {api.key}"},
    )
    job = answer.json()["job"]
    assert (answer.status_code, job["file_name"], job["check_only"]) == (202, "week.jsonl", True)
    with scope(tenant=acme):
        run_import(job["id"])
        assert not Chat.objects.exists()
    assert api.get(f"/imports/{job['id']}").json()["job"]["taken"] == 1
    assert api.post(f"/imports/{job['id']}/run", {}).json()["job"]["check_only"] is False
    with scope(tenant=acme):
        run_import(job["id"])
        assert Chat.objects.count() == 1


def test_the_same_upload_under_one_key_is_one_import(api: ApiClient, acme: Tenant) -> None:
    first = api.send("POST", "/imports", lines("a"), Idempotency_Key="one")
    again = api.send("POST", "/imports", lines("a"), Idempotency_Key="one")
    assert (again.content, again["Idempotency-Replayed"]) == (first.content, "true")
    assert api.send("POST", "/imports", lines("b"), Idempotency_Key="one").json()["code"] == "key_reused"
    with scope(tenant=acme):
        assert ImportJob.objects.count() == 1


@override_settings(UPLOAD_LIMIT=1000)
def test_an_upload_over_the_limit_is_stopped_while_it_comes_in(api: ApiClient, acme: Tenant) -> None:
    content = b"x" * 1_500
    assert api.send("POST", "/imports", content).json()["code"] == "too_large"
    form = api.client.post(
        "/api/v1/imports", {"file": BytesIO(content)}, headers={"Authorization": f"Bearer {api.key}"}
    )
    assert (form.status_code, form.json()["code"]) == (413, "too_large")
    with scope(tenant=acme):
        assert not ImportJob.objects.exists()


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/imports", b"", "file"),
        ("/imports?format=nothing", b"{}", "format"),
        ("/imports?text_protocol=nothing", b"{}", "text_protocol"),
        ("/imports?encoding=ebcdic", b"{}", "encoding"),
        ("/imports?name=a%00b", b"{}", "name"),
    ],
)
def test_what_is_no_upload_names_the_field(api: ApiClient, path: str, body: bytes, field: str) -> None:
    answer = api.send("POST", path, body)
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, field)


def test_a_form_without_a_file_is_refused(api: ApiClient) -> None:
    answer = api.client.post("/api/v1/imports", {"other": "x"}, headers={"Authorization": f"Bearer {api.key}"})
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, "file")


def test_deleting_an_import_takes_its_chats(api: ApiClient, acme: Tenant) -> None:
    make_chat(acme, external_id="kept")
    job = api.send("POST", "/imports", lines("a", "b")).json()["job"]["id"]
    with scope(tenant=acme):
        run_import(job)
    assert api.get(f"/imports/{job}/contents").json() == {"chats": 2, "cut": 0, "kept": 0, "corpora": []}
    deletion = api.send("DELETE", f"/imports/{job}").json()
    assert (deletion["status"], deletion["total"], deletion["chats"]) == ("done", 2, 2)
    assert api.get(f"/imports/{job}").status_code == 404
    assert api.get(f"/imports/{job}/deletion").json() == deletion
    with scope(tenant=acme):
        assert list(Chat.objects.values_list("external_id", flat=True)) == ["kept"]
    assert actions(acme)[-1] == "import.delete"


# --- chats, searches, corpora


def test_chats_are_taken_along_and_come_back_the_same(api: ApiClient, acme: Tenant) -> None:
    make_chat(acme, external_id="a")
    make_chat(acme, external_id="b", metadata={"n": 1})
    content = api.get("/chats/export").getvalue()
    found = check(BytesIO(content))
    assert (found.rows, found.flaw) == (2, None)
    with scope(tenant=acme):
        before = set(ChatVersion.objects.values_list("content_hash", flat=True))
    job = api.send("POST", "/imports", content).json()["job"]["id"]
    with scope(tenant=acme):
        run_import(job)
        assert ImportJob.objects.get(pk=job).unchanged == 2
        assert set(ChatVersion.objects.values_list("content_hash", flat=True)) == before


def test_a_search_is_kept_and_is_a_scope(api: ApiClient, acme: Tenant) -> None:
    make_chat(acme, external_id="a")
    make_chat(acme, {"role": "user", "content": "Bonjour"}, {"role": "assistant", "content": "Oui."}, external_id="b")
    filters = {"q": "compute", "from": None, "nudged": False}
    made = api.post("/searches", {"name": "Computing", "filters": filters}).json()
    assert made["search"]["filters"] == {"q": "compute"}
    assert (made["chats"], made["labelled"]) == (1, 0)
    estimate = api.post("/replays/estimate", {"scope": f"search:{made['search']['id']}"}).json()
    assert estimate["chats"] == 1
    assert api.post("/searches", {"name": "Computing"}).json()["code"] == "refused"
    assert api.send("DELETE", f"/searches/{made['search']['id']}").status_code == 204
    assert api.get("/searches").json()["items"] == []


def test_a_day_of_a_filter_is_a_day(api: ApiClient) -> None:
    good = api.post("/searches", {"name": "March", "filters": {"from": "2026-03-01", "to": "2026-03-31"}})
    assert good.json()["search"]["query"] == "from=2026-03-01&to=2026-03-31"
    bad = api.post("/searches", {"name": "X", "filters": {"from": 20260301}})
    assert bad.json()["errors"][0]["path"] == "filters.from"


def test_a_corpus_is_frozen_checked_and_taken_along(api: ApiClient, acme: Tenant) -> None:
    make_chat(acme, external_id="a")
    made = api.post("/corpora", {"name": "March", "filters": {}}).json()
    make_chat(acme, external_id="b")
    assert made["chats"] == 1
    assert api.get(f"/corpora/{made['id']}/check").json() == {"held": 1, "missing": 0, "same_digest": True}
    assert [row["external_id"] for row in api.get(f"/corpora/{made['id']}/chats").json()["items"]] == ["a"]
    assert check(BytesIO(api.get(f"/corpora/{made['id']}/export").getvalue())).rows == 1
    api.send("DELETE", f"/chats/{api.get('/chats').json()['items'][1]['id']}")
    assert api.get(f"/corpora/{made['id']}/check").json()["missing"] == 1


def test_a_text_is_taken_out_after_it_was_shown(api: ApiClient, acme: Tenant) -> None:
    chat = make_chat(acme, {"role": "user", "content": "I am Ann"}, {"role": "assistant", "content": "Hello Ann"})
    shown = api.post(f"/chats/{chat.pk}/redaction/preview", {"pattern": "Ann"}).json()
    assert (shown["version"], shown["places"], shown["shown"][0]["found"]) == (1, 2, "Ann")
    done = api.post(f"/chats/{chat.pk}/redaction", {"pattern": "Ann", "version": 1}).json()
    assert done["places"] == 2
    assert "Ann" not in api.get(f"/chats/{chat.pk}").content.decode()
    stale = api.post(f"/chats/{chat.pk}/redaction", {"pattern": "Hello", "version": 1})
    assert (stale.status_code, stale.json()["code"]) == (409, "conflict")
    assert api.post(f"/chats/{chat.pk}/redaction/preview", {"pattern": "("}).json()["code"] == "refused"


# --- points, and what a key may not see of them


@pytest.fixture
def ruled(acme: Tenant) -> Chat:
    chat = make_chat(acme)
    publish(acme, make_rule(acme, "ACME-01"))
    with scope(tenant=acme):
        prepare_segments(acme)
    return chat


def test_the_inspector_of_a_point(api: ApiClient, ruled: Chat) -> None:
    [point] = api.get(f"/chats/{ruled.pk}/points").json()["items"]
    assert (point["point"], point["fired"], point["status"]) == (f"{ruled.pk}.1.1-final", "ACME-01", "new")
    shown = api.get(f"/chats/{ruled.pk}/points/{point['point']}").json()
    fields = {field["name"]: field["value"] for field in shown["context"]}
    assert fields["final_text"] == "I will compute it now."
    [rule] = shown["rules"]
    assert (rule["outcome"], rule["why"]["value"], rule["why"]["label"]) == ("fires", "true", 'ctx.final_text != ""')
    assert api.get(f"/chats/{ruled.pk}/points/1-final").json() == shown
    assert api.get(f"/chats/{ruled.pk}/points/1-round").status_code == 404


def test_a_key_sees_of_a_point_what_its_scopes_say(api_with: Keys, ruled: Chat) -> None:
    name = f"{ruled.pk}.1.1-final"
    chats_only = api_with("chats:read").get(f"/chats/{ruled.pk}/points/{name}").json()
    assert [rule["why"] for rule in chats_only["rules"]] == [None]
    rules_only = api_with("rules:read")
    for path in ("/rules/ACME-01/effect/points?set=same", f"/rules/ACME-01/effect/points/{name}"):
        answer = rules_only.get(path)
        assert answer.status_code == 200
        assert "compute" not in answer.content.decode(), path
    both = api_with("rules:read", "chats:read").get(f"/rules/ACME-01/effect/points/{name}")
    assert "compute" in both.content.decode()


# --- effects


def test_an_effect_is_the_editors(api: ApiClient, acme: Tenant, ruled: Chat) -> None:
    api.send("PUT", "/rules/ACME-01/draft", {"revision": 0, "content": {"expression": "ctx.mutated"}})
    given = api.get("/rules/ACME-01/effect?details=true").json()
    with scope(tenant=acme):
        rule = Rule.objects.get(code="ACME-01")
        answer = effect(acme, edited_set(acme, "ACME-01", rule.draft), "ACME-01")
    assert answer.effect is not None
    numbers = given["numbers"]["effect"]
    assert (numbers["fires"], numbers["gone"], numbers["points"]) == (0, 1, 1)
    assert {k: v for k, v in numbers.items() if k != "ms"} == {
        k: v for k, v in answer.as_json()["effect"].items() if k != "ms"
    }
    gone = api.get("/rules/ACME-01/effect/points?set=gone").json()
    assert [row["point"] for row in gone["items"]] == [f"{ruled.pk}.1.1-final"]
    assert [clause["missed"] for clause in given["near_misses"]] == [1]
    live = api.get("/rules/ACME-01/effect?version=1").json()
    assert live["numbers"]["effect"]["fires"] == 1
    why = api.get(f"/rules/ACME-01/effect/points/{ruled.pk}.1.1-final").json()
    assert (why["rule"]["outcome"], why["rule"]["why"]["value"]) == ("false", "false")


def test_what_is_typed_has_an_effect_before_it_is_saved(api: ApiClient, ruled: Chat) -> None:
    typed = api.post("/rules/check/effect", {"expression": "true"}).json()
    assert (typed["numbers"]["effect"]["matches"], typed["numbers"]["effect"]["shadowed"]) == (1, 1)
    broken = api.post("/rules/check/effect", {"expression": "ctx.nothing"}).json()
    assert (broken["numbers"], broken["mistakes"][0]["code"]) == (None, "unknown-field")
    assert api.post("/rules/check/effect", {"expression": "true", "code": "NONE"}).json()["errors"][0]["code"] == (
        "unknown"
    )


def test_an_order_is_tried_and_made(api: ApiClient, acme: Tenant, ruled: Chat) -> None:
    publish(acme, make_rule(acme, "ACME-02"))
    tried = api.post("/rules/order/effect", {"order": ["ACME-02", "ACME-01"]}).json()
    assert {row["code"]: row["after"] - row["before"] for row in tried["rules"]} == {"ACME-01": -1, "ACME-02": 1}
    made = api.post("/rules/order", {"order": ["ACME-02"], "seen_release": 2}).json()
    assert [rule["code"] for rule in made["rules"]] == ["ACME-02", "ACME-01"]


def test_catalogue_rules_show_their_effect_and_are_installed(api: ApiClient, ruled: Chat) -> None:
    items = api.get("/rules/catalogue?effect=true").json()["items"]
    assert not any(item["installed"] for item in items)
    assert {item["effect"]["state"] for item in items} <= {"ready", "preparing"}
    assert api.post("/rules/catalogue", {"codes": ["EAI-GOV-07"]}).json() == {"codes": ["EAI-GOV-07"]}
    assert api.post("/rules/catalogue", {"codes": ["X"]}).json()["errors"][0]["path"] == "codes[0]"


# --- rules


def test_tests_are_kept_run_and_close_the_gate(api: ApiClient, ruled: Chat) -> None:
    point = f"{ruled.pk}.1.1-final"
    kept = api.post("/rules/ACME-01/tests", {"point": point, "should_fire": True}).json()["items"]
    assert [(test["point"], test["outcome"], test["passed"]) for test in kept] == [(point, "fires", True)]
    api.post("/rules/ACME-01/tests", {"context": {"final_text": ""}, "should_fire": True})
    red = [test for test in api.get("/rules/ACME-01/tests").json()["items"] if not test["passed"]]
    assert [(test["context"], test["outcome"]) for test in red] == [({"final_text": ""}, "false")]
    states = {gate["key"]: gate["state"] for gate in api.get("/rules/ACME-01/gates").json()["items"]}
    assert states["tests"] == "failed"
    assert api.send("DELETE", f"/rules/ACME-01/tests/{red[0]['id']}").status_code == 204
    assert len(api.get("/rules/ACME-01/tests").json()["items"]) == 1


@pytest.mark.parametrize("name", ["1.1.99999-final", f"1.1.{10**16}-final", "1.9.1-final", "x"])
def test_a_point_that_is_not_there_is_no_test(api: ApiClient, ruled: Chat, name: str) -> None:
    answer = api.post("/rules/ACME-01/tests", {"point": name, "should_fire": True})
    assert answer.status_code == 422


def test_a_rule_is_copied_put_away_and_brought_back(api: ApiClient, acme: Tenant, ruled: Chat) -> None:
    made = api.post("/rules", {"code": "COPY", "copy_of": "ACME-01", "content": {"max_nudges": 3}}).json()["draft"]
    assert (made["content"]["prompt_en"], made["content"]["max_nudges"]) == ("Go on, says ACME-01.", 3)
    assert api.post("/rules/COPY/archive", None).json()["rule"]["state"] == "archived"
    assert api.post("/rules/COPY/restore", None).json()["rule"]["state"] == "draft"
    assert api.post("/rules/ACME-01/archive", None).json()["code"] == "refused"
    assert api.post("/rules", {"code": "C2", "copy_of": "NONE"}).json()["errors"][0]["path"] == "copy_of"


def test_an_earlier_draft_is_the_draft_again(api: ApiClient, acme: Tenant) -> None:
    make_rule(acme, "A")
    api.send("PUT", "/rules/A/draft", {"revision": 1, "content": {"prompt_en": "Other."}})
    back = api.post("/rules/A/draft/restore", {"number": 1, "revision": 2}).json()["draft"]
    assert (back["revision"], back["content"]["prompt_en"]) == (3, "Go on, says A.")


def test_a_rule_goes_back_to_a_version(api: ApiClient, acme: Tenant, ruled: Chat) -> None:
    api.send("PUT", "/rules/ACME-01/draft", {"revision": 0, "content": {"expression": "ctx.mutated"}})
    api.post("/releases", {"rules": ["ACME-01"], "note": "n", "seen_release": 1})
    compared = api.get("/rules/ACME-01/comparison?a=1&b=2").json()
    assert compared["changed"] == ["expression"]
    assert [compared[side]["effect"]["effect"]["fires"] for side in ("a", "b")] == [1, 0]
    assert (compared["b"]["version"]["points"], compared["b"]["version"]["fires"]) == (1, 0)
    api.post("/rules/ACME-01/versions/1/roll-back", {"seen_release": 2})
    assert api.get("/rules/ACME-01/versions/3").json()["content"]["expression"] == 'ctx.final_text != ""'
    undone = api.post("/releases/undo", {"seen_release": 3}).json()
    assert (undone["release"]["number"], undone["rules"][0]["version"]) == (4, 2)


def test_a_code_is_checked_and_an_expression_completed(api: ApiClient, ruled: Chat) -> None:
    assert api.get("/rules/check/code?code=NEW").json() == {"free": True, "problem": ""}
    assert api.get("/rules/check/code?code=ACME-01").json()["free"] is False
    found = api.get("/rules/check/completions?text=ctx.fin&at=7").json()
    assert (found["start"], found["end"]) == (4, 7)
    assert {"final_text", "finish_reason"} <= {item["label"] for item in found["items"]}


# --- the tool catalogue


def test_tools_are_tried_added_moved_and_taken_out(api: ApiClient, acme: Tenant) -> None:
    messages = [
        {"role": "user", "content": "Fix it"},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "name": "frobnicate"}]},
        {"role": "tool", "content": "done", "tool_call_id": "1"},
        {"role": "assistant", "content": "Done."},
    ]
    make_chat(acme, *messages)
    with scope(tenant=acme):
        prepare_segments(acme)
    assert [tool["name"] for tool in api.get("/tools/use").json()["unknown"]] == ["frobnicate"]
    entry = {"pattern": "frob*", "kind": "verify"}
    tried = api.post("/tools/effect", {"action": "add", "entry": entry}).json()
    assert (tried["names"], tried["exact"], tried["points_changed"] > 0) == (["frobnicate"], True, True)
    api.post("/tools", entry)
    [first, second] = api.post("/tools", {"pattern": "x", "kind": "read"}).json()["items"]
    moved = api.post(f"/tools/{second['id']}/move", {"step": -1}).json()["items"]
    assert [tool["pattern"] for tool in moved] == ["x", "frob*"]
    changed = api.send("PUT", f"/tools/{first['id']}", {**entry, "success_pattern": "ok"}).json()["items"]
    assert changed[1]["success_pattern"] == "ok"
    assert api.send("DELETE", f"/tools/{first['id']}").status_code == 204
    bad = api.post("/tools", {**entry, "success_pattern": "("})
    assert bad.json()["errors"][0]["path"] == "success_pattern"
    assert api.post("/tools/effect", {"action": "move", "id": second["id"]}).json()["errors"][0]["path"] == "step"


# --- proposals


def test_a_second_person_approves_and_publishes(acme: Tenant) -> None:
    acme.second_person = True
    acme.save()
    author = ApiClient(key_for(acme))
    publisher = make_person("second", acme, Role.PUBLISHER)
    _key, text = make_api_key(tenant=acme, by=publisher, name="second", scopes=["rules:publish", "rules:read"])
    other = ApiClient(text.text)
    make_rule(acme, "A")
    make_rule(acme, "B")
    opened = author.post("/proposals/open/rules", {"rules": ["A", "B"]}).json()
    author.send("DELETE", f"/proposals/{opened['id']}/rules/B")
    asked = author.post(f"/proposals/{opened['id']}/request", {"note": "Please."}).json()
    assert (asked["status"], [rule["code"] for rule in asked["rules"]]) == ("requested", ["A"])
    assert author.post(f"/proposals/{opened['id']}/approve", {}).json()["code"] == "refused"
    assert other.post(f"/proposals/{opened['id']}/approve", {}).json()["status"] == "approved"
    made = other.post(f"/proposals/{opened['id']}/publish", {"seen_release": 0}).json()
    assert (made["release"]["number"], made["release"]["approved_by"]) == (1, publisher.email)
    assert other.get("/proposals?status=published").json()["items"][0]["release"] == 1
    assert other.post(f"/proposals/{opened['id']}/publish", {"seen_release": 1}).json()["code"] == "conflict"


def test_a_request_for_one_rule_is_refused_or_withdrawn(api: ApiClient, acme: Tenant) -> None:
    make_rule(acme, "A")
    first = api.post("/proposals", {"rule": "A", "note": "n"}).json()["id"]
    assert api.post(f"/proposals/{first}/refuse", {"note": "No."}).json()["status"] == "refused"
    second = api.post("/proposals", {"rule": "A", "mode": "observe", "note": "n"}).json()["id"]
    assert api.post(f"/proposals/{second}/withdraw", None).json()["status"] == "withdrawn"
    assert actions(acme)[-1] == "proposal.withdraw"


# --- verdicts and queues


def test_a_verdict_is_given_changed_and_taken_back(api: ApiClient, acme: Tenant, ruled: Chat) -> None:
    body = {"chat": ruled.pk, "message": 1, "stage": "final", "code": "ACME-01", "rule_version": 1}
    given = api.post("/verdicts", {**body, "value": "right"}).json()
    assert (given["point"], given["turn"]) == (f"{ruled.pk}.1.1-final", 0)
    changed = api.post("/verdicts", {**body, "value": "wrong", "note": "Nagging."}).json()
    assert changed["id"] == given["id"]
    [quality] = api.get("/verdicts/quality").json()["items"]
    assert (quality["precision"]["hits"], quality["precision"]["n"], quality["precision"]["enough"]) == (0, 1, False)
    assert api.send("DELETE", f"/verdicts/{given['id']}").json()["verdict"]["value"] == "right"
    assert api.send("DELETE", f"/verdicts/{given['id']}").json() == {"verdict": None}
    assert api.get("/verdicts").json()["items"] == []
    assert actions(acme)[-4:] == ["verdict.give", "verdict.give", "verdict.undo", "verdict.undo"]
    nowhere = api.post("/verdicts", {**body, "message": 0, "value": "right"})
    assert nowhere.json()["errors"][0]["path"] == "message"


def test_another_persons_verdict_stays(api: ApiClient, acme: Tenant, ruled: Chat) -> None:
    with scope(tenant=acme):
        person = make_person("ann", acme, Role.REVIEWER)
        version = ruled.versions.get()
        point = reviewing.JudgedPoint(version, 1, "final", 0, "ACME-01", 1)
        verdict = reviewing.judge(tenant=acme, by=person, point=point, value="right")
    assert api.send("DELETE", f"/verdicts/{verdict.pk}").json()["code"] == "refused"


def test_a_queue_is_made_worked_through_and_agreed_on(api: ApiClient, acme: Tenant, ruled: Chat) -> None:
    make_replay(acme)
    made = api.post("/queues", {"code": "ACME-01", "name": "New ones"}).json()
    assert (made["queue"]["items"], made["mine"], made["judged"]) == (1, 0, 0)
    queue = made["queue"]["id"]
    [item] = api.get(f"/queues/{queue}/items?open=true").json()["items"]
    body = {"chat": item["chat"], "message": item["message"], "stage": item["stage"], "code": item["code"]}
    api.post("/verdicts", {**body, "value": "right"})
    assert api.get(f"/queues/{queue}/items?open=true").json()["items"] == []
    assert api.get(f"/queues/{queue}").json()["mine"] == 1
    agreement = api.get(f"/queues/{queue}/agreement").json()
    assert (agreement["judged_by_several"], agreement["kappa"]) == (0, None)
    search = api.post("/searches", {"name": "All"}).json()["search"]["id"]
    assert api.post("/queues", {"search": search}).json()["queue"]["name"] == "All"
    assert api.post("/queues", {}).json()["errors"][0]["path"] == "search"


# --- replays


def test_two_replays_are_compared_and_taken_along(api: ApiClient, acme: Tenant, ruled: Chat) -> None:
    make_rule(acme, "NEW", expression="ctx.mutated")
    first, second = make_replay(acme, drafts=False), make_replay(acme)
    compared = api.get(f"/replays/comparison?a={first.pk}&b={second.pk}").json()
    assert (compared["same_corpus"], compared["lined_up"]) == (True, True)
    assert [difference["what"] for difference in compared["differences"]] == ["rules-only"]
    assert api.get(f"/replays/comparison/points?a={first.pk}&b={second.pk}").json() == {"items": [], "next": None}
    assert api.get(f"/replays/comparison?a={first.pk}&b=999").json()["errors"][0]["path"] == "b"
    for form in ("csv", "jsonl"):
        found = check(BytesIO(api.get(f"/replays/{first.pk}/export?format={form}").getvalue()))
        assert (found.rows, found.flaw) == (1, None)
    counts = api.get(f"/replays/{first.pk}/findings/counts").json()["by"]
    assert (counts["status"][""], counts["status"]["new"]) == (1, 1)
    manifest = api.get(f"/replays/{first.pk}/manifest").json()
    assert manifest["result_digest"] == first.result_digest
    assert len(manifest["chats"]) == 1
    assert api.send("PUT", f"/replays/{first.pk}/baseline").json()["baseline"] is True
    api.send("PUT", f"/replays/{second.pk}/baseline")
    with scope(tenant=acme):
        assert list(Replay.objects.filter(baseline=True).values_list("pk", flat=True)) == [second.pk]
    assert api.send("DELETE", f"/replays/{second.pk}/baseline").json()["baseline"] is False
    told = api.post(f"/replays/{first.pk}/aftermath", None).json()
    assert (told["chats"], told["rows"][0]["counts"]["fires"]) == (1, 1)
    assert api.get(f"/replays/{first.pk}/aftermath").json() == told


def test_a_replay_is_compared_with_what_is_live(api: ApiClient, acme: Tenant, ruled: Chat) -> None:
    make_rule(acme, "NEW")
    started = api.post("/replays", {"rules": "drafts", "compare": "live", "step_budget": 7}).json()["replay"]
    assert started["compared_with"] == "release 1"
    assert started["scope"] == {"kind": "all"}
    same = api.post("/replays", {"compare": "live"}).json()["replay"]
    assert same["compared_with"] is None
    assert api.post("/replays", {"compare": "release"}).json()["errors"][0]["path"] == "compare_release"


# --- scheduled replays and what needs somebody


def test_a_replay_is_scheduled_paused_resumed_and_removed(api: ApiClient, acme: Tenant, ruled: Chat) -> None:
    replay = make_replay(acme, drafts=False)
    body = {"replay": replay.pk, "name": " Friday ", "rules": "baseline", "hour": 22, "weekday": 4}
    made = api.post("/replays/schedules", body)
    schedule = made.json()["schedule"]
    assert made.status_code == 201
    assert [schedule[key] for key in ("name", "rules", "hour", "weekday")] == ["Friday", "baseline", 22, 4]
    assert (schedule["scope"], schedule["baseline"], schedule["active"]) == ("all", replay.pk, True)
    due = datetime.fromisoformat(schedule["due_at"])
    assert (due.weekday(), due.hour) == (4, 22)
    path = f"/replays/schedules/{schedule['id']}"
    shown = api.get(path).json()
    assert shown == {"schedule": shown["schedule"], "runs": []}
    paused = api.post(f"{path}/pause", None).json()["schedule"]
    assert (paused["active"], paused["due_at"]) == (False, None)
    assert api.post(f"{path}/resume", None).json() == shown
    assert api.get("/replays/schedules").json() == {"items": [{"schedule": shown["schedule"], "last": None}]}
    assert api.send("DELETE", path).status_code == 204
    assert api.get("/replays/schedules").json() == {"items": []}
    assert actions(acme)[-4:] == ["schedule.add", "schedule.pause", "schedule.resume", "schedule.remove"]


def test_a_run_that_differs_is_told_until_it_is_the_baseline(api: ApiClient, acme: Tenant, ruled: Chat) -> None:
    replay = make_replay(acme, drafts=False)
    schedule = api.post("/replays/schedules", {"replay": replay.pk, "name": "Nightly", "hour": 3}).json()["schedule"]
    assert schedule["weekday"] is None
    path = f"/replays/schedules/{schedule['id']}"
    next_run(acme, schedule["id"])
    [same] = api.get(path).json()["runs"]
    assert (same["outcome"], same["changed"], same["shared_chats"]) == ("same", [], 1)
    assert api.get("/attention").json() == {"items": []}
    publish(acme, make_rule(acme, "ACME-02"), make_rule(acme, "ACME-03", expression="ctx.mutated"))
    api.post("/rules/order", {"order": ["ACME-02", "ACME-01", "ACME-03"], "seen_release": 2})
    run = next_run(acme, schedule["id"]).pk
    differs = api.get("/replays/schedules").json()["items"][0]["last"]
    assert (differs["id"], differs["outcome"], differs["baseline"]) == (run, "differs", replay.pk)
    assert {rule["rule"]: (rule["fires_before"], rule["fires_after"]) for rule in differs["changed"]} == {
        "ACME-01": (1, 0),
        "ACME-02": (None, 1),
        "ACME-03": (None, 0),
    }
    [note] = api.get("/attention").json()["items"]
    assert (note["kind"], note["sentence"]) == ("regressed", "1 scheduled replay differs from its baseline.")
    assert note["places"] == [{"label": "Nightly", "path": f"/t/acme{path}/"}]
    taken = api.send("PUT", f"{path}/runs/{run}/baseline").json()
    assert taken["schedule"]["baseline"] == differs["replay"]
    assert [row["id"] for row in taken["runs"]] == [run, same["id"]]
    assert api.get("/attention").json() == {"items": []}


def test_a_run_of_another_schedule_is_no_baseline(api: ApiClient, acme: Tenant, ruled: Chat) -> None:
    replay = make_replay(acme, drafts=False)
    run = next_run(acme, make_schedule(acme, replay).pk)
    other = api.post("/replays/schedules", {"replay": replay.pk, "hour": 3}).json()["schedule"]
    assert other["name"] == str(replay)
    assert api.send("PUT", f"/replays/schedules/{other['id']}/runs/{run.pk}/baseline").status_code == 404


@pytest.mark.parametrize(
    ("change", "field"),
    [({"replay": 999}, "replay"), ({"hour": 24}, "hour"), ({"weekday": 7}, "weekday"), ({"rules": "release"}, "rules")],
)
def test_what_is_no_schedule_names_the_field(
    api: ApiClient, acme: Tenant, ruled: Chat, change: dict[str, Any], field: str
) -> None:
    body = {"replay": make_replay(acme, drafts=False).pk, "hour": 3, **change}
    answer = api.post("/replays/schedules", body)
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, field)


def test_a_replay_that_is_not_done_is_not_scheduled(api: ApiClient, acme: Tenant, ruled: Chat) -> None:
    body = {"replay": make_replay(acme, run=False).pk, "hour": 3}
    assert api.post("/replays/schedules", body).json()["code"] == "refused"


def test_a_key_is_told_what_its_scopes_are_about(api: ApiClient, api_with: Keys, acme: Tenant, ruled: Chat) -> None:
    import_text(acme, "no chat at all", name="broken.jsonl")
    make_rule(acme, "DRAFT")
    with scope(tenant=acme):
        for n in range(30):
            chat = make_chat(acme, external_id=f"judged-{n}")
            point = reviewing.JudgedPoint(chat.versions.get(), 1, "final", 0, "ACME-01", 1)
            reviewing.judge(tenant=acme, by=make_person(f"p{n}", acme, Role.REVIEWER), point=point, value="wrong")
        Proposal.objects.create(
            tenant=acme, status="requested", by=make_person("ann", acme, Role.AUTHOR), note="Please"
        )

    def kinds(key: ApiClient) -> list[str]:
        return [note["kind"] for note in key.get("/attention").json()["items"]]

    assert kinds(api) == ["approval", "failed", "precision", "draft"]
    assert kinds(api_with("rules:read")) == ["draft"]
    assert kinds(api_with("rules:read", "chats:read")) == ["failed", "draft"]
    assert kinds(api_with("rules:read", "nudges:read")) == ["precision", "draft"]


# --- wrappers


def test_a_wrapper_is_compared_rolled_back_and_put_away(api: ApiClient, acme: Tenant) -> None:
    make_wrapper(acme, "mine")
    compared = api.get("/wrappers/mine/comparison?a=1&b=draft").json()
    assert [row["path"] for row in compared["paths"]] == ["settings.supportsSystemMessages"]
    revision = api.get("/wrappers/mine?draft=true").json()["revision"]
    api.post("/wrappers/mine/versions", {"revision": revision, "note": "Without system messages"})
    assert [row["number"] for row in api.get("/wrappers/mine/versions").json()["items"]] == [2, 1]
    assert api.post("/wrappers/mine/versions/1/roll-back", {}).json()["wrapper"]["version"] == 3
    first, third = (api.get(f"/wrappers/mine/versions/{n}").json()["content"] for n in (1, 3))
    assert first == third
    api.post("/wrappers/mine/archive", None)
    assert "mine" not in [row["key"] for row in api.get("/wrappers").json()["items"]]
    assert [row["key"] for row in api.get("/wrappers?archived=true").json()["items"]] == ["mine"]
    api.post("/wrappers/mine/restore", None)
    assert "mine" in [row["key"] for row in api.get("/wrappers").json()["items"]]


def test_wrappers_side_by_side(api: ApiClient, acme: Tenant) -> None:
    chat = make_chat(acme)
    body = {"wrappers": ["ChatMLChatWrapper", "GemmaChatWrapper"], "chat": chat.pk, "nudge": "Go on."}
    sides = api.post("/wrappers/preview", body).json()["sides"]
    rendered = ["".join(piece["text"] for piece in side["pieces"]) for side in sides]
    for side, text in zip(sides, rendered, strict=True):
        alone = api.post(f"/wrappers/{side['wrapper']}/render", {"chat": chat.pk, "nudge": "Go on."}).json()["text"]
        assert text == alone
    assert all(any(piece["differs"] for piece in side["pieces"]) for side in sides)
    unknown = api.post("/wrappers/preview", {**body, "wrappers": ["nothing"]})
    assert unknown.json()["errors"][0]["path"] == "wrappers[0]"


def test_findings_of_a_wrapper_and_its_silence(api: ApiClient) -> None:
    content: dict[str, Any] = {"base": "ChatMLChatWrapper", "settings": {"functions": {"call": {"prefix": ""}}}}
    found = api.post("/wrappers/preview/lint", {"content": content}).json()
    assert found["problem"] == ""
    assert found["findings"], found
    key = found["findings"][0]["key"]
    answered = api.post("/wrappers/preview/lint", {"content": {**content, "silenced": {key: "On purpose"}}}).json()
    assert [(one["key"], one["answer"]) for one in answered["silenced"]] == [(key, "On purpose")]
    assert api.post("/wrappers/preview/lint", {}).json()["errors"][0]["path"] == "wrapper"


def test_a_content_that_no_page_could_read_is_refused(api: ApiClient) -> None:
    content = {"template": "x", "serving": {"nothing": True}}
    answer = api.post("/wrappers", {"slug": "bad", "name": "Bad", "content": content})
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, "content")


def test_which_wrapper_and_why(api: ApiClient) -> None:
    found = api.post("/wrappers/which", {"file_name": "orca-2-13b.Q4_0.gguf"}).json()
    assert found["wrapper"] == "ChatMLChatWrapper"
    assert found["reasons"]
    config = json.dumps({"chat_template": "{% for m in messages %}<|im_start|>{{ m.role }}\n{% endfor %}"})
    assert api.post("/wrappers/which", {"tokenizer_config": config}).status_code == 200
    broken = api.post("/wrappers/which", {"tokenizer_config": "{"})
    assert broken.json()["errors"][0]["path"] == "tokenizer_config"


# --- nudges and changes


def test_the_numbers_of_the_history(api: ApiClient, acme: Tenant) -> None:
    at = "2026-03-05T10:00:00Z"
    report = {"nudges": [{"code": "A", "at": at, "outcome": "acted"}, {"code": "A", "at": at}, {"code": "B"}]}
    api.post("/nudges", report)
    assert {row["label"]: row["count"] for row in api.get("/nudges/groups").json()["items"]} == {"A": 2, "B": 1}
    march = api.get("/nudges/days?from=2026-03-01&to=2026-03-31").json()
    assert march["days"] == [{"day": "2026-03-05", "code": "A", "count": 2}]
    [first, _second] = api.get("/nudges/statistics").json()["items"]
    assert (first["code"], first["count"], first["acted"]) == ("A", 2, 1)
    found = check(BytesIO(api.get("/nudges/export?rule=A&format=csv").getvalue()))
    assert (found.rows, found.flaw) == (2, None)


def test_a_release_tells_what_came_after_it(api: ApiClient, acme: Tenant) -> None:
    publish(acme, make_rule(acme, "ACME-01"))
    api.post("/nudges", {"nudges": [{"code": "ACME-01"}]})
    assert api.get("/releases/1/firings").json()["items"] == [{"code": "ACME-01", "before": 0, "after": 1}]


def test_a_change_and_the_log_as_a_file(api: ApiClient, acme: Tenant) -> None:
    publish(acme, make_rule(acme, "ACME-01"))
    number = api.get("/changes?action=rule.create").json()["items"][0]["number"]
    shown = api.get(f"/changes/{number}").json()
    assert (shown["whole"], shown["change"]["object_label"]) == (True, "ACME-01")
    content = api.get("/changes/export?object=release").getvalue()
    assert check(BytesIO(content)).rows == 1
    assert json.loads(content.split(b"\n")[0])["hash"] == api.get("/changes?object=release").json()["items"][0]["hash"]
    assert hashlib.sha256(content.rsplit(b"\n", 2)[0] + b"\n").hexdigest() in content.decode()
