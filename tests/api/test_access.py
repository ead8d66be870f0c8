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

from chats.services.wrappers import create_wrapper
from eleanor_site.api import api as ninja_api
from eleanor_site.audit.models import Entry
from eleanor_site.tenants.models import DEFAULT_SCOPES, APIKey, KeyScope, Tenant
from eleanor_site.tenants.services import make_api_key, revoke_api_key
from tests.api.conftest import ApiClient, key_for
from tests.factories import exchange_chat, make_chat, make_replay, make_rule, publish, some_author

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
OPERATIONS = [
    Operation("GET", "/release", "rules:read"),
    Operation("POST", "/evaluate", "rules:read", {"context": {}}),
    Operation("POST", "/nudges", "nudges:write", {"nudges": [{"code": "A"}]}, 201),
    Operation("GET", "/nudges", "nudges:read"),
    Operation("GET", "/releases", "rules:read"),
    Operation("GET", "/releases/{number}", "rules:read"),
    Operation("POST", "/releases", "rules:publish", {"rules": ["{code}"], "note": "n", "seen_release": 0}, 409),
    Operation("POST", "/releases/{number}/roll-back", "rules:publish", {"seen_release": 99}, 409),
    Operation("POST", "/rules/{code}/mode", "rules:publish", {"mode": "paused", "seen_release": 99}, 409),
    Operation("GET", "/rules", "rules:read"),
    Operation("POST", "/rules", "rules:write", {"code": "NEW", **CONTENT}, 201),
    Operation("POST", "/rules/check", "rules:read", {"expression": "true"}),
    Operation("GET", "/rules/{code}", "rules:read"),
    Operation("GET", "/rules/{code}/versions", "rules:read"),
    Operation("PUT", "/rules/{code}/draft", "rules:write", {"revision": 0, **CONTENT}),
    Operation("DELETE", "/rules/{code}/draft", "rules:write", None, 204),
    Operation("GET", "/tools", "rules:read"),
    Operation("GET", "/replays", "rules:read"),
    Operation("POST", "/replays", "replays:run", {}, 202),
    Operation("GET", "/replays/{replay}", "rules:read"),
    Operation("POST", "/replays/{replay}/stop", "replays:run"),
    Operation("POST", "/replays/{replay}/resume", "replays:run"),
    Operation("GET", "/replays/{replay}/findings", "rules:read"),
    Operation("GET", "/chats", "chats:read"),
    Operation("GET", "/chats/{chat}", "chats:read"),
    Operation("POST", "/chats", "chats:write", {"chats": [exchange_chat(external_id="new")]}),
    Operation("GET", "/wrappers", "wrappers:read"),
    Operation("GET", "/wrappers/{slug}", "wrappers:read"),
    Operation(
        "POST", "/wrappers", "wrappers:write", {"slug": "new-one", "name": "N", "content": {"template": "x"}}, 201
    ),
    Operation("PUT", "/wrappers/{slug}/draft", "wrappers:write", {"revision": 1, "content": {"template": "y"}}),
    Operation("POST", "/wrappers/{slug}/versions", "wrappers:write", {"revision": 1, "note": "n"}, 201),
    Operation("POST", "/wrappers/{slug}/render", "wrappers:read", {"conversation": exchange_chat()}),
    Operation("GET", "/changes", "audit:read"),
    Operation("GET", "/changes/verification", "audit:read"),
]


@pytest.fixture
def ids(acme: Tenant, elsewhere: Tenant) -> dict[str, Ids]:
    return {"acme": furnish(acme, 1), "elsewhere": furnish(elsewhere, 3)}


def furnish(tenant: Tenant, releases: int) -> Ids:
    code = f"{tenant.slug.upper()}-01"
    chat = make_chat(tenant, external_id=tenant.slug)
    publish(tenant, make_rule(tenant, code))
    for n in range(1, releases):
        publish(tenant, make_rule(tenant, f"{code}-{n}"))
    replay = make_replay(tenant)
    with scope(tenant=tenant):
        content = {"template": "{{ messages }}"}
        slug = f"{tenant.slug}-wrapper"
        create_wrapper(tenant=tenant, by=some_author(tenant), name="W", slug=slug, content=content)
    return {"chat": chat.pk, "code": code, "number": releases, "replay": replay.pk, "slug": slug}


