"""Live use: the release, decisions, nudges and chats over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from django_scopes import scope

from chats.models import Chat, ChatVersion
from eleanor_site.audit.models import Entry
from eleanor_site.tenants.models import Tenant
from rules.domain.catalogue import default_rule_texts
from rules.models import RecordedNudge, Replay
from rules.queries.live import live_release
from rules.queries.rules import live_number
from rules.services.catalogue import install
from rules.services.publishing import publish_drafts, set_mode
from tests.api.conftest import ApiClient
from tests.factories import exchange_chat, make_chat, make_replay, make_rule, publish, some_author

ANNOUNCED: dict[str, Any] = {
    "final_text": "I will fix the parser now.",
    "user_text": "Please fix the parser.",
    "finish_reason": "stop",
    "tools_available": True,
}


@pytest.fixture
def default_rules(acme: Tenant) -> Tenant:
    with scope(tenant=acme):
        codes = [text.code for text in default_rule_texts()]
        rules = install(tenant=acme, by=some_author(acme), codes=codes)
        publish_drafts(tenant=acme, rules=rules, by=some_author(acme), note="all", seen_release=live_number())
    return acme


def nudge_message(code: str, text: str = "Go on.") -> dict[str, Any]:
    return {"role": "user", "content": text, "nudge_code": code}


# --- release


def test_the_release_has_what_a_runtime_needs(api: ApiClient, acme: Tenant) -> None:
    publish(acme, make_rule(acme, "ACME-01", prompt_fr="Continuez."))
    document = api.get("/release").json()
    assert document["number"] == 1
    assert document["prompt_language"] == "en"
    assert document["defaults"] == {"step_budget": None, "require_delivery": False, "audit_mode": False}
    [rule] = document["rules"]
    assert (rule["position"], rule["code"], rule["version"], rule["mode"]) == (1, "ACME-01", 1, "live")
    assert rule["expression"] == 'ctx.final_text != ""'
    assert rule["prompts"] == {"en": "Go on, says ACME-01.", "fr": "Continuez."}


def test_before_the_first_release_there_is_one_without_rules(api: ApiClient) -> None:
    document = api.get("/release").json()
    assert (document["number"], document["rules"]) == (0, [])


def test_an_unchanged_release_is_answered_with_304(api: ApiClient, acme: Tenant) -> None:
    publish(acme, make_rule(acme))
    first = api.get("/release")
    same = api.get("/release", If_None_Match=first["ETag"])
    assert (same.status_code, same.content) == (304, b"")
    assert same["ETag"] == first["ETag"]
    assert api.get("/release", If_None_Match=f'"other", W/{first["ETag"]}').status_code == 304
    publish(acme, make_rule(acme, "ACME-02"))
    changed = api.get("/release", If_None_Match=first["ETag"])
    assert changed.status_code == 200
    assert changed["ETag"] != first["ETag"]


def test_a_changed_default_changes_the_tag(api: ApiClient, acme: Tenant) -> None:
    tag = api.get("/release")["ETag"]
    acme.audit_mode = True
    acme.save()
    assert api.get("/release", If_None_Match=tag).status_code == 200


# --- evaluate


def test_a_context_is_decided_and_explained(api: ApiClient, default_rules: Tenant) -> None:
    answer = api.post("/evaluate", {"context": ANNOUNCED, "stage": "final", "trace": True}).json()
    decision = answer["results"][0]["decision"]
    assert decision["nudge"]["code"] == "EAI-GOV-07"
    assert decision["nudge"]["prompt"].startswith("You said what you are about to do")
    assert decision["nudge"]["prompts"]["fr"].startswith("Vous avez annoncé une action")
    outcomes = {rule["code"]: rule["outcome"] for rule in decision["rules"]}
    assert outcomes["EAI-GOV-07"] == "fires"
    assert outcomes["EAI-GOV-01"] == "false"
    assert "EAI-GOV-09" not in outcomes  # a rule of the other stage
    [trace] = [rule["trace"] for rule in decision["rules"] if rule["code"] == "EAI-GOV-07"]
    assert (trace["kind"], trace["state"]) == ("and", "true")


def test_the_words_come_in_the_language_that_is_asked_for(api: ApiClient, default_rules: Tenant) -> None:
    answer = api.post("/evaluate", {"context": ANNOUNCED, "language": "fr"}).json()
    nudge = answer["results"][0]["decision"]["nudge"]
    assert nudge["language"] == "fr"
    assert nudge["prompt"].startswith("Vous avez annoncé")


def test_a_rule_at_its_ceiling_is_capped(api: ApiClient, acme: Tenant) -> None:
    publish(acme, make_rule(acme, "A", max_nudges=1), make_rule(acme, "B", max_nudges=1))
    context = {"final_text": "x", "nudges": {"A": 1}}
    decision = api.post("/evaluate", {"context": context}).json()["results"][0]["decision"]
    assert [(rule["code"], rule["outcome"]) for rule in decision["rules"]] == [("A", "capped"), ("B", "fires")]


def test_an_observed_rule_never_injects(api: ApiClient, acme: Tenant) -> None:
    publish(acme, make_rule(acme, "WATCH"), make_rule(acme, "ACT"))
    with scope(tenant=acme):
        by = some_author(acme)
        rule = live_release(acme).entry("WATCH")
        assert rule is not None
        from rules.models import Rule

        watched = Rule.objects.get(code="WATCH")
        set_mode(tenant=acme, rule=watched, mode="observe", by=by, seen_release=live_number())
    decision = api.post("/evaluate", {"context": {"final_text": "x"}}).json()["results"][0]["decision"]
    assert [(rule["code"], rule["mode"], rule["outcome"]) for rule in decision["rules"]] == [
        ("WATCH", "observe", "observes"),
        ("ACT", "live", "fires"),
    ]
    assert decision["nudge"]["code"] == "ACT"


def test_a_batch_is_answered_in_order(api: ApiClient, acme: Tenant) -> None:
    publish(acme, make_rule(acme, "LONG", expression="ctx.final_text.size() > 3"))
    batch = [{"context": {"final_text": text}} for text in ("no", "long enough", "", "long")]
    results = api.post("/evaluate", {"batch": batch}).json()["results"]
    fired = [one["decision"]["nudge"] and one["decision"]["nudge"]["code"] for one in results]
    assert fired == [None, "LONG", None, "LONG"]


def test_a_conversation_that_waits_is_decided_at_its_last_point(api: ApiClient, default_rules: Tenant) -> None:
    messages = [
        {"role": "user", "content": "Please fix the parser."},
        {"role": "assistant", "content": "I will fix the parser now.", "finish_reason": "stop"},
    ]
    chat = exchange_chat(*messages, tools=["edit_file"])
    result = api.post("/evaluate", {"conversation": chat}).json()["results"][0]
    assert result["decision"]["nudge"]["code"] == "EAI-GOV-07"
    assert result["decision"]["point"] == {"turn": 0, "message": 1, "recorded": None, "status": "new"}
    assert result["decision"]["context"]["user_text"] == "Please fix the parser."
    nudged = exchange_chat(*messages, nudge_message("EAI-GOV-07"), tools=["edit_file"])
    again = api.post("/evaluate", {"conversation": nudged, "points": "all"}).json()["results"][0]
    assert again["decision"] is None
    assert [point["point"]["status"] for point in again["points"]] == ["reproduced"]


@pytest.mark.parametrize(
    ("last", "waits"),
    [
        (
            [
                {"role": "tool", "content": "ok", "tool_call_id": "1"},
                {"role": "tool", "content": "ok", "tool_call_id": "2"},
            ],
            True,
        ),
        ([{"role": "tool", "content": "ok", "tool_call_id": "1"}], False),
        ([], False),
    ],
)
def test_a_round_waits_when_every_call_has_its_result(
    api: ApiClient, acme: Tenant, last: list[dict[str, Any]], waits: bool
) -> None:
    publish(acme, make_rule(acme, "R", stage="round", expression="ctx.tool_calls_total == 2"))
    calls = [{"id": "1", "name": "get_a"}, {"id": "2", "name": "get_b"}]
    chat = exchange_chat(
        {"role": "user", "content": "q"}, {"role": "assistant", "content": "", "tool_calls": calls}, *last
    )
    result = api.post("/evaluate", {"conversation": chat}).json()["results"][0]
    assert (result["decision"] is not None) == waits


def test_a_conversation_is_decided_as_a_replay_of_it(api: ApiClient, default_rules: Tenant) -> None:
    """One engine: the API's points equal the findings of a replay of the same chat."""
    messages = [
        {"role": "user", "content": "Go ahead"},
        {"role": "assistant", "content": "I will check the logs.", "finish_reason": "stop"},
        {"role": "assistant", "content": "", "finish_reason": "length"},
        nudge_message("EAI-GOV-01"),
        {"role": "assistant", "content": "Next steps: deploy it.", "finish_reason": "stop"},
    ]
    chat = exchange_chat(*messages, tools=["run"], external_id="one")
    points = api.post("/evaluate", {"conversation": chat, "points": "all"}).json()["results"][0]["points"]
    make_chat(default_rules, *messages, tools=["run"], external_id="one")
    replay = make_replay(default_rules, drafts=False)
    found = api.get(f"/replays/{replay.pk}/findings").json()["items"]
    told = [(p["point"]["message"], p["nudge"] and p["nudge"]["code"], p["point"]["status"]) for p in points]
    assert [row for row in told if row[2]] == [(f["message"], f["code"], f["status"]) for f in found]
    assert len(found) >= 2


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, "context"),
        ({"context": {}, "conversation": {}}, "context"),
        ({"context": {"final_txt": "x"}}, "context.final_txt"),
        ({"context": {"tool_calls_total": "3"}}, "context.tool_calls_total"),
        ({"context": {"nudges": {"A": -1}}}, "context.nudges.A"),
        ({"batch": [{"context": {}}, {"stage": "both", "context": {}}]}, "batch[1].stage"),
        ({"batch": []}, "batch"),
        ({"batch": [{"context": {}}], "context": {}}, "batch"),
        ({"conversation": {"format": "eleanor-chat", "version": 1}}, "conversation.chat"),
        (
            {"batch": [{"conversation": exchange_chat({"role": "user", "contents": "x"})}]},
            "batch[0].conversation.chat.messages[0].contents",
        ),
    ],
)
def test_wrong_input_names_the_field(api: ApiClient, body: dict[str, Any], path: str) -> None:
    answer = api.post("/evaluate", body)
    assert answer.status_code == 422
    assert answer["Content-Type"] == "application/problem+json"
    document = answer.json()
    assert document["code"] == "invalid"
    assert path in [error["path"] for error in document["errors"]]


