"""Bodies that nobody should send: one clear problem each, nothing half-written, never a failure of ours."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.conf import settings
from django_scopes import scope

from chats.models import Chat
from eleanor_site.tenants.models import Tenant
from rules.models import RecordedNudge
from tests.api.conftest import ApiClient
from tests.factories import exchange_chat

ENDPOINTS = [
    *("/evaluate", "/nudges", "/chats", "/rules", "/replays", "/releases", "/rules/check", "/wrappers"),
    *("/searches", "/corpora", "/tools", "/verdicts", "/queues", "/proposals", "/rules/check/effect"),
    *("/wrappers/preview", "/tools/effect", "/rules/order", "/replays/schedules"),
]


@pytest.mark.parametrize("path", ENDPOINTS)
@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"\xff\xfe",
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b'{"a": 1e999}',
        b'{"a": ' + b"9" * 5000 + b"}",
        b'{"a": 1, "a": 2}',
        b"[" * 100_000,
        b'{"a":' * 100 + b"1" + b"}" * 100,
        b"\xef\xbb\xbf{}",
        b"'single'",
        b'{"a": "tab\there"}',
    ],
    ids=lambda body: body[:14].decode("latin-1"),
)
def test_what_is_no_json(api: ApiClient, path: str, body: bytes) -> None:
    answer = api.post(path, body)
    assert answer.status_code == 400
    assert answer.json()["code"] == "malformed_json"


@pytest.mark.parametrize("path", ENDPOINTS)
@pytest.mark.parametrize("body", [None, [], "text", 7, True, {"unknown": 1}])
def test_what_is_no_object_of_ours(api: ApiClient, path: str, body: Any) -> None:
    answer = api.post(path, body)
    assert answer.status_code == (202 if path == "/replays" and body == {} else 422)


@pytest.mark.parametrize("text", ["a\x00b", "a\ud800b"])
@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/evaluate", {"context": {"final_text": "TEXT"}}, "context.final_text"),
        ("/evaluate", {"batch": [{"context": {"nudges": {"TEXT": 1}}}]}, "batch[0].context.nudges.TEXT"),
        ("/nudges", {"nudges": [{"code": "A"}, {"code": "TEXT"}]}, "nudges[1].code"),
        (
            "/chats",
            {"chats": [exchange_chat({"role": "user", "content": "TEXT"})]},
            "chats[0].chat.messages[0].content",
        ),
        ("/rules", {"code": "A", "content": {"prompt_en": "TEXT"}}, "content.prompt_en"),
        ("/rules/check", {"expression": "TEXT"}, "expression"),
        ("/replays", {"title": "TEXT"}, "title"),
        ("/replays/schedules", {"replay": 1, "hour": 3, "name": "TEXT"}, "name"),
        ("/wrappers", {"slug": "a", "name": "TEXT", "content": {}}, "name"),
        ("/wrappers/preview/lint", {"content": {"template": "TEXT"}}, "content.template"),
        ("/wrappers/which", {"tokenizer_config": "TEXT"}, "tokenizer_config"),
        ("/searches", {"name": "A", "filters": {"q": "TEXT"}}, "filters.q"),
        ("/corpora", {"name": "TEXT"}, "name"),
        ("/tools", {"pattern": "TEXT", "kind": "read"}, "pattern"),
        ("/verdicts", {"chat": 1, "message": 1, "stage": "final", "value": "right", "note": "TEXT"}, "note"),
        ("/queues", {"code": "A", "name": "TEXT"}, "name"),
        ("/proposals", {"rule": "A", "note": "TEXT"}, "note"),
        ("/rules/check/effect", {"expression": "TEXT"}, "expression"),
    ],
)
def test_text_that_cannot_be_stored_names_the_field(
    api: ApiClient, acme: Tenant, path: str, body: Any, field: str, text: str
) -> None:
    sent = json.dumps(body).replace("TEXT", json.dumps(text)[1:-1])
    answer = api.post(path, sent.encode())
    assert answer.status_code == 422
    [error] = answer.json()["errors"]
    assert error["code"] == "unstorable_character"
    assert error["path"].replace("\\ud800", "\ud800").replace(text, "TEXT") == field
    with scope(tenant=acme):
        assert not Chat.objects.exists()
        assert not RecordedNudge.objects.exists()


def test_a_parameter_with_a_nul_is_named(api: ApiClient) -> None:
    answer = api.get("/chats?model=a%00b")
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, "model")


def test_a_body_over_the_limit_is_not_read(api: ApiClient, acme: Tenant) -> None:
    limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    text = "x" * limit
    answer = api.post("/chats", {"chats": [exchange_chat({"role": "user", "content": text})]})
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    with scope(tenant=acme):
        assert not Chat.objects.exists()


def test_a_body_over_the_upload_limit_is_a_problem_document(api: ApiClient) -> None:
    answer = api.client.generic(
        "POST",
        "/api/v1/chats",
        b"{}",
        content_type="application/json",
        headers={"Authorization": f"Bearer {api.key}"},
        CONTENT_LENGTH=str(settings.UPLOAD_LIMIT * 2),
    )
    assert (answer.status_code, answer["Content-Type"]) == (413, "application/problem+json")


@pytest.mark.parametrize("count", [1001, 5000])
def test_a_batch_over_the_limit_is_refused(api: ApiClient, acme: Tenant, count: int) -> None:
    assert api.post("/evaluate", {"batch": [{"context": {}}] * count}).status_code == 422
    assert api.post("/nudges", {"nudges": [{"code": "A"}] * count}).status_code == 422
    with scope(tenant=acme):
        assert not RecordedNudge.objects.exists()


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": "", "created_at": "0001-01-01T00:00:00+14:00"},
        {"role": "assistant", "content": "", "created_at": "9999-12-31T23:59:59-14:00"},
        {"role": "assistant", "content": "", "exit_code": 10**60},
        {"role": "assistant", "content": "", "model": "m" * 5000},
        {"role": "", "content": ""},
        {"role": "user", "content": "", "nudge_code": "c" * 500},
        {"role": "assistant", "content": "", "tool_calls": [{"name": "", "arguments_raw": "{"}]},
        {"role": "assistant", "content": "", "usage": {"a": [[[1e-300]]]}},
    ],
)
def test_odd_messages_are_stored_or_refused_never_a_failure(api: ApiClient, message: dict[str, Any]) -> None:
    chat = exchange_chat(
        {"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}, message, external_id="e" * 900
    )
    chat["step_budget"] = 10**40
    answer = api.post("/chats", {"chats": [chat]})
    assert answer.status_code in (200, 422), answer.content
    assert api.post("/evaluate", {"conversation": chat, "points": "all"}).status_code in (200, 422)


def test_a_time_without_a_place_in_utc_is_taken_as_now(api: ApiClient) -> None:
    body = {
        "nudges": [{"code": "A", "at": "0001-01-01T00:00:00+14:00"}, {"code": "A", "at": "9999-12-31T23:59:59-14:00"}]
    }
    assert api.post("/nudges", body).status_code == 201