def path_of(operation: Operation, ids: Ids) -> str:
    return re.sub(r"{(\w+)}", lambda found: str(ids[found[1]]), operation.path)


def body_of(operation: Operation, ids: Ids) -> Any:
    if operation.path == "/releases" and operation.body:
        return {**operation.body, "rules": [ids["code"]]}
    return operation.body


def send(client: ApiClient, operation: Operation, ids: Ids) -> Any:
    """The answer; what the request changed is rolled back, so that the next one finds the same rows."""
    with transaction.atomic():
        answer = client.send(operation.method, path_of(operation, ids), body_of(operation, ids))
        transaction.set_rollback(True)
    return answer


def test_every_endpoint_has_a_row() -> None:
    described = {
        (method.upper(), re.sub(r"{\w+}", "{}", path.removeprefix("/api/v1")))
        for path, operations in ninja_api.get_openapi_schema()["paths"].items()
        for method in operations
    }
    assert described == {(o.method, re.sub(r"{\w+}", "{}", o.path)) for o in OPERATIONS}


def test_the_description_names_the_scope() -> None:
    schema = ninja_api.get_openapi_schema()
    assert schema["openapi"] == "3.1.0"
    for operation in OPERATIONS:
        plain = re.sub(r"{\w+}", "{}", operation.path)
        [found] = [
            described[operation.method.lower()]
            for path, described in schema["paths"].items()
            if re.sub(r"{\w+}", "{}", path) == f"/api/v1{plain}" and operation.method.lower() in described
        ]
        assert found["x-key-scope"] == operation.scope
        assert found["security"] == [{"KeyAuth": []}]


def test_scopes(acme: Tenant, ids: dict[str, Ids], subtests: pytest.Subtests) -> None:
    clients = {one: ApiClient(key_for(acme, one)) for one in KeyScope.values}
    for operation in OPERATIONS:
        with subtests.test(f"{operation.method} {operation.path}"):
            for held, client in clients.items():
                answer = send(client, operation, ids["acme"])
                if held == operation.scope:
                    assert answer.status_code == operation.status, answer.content
                else:
                    assert (answer.status_code, answer.json()["code"]) == (403, "scope_missing"), held
                    assert answer.json()["scope"] == operation.scope


def test_without_a_working_key(acme: Tenant, ids: dict[str, Ids], subtests: pytest.Subtests) -> None:
    good = key_for(acme)
    keys = ["", "x", good[:-1], good[:-1] + ("A" if good[-1] != "A" else "B"), good.upper(), f"{good}\x00", "é" * 50]
    for operation in OPERATIONS:
        with subtests.test(f"{operation.method} {operation.path}"):
            bodies = set()
            for key in keys:
                answer = send(ApiClient(key), operation, ids["acme"])
                assert (answer.status_code, answer["WWW-Authenticate"]) == (401, "Bearer")
                bodies.add(re.sub(r'"request_id": "[^"]*"', "", answer.content.decode()))
            assert len(bodies) == 1


def test_a_session_is_no_key(admin: Client, ids: dict[str, Ids]) -> None:
    assert admin.get("/api/v1/release").status_code == 401
    assert admin.post("/api/v1/nudges", {"nudges": []}, content_type="application/json").status_code == 401


def test_ids_of_another_tenant_are_unknown(acme: Tenant, ids: dict[str, Ids], subtests: pytest.Subtests) -> None:
    client = ApiClient(key_for(acme))
    unknown: Ids = {"chat": 10**9, "code": "NO-SUCH", "number": 9999, "replay": 10**9, "slug": "no-such"}
    for operation in OPERATIONS:
        if "{" not in operation.path:
            continue
        with subtests.test(f"{operation.method} {operation.path}"):
            foreign = send(client, operation, ids["elsewhere"])
            missing = send(client, operation, unknown)
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
    for path in ("/chats", "/rules", "/replays", "/releases", "/wrappers", "/nudges", "/changes?limit=200", "/release"):
        text = client.get(path).content.decode()
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