# --- chats


def test_a_chat_is_stored_once_and_brought_up_to_date(api: ApiClient, acme: Tenant) -> None:
    chat = exchange_chat(external_id="talk-1", title="Sums")
    taken = api.post("/chats", {"chats": [chat]}).json()["chats"][0]
    assert (taken["external_id"], taken["version"], taken["outcome"]) == ("talk-1", 1, "taken")
    assert api.post("/chats", {"chats": [chat]}).json()["chats"][0]["outcome"] == "unchanged"
    chat["chat"]["messages"].append({"role": "user", "content": "Thanks"})
    updated = api.post("/chats", {"chats": [chat]}).json()["chats"][0]
    assert (updated["id"], updated["version"], updated["outcome"]) == (taken["id"], 2, "updated")
    shown = api.get(f"/chats/{taken['id']}").json()
    assert shown["content"]["chat"]["messages"][-1]["content"] == "Thanks"
    assert (shown["chat"]["messages"], shown["chat"]["final_points"]) == (3, 1)
    assert len(api.get(f"/chats/{taken['id']}?version=1").json()["content"]["chat"]["messages"]) == 2
    with scope(tenant=acme):
        assert Entry.objects.filter(action="chats.receive").count() == 2


def test_a_chat_from_a_file_and_from_the_api_are_one(api: ApiClient, acme: Tenant) -> None:
    stored = make_chat(acme, external_id="talk-2")
    answer = api.post("/chats", {"chats": [exchange_chat(external_id="talk-2")]}).json()
    assert answer["chats"] == [{"id": stored.pk, "external_id": "talk-2", "version": 1, "outcome": "unchanged"}]


