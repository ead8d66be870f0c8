"""Every endpoint × every scope; keys that don't work; ids of another tenant; nothing without a scope."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import transaction
from django.test import Client
from django.utils import timezone
from django_scopes import scope

from chats.models import Chat, ImportJob
from chats.services.corpora import freeze
from chats.services.retention import delete_import
from chats.services.searches import save_search
from eleanor_site.api import api as ninja_api
from eleanor_site.audit.models import Entry
from eleanor_site.tenants.models import DEFAULT_SCOPES, APIKey, KeyScope, Tenant
from eleanor_site.tenants.services import make_api_key, revoke_api_key
from rules.services import proposals, reviewing, rule_tests, tools
from tests.api.conftest import ApiClient, key_for
from tests.factories import (
    exchange_chat,
    import_text,
    make_chat,
    make_replay,
    make_rule,
    make_schedule,
    make_wrapper,
    next_run,
    publish,
    some_author,
)

Ids = dict[str, Any]


@dataclass(frozen=True)
class Operation:
    """An endpoint with a body that it takes; `status` is what the right scope gets."""

    method: str
    path: str
    scope: str
    body: Any = None
    status: int = 200


CONTENT: dict[str, Any] = {"content": {"prompt_en": "Go on."}}
TOOL: dict[str, Any] = {"pattern": "run_*", "kind": "verify"}
POINT: dict[str, Any] = {"chat": "{chat}", "message": 1, "stage": "final"}
OPERATIONS = [
    Operation("GET", "/release", "rules:read"),
    Operation("POST", "/evaluate", "rules:read", {"context": {}}),
    Operation("POST", "/nudges", "nudges:write", {"nudges": [{"code": "A"}]}, 201),
    Operation("GET", "/nudges", "nudges:read"),
    Operation("GET", "/nudges/export", "nudges:read"),
    Operation("GET", "/nudges/days", "nudges:read"),
    Operation("GET", "/nudges/groups", "nudges:read"),
    Operation("GET", "/nudges/statistics", "nudges:read"),
    # releases
    Operation("GET", "/releases", "rules:read"),
    Operation("GET", "/releases/{number}", "rules:read"),
    Operation("POST", "/releases/undo", "rules:publish", {"seen_release": 99}, 409),
    Operation("GET", "/releases/{number}/firings", "nudges:read"),
    Operation("POST", "/releases", "rules:publish", {"rules": ["{code}"], "note": "n", "seen_release": 99}, 409),
    Operation("POST", "/releases/{number}/roll-back", "rules:publish", {"seen_release": 99}, 409),
    Operation("POST", "/rules/{code}/mode", "rules:publish", {"mode": "paused", "seen_release": 99}, 409),
    Operation("POST", "/rules/{code}/versions/{version}/roll-back", "rules:publish", {"seen_release": 99}, 409),
    Operation("POST", "/rules/order", "rules:publish", {"order": ["{code}"], "seen_release": 99}, 409),
    Operation("GET", "/proposals", "rules:read"),
    Operation("POST", "/proposals", "rules:write", {"rule": "{code}", "note": "n"}, 201),
    Operation("POST", "/proposals/open/rules", "rules:write", {"rules": ["{code}"]}, 201),
    Operation("PUT", "/proposals/open/order", "rules:publish", {"order": ["{code}"]}),
    Operation("GET", "/proposals/{proposal}", "rules:read"),
    Operation("GET", "/proposals/{proposal}/effect", "rules:read"),
    Operation("DELETE", "/proposals/{proposal}/rules/{code}", "rules:write", None, 204),
    Operation("DELETE", "/proposals/{proposal}/order", "rules:write", None, 204),
    Operation("POST", "/proposals/{proposal}/request", "rules:write", {"note": "n"}),
    Operation("POST", "/proposals/{proposal}/withdraw", "rules:write", None, 409),
    Operation("POST", "/proposals/{proposal}/approve", "rules:publish", {}, 409),
    Operation("POST", "/proposals/{proposal}/refuse", "rules:publish", {}, 409),
    Operation("POST", "/proposals/{proposal}/publish", "rules:publish", {"seen_release": 99, "note": "n"}, 409),
    # rules
    Operation("GET", "/rules", "rules:read"),
    Operation("POST", "/rules", "rules:write", {"code": "NEW", **CONTENT}, 201),
    Operation("GET", "/rules/catalogue", "rules:read"),
    Operation("POST", "/rules/catalogue", "rules:write", {"codes": ["EAI-GOV-07"]}, 201),
    Operation("POST", "/rules/check", "rules:read", {"expression": "true"}),
    Operation("POST", "/rules/check/effect", "rules:read", {"expression": "true"}),
    Operation("GET", "/rules/check/code?code=A", "rules:read"),
    Operation("GET", "/rules/check/completions?text=ctx.&at=4", "rules:read"),
    Operation("POST", "/rules/order/effect", "rules:read", {"order": ["{code}"]}),
    Operation("GET", "/rules/{code}", "rules:read"),
    Operation("GET", "/rules/{code}/versions", "rules:read"),
    Operation("GET", "/rules/{code}/versions/{version}", "rules:read"),
    Operation("GET", "/rules/{code}/comparison?a=1&b=1", "rules:read"),
    Operation("PUT", "/rules/{code}/draft", "rules:write", {"revision": 0, **CONTENT}),
    Operation("DELETE", "/rules/{code}/draft", "rules:write", None, 204),
    Operation("POST", "/rules/{code}/draft/restore", "rules:write", {"number": 0, "revision": 0}),
    Operation("POST", "/rules/{code}/archive", "rules:write", None, 422),
    Operation("POST", "/rules/{code}/restore", "rules:write"),
    Operation("GET", "/rules/{code}/effect", "rules:read"),
    Operation("GET", "/rules/{code}/effect/points", "rules:read"),
    Operation("GET", "/rules/{code}/effect/points/{point}", "rules:read"),
    Operation("GET", "/rules/{code}/effect/days", "rules:read"),
    Operation("GET", "/rules/{code}/tests", "rules:read"),
    Operation("POST", "/rules/{code}/tests", "rules:write", {"context": {}, "should_fire": False}, 201),
    Operation("DELETE", "/rules/{code}/tests/{test}", "rules:write", None, 204),
    Operation("GET", "/rules/{code}/gates", "rules:read"),
    Operation("GET", "/tools", "rules:read"),
    Operation("POST", "/tools", "rules:write", TOOL, 201),
    Operation("GET", "/tools/use", "rules:read"),
    Operation("POST", "/tools/effect", "rules:read", {"action": "add", "entry": TOOL}),
    Operation("PUT", "/tools/{tool}", "rules:write", TOOL),
    Operation("DELETE", "/tools/{tool}", "rules:write", None, 204),
    Operation("POST", "/tools/{tool}/move", "rules:write", {"step": 1}),
    # replays
    Operation("GET", "/replays", "rules:read"),
    Operation("POST", "/replays", "replays:run", {}, 202),
    Operation("POST", "/replays/estimate", "rules:read", {}),
    Operation("GET", "/replays/comparison?a=REPLAY&b=REPLAY", "rules:read"),
    Operation("GET", "/replays/comparison/points?a=REPLAY&b=REPLAY", "rules:read"),
    Operation("GET", "/replays/schedules", "rules:read"),
    Operation("POST", "/replays/schedules", "replays:run", {"replay": "{replay}", "hour": 3}, 201),
    Operation("GET", "/replays/schedules/{schedule}", "rules:read"),
    Operation("DELETE", "/replays/schedules/{schedule}", "replays:run", None, 204),
    Operation("POST", "/replays/schedules/{schedule}/pause", "replays:run"),
    Operation("POST", "/replays/schedules/{schedule}/resume", "replays:run"),
    Operation("PUT", "/replays/schedules/{schedule}/runs/{run}/baseline", "replays:run"),
    Operation("GET", "/replays/{replay}", "rules:read"),
    Operation("POST", "/replays/{replay}/stop", "replays:run"),
    Operation("POST", "/replays/{replay}/resume", "replays:run"),
    Operation("PUT", "/replays/{replay}/baseline", "replays:run"),
    Operation("DELETE", "/replays/{replay}/baseline", "replays:run"),
    Operation("GET", "/replays/{replay}/findings", "rules:read"),
    Operation("GET", "/replays/{replay}/findings/counts", "rules:read"),
    Operation("GET", "/replays/{replay}/export", "rules:read"),
    Operation("GET", "/replays/{replay}/manifest", "rules:read"),
    Operation("GET", "/replays/{replay}/aftermath", "nudges:read"),
    Operation("POST", "/replays/{replay}/aftermath", "nudges:read"),
    # chats
    Operation("GET", "/chats", "chats:read"),
    Operation("GET", "/chats/export", "chats:read"),
    Operation("GET", "/chats/{chat}", "chats:read"),
    Operation("POST", "/chats", "chats:write", {"chats": [exchange_chat(external_id="new")]}),
    Operation("DELETE", "/chats/{chat}", "chats:delete"),
    Operation("GET", "/chats/{chat}/points", "chats:read"),
    Operation("GET", "/chats/{chat}/points/{place}", "chats:read"),
    Operation("POST", "/chats/{chat}/redaction/preview", "chats:read", {"messages": [0]}),
    Operation("POST", "/chats/{chat}/redaction", "chats:delete", {"messages": [0], "version": 1}),
    Operation("GET", "/imports", "chats:read"),
    Operation("POST", "/imports", "chats:write", b"{}", 202),
    Operation("GET", "/imports/{job}", "chats:read"),
    Operation("POST", "/imports/{job}/run", "chats:write", {}, 202),
    Operation("GET", "/imports/{job}/contents", "chats:read"),
    Operation("DELETE", "/imports/{job}", "chats:delete"),
    Operation("GET", "/imports/{deleted}/deletion", "chats:read"),
    Operation("GET", "/searches", "chats:read"),
    Operation("POST", "/searches", "chats:write", {"name": "N"}, 201),
    Operation("GET", "/searches/{search}", "chats:read"),
    Operation("DELETE", "/searches/{search}", "chats:write", None, 204),
    Operation("GET", "/corpora", "chats:read"),
    Operation("POST", "/corpora", "chats:write", {"name": "N"}, 201),
    Operation("GET", "/corpora/{corpus}", "chats:read"),
    Operation("GET", "/corpora/{corpus}/check", "chats:read"),
    Operation("GET", "/corpora/{corpus}/chats", "chats:read"),
    Operation("GET", "/corpora/{corpus}/export", "chats:read"),
    # review
    Operation("GET", "/verdicts", "nudges:read"),
    Operation("POST", "/verdicts", "nudges:write", {**POINT, "value": "unsure"}, 201),
    Operation("GET", "/verdicts/quality", "nudges:read"),
    Operation("DELETE", "/verdicts/{verdict}", "nudges:write"),
    Operation("GET", "/queues", "nudges:read"),
    Operation("POST", "/queues", "nudges:write", {"code": "{code}"}, 201),
    Operation("GET", "/queues/{queue}", "nudges:read"),
    Operation("GET", "/queues/{queue}/items", "nudges:read"),
    Operation("GET", "/queues/{queue}/agreement", "nudges:read"),
    # wrappers
    Operation("GET", "/wrappers", "wrappers:read"),
    Operation("GET", "/wrappers/{slug}", "wrappers:read"),
    Operation(
        "POST", "/wrappers", "wrappers:write", {"slug": "new-one", "name": "N", "content": {"template": "x"}}, 201
    ),
    Operation("PUT", "/wrappers/{slug}/draft", "wrappers:write", {"revision": 2, "content": {"model_name": "y"}}),
    Operation("DELETE", "/wrappers/{slug}/draft", "wrappers:write", None, 204),
    Operation("POST", "/wrappers/{slug}/draft/rebase", "wrappers:write"),
    Operation("POST", "/wrappers/{slug}/archive", "wrappers:write"),
    Operation("POST", "/wrappers/{slug}/restore", "wrappers:write"),
    Operation("GET", "/wrappers/{slug}/versions", "wrappers:read"),
    Operation("POST", "/wrappers/{slug}/versions", "wrappers:write", {"revision": 2, "note": "n"}, 201),
    Operation("GET", "/wrappers/{slug}/versions/{version}", "wrappers:read"),
    Operation("POST", "/wrappers/{slug}/versions/{version}/roll-back", "wrappers:write", {}, 422),
    Operation("GET", "/wrappers/{slug}/comparison?a=1&b=draft", "wrappers:read"),
    Operation("POST", "/wrappers/which", "wrappers:read", {"file_name": "qwen3-8b.gguf"}),
    Operation("POST", "/wrappers/preview", "wrappers:read", {"wrappers": ["{slug}"], "conversation": exchange_chat()}),
    Operation("POST", "/wrappers/preview/lint", "wrappers:read", {"wrapper": "{slug}"}),
    Operation("POST", "/wrappers/{slug}/render", "wrappers:read", {"conversation": exchange_chat()}),
    # overview and change log
    Operation("GET", "/attention", "rules:read"),
    Operation("GET", "/changes", "audit:read"),
    Operation("GET", "/changes/export", "audit:read"),
    Operation("GET", "/changes/verification", "audit:read"),
    Operation("GET", "/changes/{change}", "audit:read"),
]


@pytest.fixture
def ids(acme: Tenant, elsewhere: Tenant) -> dict[str, Ids]:
    return {"acme": furnish(acme, 1), "elsewhere": furnish(elsewhere, 3)}


def furnish(tenant: Tenant, releases: int) -> Ids:
    """One of everything; ids of the second tenant are higher than those of the first."""
    code, slug, by = f"{tenant.slug.upper()}-01", f"{tenant.slug}-wrapper", some_author(tenant)
    chats = [make_chat(tenant, external_id=f"{tenant.slug}-{n}") for n in range(releases)]
    rule = make_rule(tenant, code)
    publish(tenant, rule)
    for n in range(1, releases):
        publish(tenant, make_rule(tenant, f"{code}-{n}"))
    replay = make_replay(tenant)
    run = next_run(tenant, make_schedule(tenant, replay).pk)
    make_wrapper(tenant, slug)
    with scope(tenant=tenant):
        chat = chats[-1]
        version = chat.versions.get()
        proposal = proposals.add_to_open(tenant=tenant, by=by, rules=[rule])
        proposals.set_order(tenant=tenant, by=by, order=[rule.pk])
        judged = reviewing.JudgedPoint(version, 1, "final", 0, code, 1)
        return {
            "chat": chat.pk,
            "code": code,
            "number": releases,
            "version": 1,
            "replay": replay.pk,
            "schedule": run.schedule_id,
            "run": run.pk,
            "slug": slug,
            "proposal": proposal.pk,
            "point": f"{chat.pk}.1.1-final",
            "place": "1-final",
            "tool": tools.add_entry(tenant=tenant, values={"pattern": "x", "kind": "read"}, by=by).pk,
            "test": rule_tests.add_context(
                tenant=tenant, rule=rule, by=by, context="{}", stage="final", should_fire=False
            ).pk,
            "job": ImportJob.objects.latest("pk").pk,
            "deleted": delete_import(tenant=tenant, by=by, job=import_text(tenant, "{}")).number,
            "search": save_search(tenant=tenant, by=by, name=f"of {tenant.slug}", query="lang=en").pk,
            "corpus": freeze(tenant=tenant, by=by, name=f"of {tenant.slug}", chats=Chat.objects.all()).pk,
            "verdict": reviewing.judge(tenant=tenant, by=by, point=judged, value="right").pk,
            "queue": reviewing.queue_of_firings(
                tenant=tenant, by=by, name=f"of {tenant.slug}", replay=replay, code=code, limit=5
            ).pk,
            "change": Entry.objects.count(),
        }


UNKNOWN: Ids = {
    **dict.fromkeys(
        (
            "chat",
            "replay",
            "schedule",
            "run",
            "proposal",
            "tool",
            "test",
            "job",
            "search",
            "corpus",
            "verdict",
            "queue",
            "change",
            "deleted",
        ),
        10**9,
    ),
    "code": "NO-SUCH",
    "number": 9999,
    "version": 9999,
    "slug": "no-such",
    "point": f"{10**9}.1.1-final",
    "place": "1-final",
}


def path_of(operation: Operation, ids: Ids) -> str:
    path = re.sub(r"{(\w+)}", lambda found: str(ids[found[1]]), operation.path)
    return path.replace("REPLAY", str(ids["replay"]))


def body_of(body: Any, ids: Ids) -> Any:
    """The body with ids in the places that name one."""
    if isinstance(body, dict):
        return {key: body_of(value, ids) for key, value in body.items()}
    if isinstance(body, list):
        return [body_of(value, ids) for value in body]
    named = re.fullmatch(r"{(\w+)}", body) if isinstance(body, str) else None
    return ids[named[1]] if named else body


def send(client: ApiClient, operation: Operation, ids: Ids) -> Any:
    """The answer; what the request changed is rolled back, so that the next one finds the same rows."""
    with transaction.atomic():
        answer = client.send(operation.method, path_of(operation, ids), body_of(operation.body, ids))
        transaction.set_rollback(True)
    return answer


def test_every_endpoint_has_a_row() -> None:
    described = {
        (method.upper(), re.sub(r"{\w+}", "{}", path.removeprefix("/api/v1")))
        for path, operations in ninja_api.get_openapi_schema()["paths"].items()
        for method in operations
    }
    assert described == {(o.method, plain(o)) for o in OPERATIONS}


def plain(operation: Operation) -> str:
    """The path without the names of its ids, and without a query."""
    return re.sub(r"{\w+}", "{}", operation.path.partition("?")[0])


def test_the_description_names_the_scope() -> None:
    schema = ninja_api.get_openapi_schema()
    assert schema["openapi"] == "3.1.0"
    for operation in OPERATIONS:
        [found] = [
            described[operation.method.lower()]
            for path, described in schema["paths"].items()
            if re.sub(r"{\w+}", "{}", path) == f"/api/v1{plain(operation)}" and operation.method.lower() in described
        ]
        assert found["x-key-scope"] == operation.scope
        assert found["security"] == [{"KeyAuth": []}]


def test_scopes(acme: Tenant, ids: dict[str, Ids], subtests: pytest.Subtests) -> None:
    alone = {one: ApiClient(key_for(acme, one)) for one in KeyScope.values}
    without = {one: ApiClient(key_for(acme, *(set(KeyScope.values) - {one}))) for one in KeyScope.values}
    for operation in OPERATIONS:
        with subtests.test(f"{operation.method} {operation.path}"):
            answer = send(alone[operation.scope], operation, ids["acme"])
            assert answer.status_code == operation.status, answer.content
            answer = send(without[operation.scope], operation, ids["acme"])
            assert (answer.status_code, answer.json()["code"]) == (403, "scope_missing")
            assert answer.json()["scope"] == operation.scope


def test_without_a_working_key(acme: Tenant, ids: dict[str, Ids], subtests: pytest.Subtests) -> None:
    good = key_for(acme)
    keys = ["", "x", good[:-1], good[:-1] + ("A" if good[-1] != "A" else "B"), good.upper(), f"{good}\x00", "é" * 50]
    for n, operation in enumerate(OPERATIONS):
        with subtests.test(f"{operation.method} {operation.path}"):
            bodies = set()
            # How keys are read is no matter of the endpoint.
            for key in keys if n < 5 else keys[2:3]:
                answer = send(ApiClient(key), operation, ids["acme"])
                assert (answer.status_code, answer["WWW-Authenticate"]) == (401, "Bearer")
                bodies.add(re.sub(r'"request_id": "[^"]*"', "", answer.content.decode()))
            assert len(bodies) == 1


def test_a_session_is_no_key(admin: Client, ids: dict[str, Ids]) -> None:
    assert admin.get("/api/v1/release").status_code == 401
    assert admin.post("/api/v1/nudges", {"nudges": []}, content_type="application/json").status_code == 401


def test_ids_of_another_tenant_are_unknown(acme: Tenant, ids: dict[str, Ids], subtests: pytest.Subtests) -> None:
    client = ApiClient(key_for(acme))
    for operation in OPERATIONS:
        if "{" not in operation.path:
            continue
        with subtests.test(f"{operation.method} {operation.path}"):
            foreign = send(client, operation, ids["elsewhere"])
            missing = send(client, operation, UNKNOWN)
            assert foreign.status_code == missing.status_code == 404
            assert without_request_id(foreign) == without_request_id(missing)


def without_request_id(answer: Any) -> dict[str, Any]:
    return {key: value for key, value in answer.json().items() if key != "request_id"}


@pytest.mark.parametrize(
    "path", ["/chats/0", "/chats/-1", f"/chats/{10**30}", "/chats/x", "/rules/%00", "/nothing", "/"]
)
def test_what_can_be_no_id_is_unknown(acme: Tenant, path: str) -> None:
    answer = ApiClient(key_for(acme)).get(path)
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/problem+json")
    assert answer.json()["code"] == "not_found"


def test_rows_of_another_tenant_never_come_in_lists(acme: Tenant, ids: dict[str, Ids]) -> None:
    client = ApiClient(key_for(acme))
    lists = [o.path for o in OPERATIONS if o.method == "GET" and "{" not in o.path and "REPLAY" not in o.path]
    for path in lists:
        answer = client.get(path)
        text = (answer.getvalue() if answer.streaming else answer.content).decode()
        assert "ELSEWHERE" not in text, path
        assert "elsewhere" not in text, path


def test_a_key_works_until_it_is_revoked_or_expires(acme: Tenant) -> None:
    by = some_author(acme)
    soon = timezone.now() + timedelta(hours=1)
    key, text = make_api_key(tenant=acme, by=by, name="short", scopes=["rules:read"], expires_at=soon)
    client = ApiClient(text.text)
    assert client.get("/release").status_code == 200
    with time_machine.travel(soon + timedelta(seconds=1)):
        assert client.get("/release").status_code == 401
    revoke_api_key(tenant=acme, key=key, by=by)
    assert client.get("/release").status_code == 401
    with scope(tenant=acme):
        assert list(Entry.objects.filter(object_type="key").order_by("number").values_list("action", flat=True)) == [
            "key.make",
            "key.revoke",
        ]


def test_only_a_hash_of_the_key_is_kept(acme: Tenant) -> None:
    key, text = make_api_key(tenant=acme, by=some_author(acme), name="x", scopes=["rules:read"])
    stored = APIKey.objects.filter(pk=key.pk).values().get()
    assert text.secret not in str(stored)
    with scope(tenant=acme):
        assert text.secret not in str(list(Entry.objects.values()))


def test_the_last_use_is_visible(acme: Tenant) -> None:
    text = key_for(acme, "rules:read")
    assert APIKey.objects.get().last_used_at is None
    ApiClient(text).get("/release")
    assert APIKey.objects.get().last_used_at is not None


def test_publishing_is_not_in_the_default_set() -> None:
    assert KeyScope.RULES_PUBLISH not in DEFAULT_SCOPES


def test_a_used_up_allowance_says_when_to_come_back(acme: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    from eleanor_site import api_access
    from eleanor_site.limits import Allowance

    monkeypatch.setattr(api_access, "API", Allowance("api-test", 3, 6))
    client = ApiClient(key_for(acme, "rules:read"))
    answers = [client.get("/release") for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert answers[3].json()["code"] == "too_many_requests"
    assert 1 <= int(answers[3]["Retry-After"]) <= 10


def test_a_wrong_method_is_told(acme: Tenant) -> None:
    answer = ApiClient(key_for(acme)).send("PATCH", "/chats", {})
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
    assert answer["Allow"]


@pytest.mark.parametrize("path", ["/release", "/chats/0", "/no-such-endpoint"])
def test_every_answer_names_its_request(acme: Tenant, path: str) -> None:
    answers = [ApiClient(key_for(acme)).get(path) for _ in range(2)]
    ids = [answer["X-Request-ID"] for answer in answers]
    assert len(set(ids)) == 2
    if answers[0].status_code >= 400:
        assert [answer.json()["request_id"] for answer in answers] == ids