def test_a_batch_with_a_broken_chat_stores_none(api: ApiClient, acme: Tenant) -> None:
    broken = exchange_chat({"role": "user", "content": 7, "extra": 1})
    answer = api.post("/chats", {"chats": [exchange_chat(external_id="fine"), broken]})
    assert answer.status_code == 422
    assert {error["path"] for error in answer.json()["errors"]} >= {"chats[1].chat.messages[0].extra"}
    with scope(tenant=acme):
        assert not Chat.objects.exists()


def test_arguments_keep_their_order_and_number_form(api: ApiClient, acme: Tenant) -> None:
    call = {"id": "1", "name": "f", "arguments": {"z": 1.0, "a": 10**20, "m": {"y": 1, "b": 2}}}
    api.post(
        "/chats",
        {
            "chats": [
                exchange_chat(
                    {"role": "user", "content": "q"}, {"role": "assistant", "content": "", "tool_calls": [call]}
                )
            ]
        },
    )
    with scope(tenant=acme):
        assert '{"z": 1.0, "a": 100000000000000000000, "m": {"y": 1, "b": 2}}' in ChatVersion.objects.get().content


def test_chats_are_listed_by_cursor(api: ApiClient) -> None:
    api.post("/chats", {"chats": [exchange_chat(external_id=f"c{n}") for n in range(5)]})
    seen: list[str] = []
    after = ""
    while True:
        page = api.get(f"/chats?limit=2{after}").json()
        seen += [row["external_id"] for row in page["items"]]
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    assert seen == ["c4", "c3", "c2", "c1", "c0"]
    assert api.get("/chats?after=x").json()["errors"][0]["path"] == "after"
    assert [row["external_id"] for row in api.get("/chats?q=compute&limit=1").json()["items"]] == ["c4"]


# --- nudges


def test_reported_nudges_are_history(api: ApiClient, acme: Tenant) -> None:
    publish(acme, make_rule(acme, "ACME-01"))
    chat = make_chat(acme, external_id="talk")
    body = {
        "nudges": [
            {"code": "ACME-01", "chat": chat.pk, "point": 1, "turn": 0, "stage": "final"},
            {"code": "X", "source": "observe"},
        ]
    }
    assert api.post("/nudges", body).json() == {"taken": 2, "known": 0}
    items = api.get("/nudges").json()["items"]
    assert [(row["code"], row["source"], row["chat"], row["version"]) for row in items] == [
        ("X", "observe", None, None),
        ("ACME-01", "live", chat.pk, 1),
    ]
    assert [row["code"] for row in api.get("/nudges?source=live").json()["items"]] == ["ACME-01"]


def test_a_known_external_key_is_not_taken_again(api: ApiClient) -> None:
    body = {
        "nudges": [{"code": "A", "external_key": "run-7/1"}, {"code": "A", "external_key": "run-7/1"}, {"code": "B"}]
    }
    assert api.post("/nudges", body).json() == {"taken": 2, "known": 1}
    assert api.post("/nudges", body).json() == {"taken": 1, "known": 2}


@pytest.mark.parametrize("chat_first", [True, False])
def test_a_reported_nudge_and_its_message_count_once(api: ApiClient, acme: Tenant, chat_first: bool) -> None:
    messages = [
        {"role": "user", "content": "Fix it"},
        {"role": "assistant", "content": "I will."},
        nudge_message("ACME-01"),
        {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "name": "edit"}]},
        {"role": "tool", "content": "done", "tool_call_id": "1"},
    ]
    chat = {"chats": [exchange_chat(*messages, external_id="talk")]}
    report = {"nudges": [{"code": "ACME-01", "external_id": "talk", "turn": 0}]}
    for path, body in (
        [("/chats", chat), ("/nudges", report)] if chat_first else [("/nudges", report), ("/chats", chat)]
    ):
        assert api.post(path, body).status_code in (200, 201)
    with scope(tenant=acme):
        nudge = RecordedNudge.objects.get()
        assert (nudge.source, nudge.message, nudge.stage, nudge.outcome) == ("live", 2, "final", "acted")
    messages.append({"role": "assistant", "content": "Done."})
    api.post("/chats", {"chats": [exchange_chat(*messages, external_id="talk")]})
    with scope(tenant=acme):
        nudge = RecordedNudge.objects.get()
        assert nudge.chat_version is not None
        assert (nudge.source, nudge.chat_version.number) == ("live", 2)


@pytest.mark.parametrize(("field", "value"), [("chat", 10**9), ("version", 99)])
def test_a_report_of_something_unknown_is_refused_whole(api: ApiClient, acme: Tenant, field: str, value: int) -> None:
    answer = api.post("/nudges", {"nudges": [{"code": "A"}, {"code": "A", field: value}]})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["path"] == f"nudges[1].{field}"
    with scope(tenant=acme):
        assert not RecordedNudge.objects.exists()


# --- rules, releases, replays


def test_a_rule_from_draft_to_release_and_back(api: ApiClient, acme: Tenant) -> None:
    content = {"expression": "ctx.mutated", "prompt_en": "Check it."}
    made = api.post("/rules", {"code": "API-01", "content": content})
    assert made.status_code == 201
    assert made.json()["draft"]["revision"] == 1
    saved = api.send("PUT", "/rules/API-01/draft", {"revision": 1, "content": {"max_nudges": 2}})
    assert saved.json()["draft"]["content"]["max_nudges"] == 2
    conflict = api.send("PUT", "/rules/API-01/draft", {"revision": 1, "content": {"max_nudges": 3}})
    assert (conflict.status_code, conflict.json()["code"]) == (409, "conflict")
    published = api.post("/releases", {"rules": ["API-01"], "note": "first", "seen_release": 0})
    assert published.status_code == 201
    assert published.json()["rules"] == [{"position": 1, "code": "API-01", "version": 1, "mode": "live"}]
    stale = api.post("/releases", {"rules": ["API-01"], "note": "second", "seen_release": 0})
    assert (stale.status_code, stale.json()["code"]) == (409, "conflict")
    paused = api.post("/rules/API-01/mode", {"mode": "paused", "seen_release": 1})
    assert paused.json()["rules"][0]["mode"] == "paused"
    back = api.post("/releases/1/roll-back", {"seen_release": 2, "note": "back"})
    assert back.json()["release"]["number"] == 3
    assert [row["number"] for row in api.get("/releases").json()["items"]] == [3, 2, 1]
    assert [row["number"] for row in api.get("/rules/API-01/versions").json()["items"]] == [1]
    with scope(tenant=acme):
        assert "(key " in Entry.objects.filter(object_type="release").first().actor_label  # type: ignore[union-attr]


def test_publishing_what_is_broken_is_refused(api: ApiClient) -> None:
    api.post("/rules", {"code": "BAD", "content": {"expression": "ctx.mutatedd", "prompt_en": "x"}})
    answer = api.post("/releases", {"rules": ["BAD"], "note": "n", "seen_release": 0})
    assert (answer.status_code, answer.json()["code"]) == (422, "refused")
    assert answer.json()["detail"]
    found = api.post("/rules/check", {"expression": "ctx.mutatedd"}).json()
    assert (found["valid"], found["diagnostics"][0]["code"]) == (False, "unknown-field")


def test_a_replay_is_started_and_read(api: ApiClient, acme: Tenant) -> None:
    publish(acme, make_rule(acme, "ACME-01"))
    make_chat(acme)
    started = api.post("/replays", {"title": "from outside"})
    assert started.status_code == 202
    replay = started.json()["replay"]
    assert replay["status"] == "queued"
    assert [row["id"] for row in api.get("/replays").json()["items"]] == [replay["id"]]
    assert api.post(f"/replays/{replay['id']}/stop", None).json()["replay"]["status"] == "stopped"
    done = make_replay(acme, drafts=False)
    shown = api.get(f"/replays/{done.pk}").json()
    assert (shown["replay"]["status"], shown["rules"][0]["counts"]["fires"]) == ("done", 1)
    with scope(tenant=acme):
        assert Replay.objects.count() == 2


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"rules": "release"}, "release"),
        ({"rules": "release", "release": 9}, "release"),
        ({"scope": "search:9"}, "scope"),
        ({"scope": "x"}, "scope"),
    ],
)
def test_a_replay_of_nothing_is_refused(api: ApiClient, body: dict[str, Any], path: str) -> None:
    answer = api.post("/replays", body)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["path"] == path


def test_a_chat_is_rendered(api: ApiClient, acme: Tenant) -> None:
    chat = make_chat(acme)
    shown = api.post("/wrappers/ChatMLChatWrapper/render", {"chat": chat.pk, "nudge": "Go on."}).json()
    assert shown["problem"] == ""
    assert "<|im_start|>user\nGo on.<|im_end|>" in shown["text"]
    assert api.post("/wrappers/none/render", {"chat": chat.pk}).status_code == 404
    assert api.post("/wrappers/ChatMLChatWrapper/render", {"chat": 10**9}).json()["errors"][0]["path"] == "chat"
    keys = [row["key"] for row in api.get("/wrappers").json()["items"]]
    assert "ChatMLChatWrapper" in keys


def test_a_wrapper_from_draft_to_version(api: ApiClient) -> None:
    body = {"slug": "mine", "name": "Mine", "content": {"base": "ChatMLChatWrapper"}}
    made = api.post("/wrappers", body)
    assert (made.status_code, made.json()["revision"]) == (201, 1)
    saved = api.send("PUT", "/wrappers/mine/draft", {"revision": 1, "content": {"model_name": "small"}})
    assert saved.json()["content"]["model_name"] == "small"
    version = api.post("/wrappers/mine/versions", {"revision": 2, "note": "first"})
    assert (version.status_code, version.json()["wrapper"]["version"]) == (201, 1)
    assert api.get("/wrappers/mine").json()["content"]["base"] == "ChatMLChatWrapper"


def test_the_change_log_is_read_and_verified(api: ApiClient, acme: Tenant) -> None:
    publish(acme, make_rule(acme, "ACME-01"))
    items = api.get("/changes?object=release").json()["items"]
    assert [row["action"] for row in items] == ["release.publish"]
    assert items[0]["after"]["release"] == 1
    assert api.get("/changes/verification").json() == {"whole": True, "faults": []}
