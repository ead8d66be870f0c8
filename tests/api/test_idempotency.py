"""The same request under one key is done once; whoever else uses the key knows nothing of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from django_scopes import scope

from eleanor_site.idempotency import DEAD_AFTER
from eleanor_site.tenants.models import APIKey, IdempotentAnswer, Tenant
from eleanor_site.tenants.services import forget_old_answers
from rules.models import RecordedNudge
from tests.api.conftest import ApiClient, key_for

BODY: dict[str, Any] = {"nudges": [{"code": "A"}]}


def count(tenant: Tenant) -> int:
    with scope(tenant=tenant):
        return RecordedNudge.objects.count()


def test_the_same_request_again_gets_the_same_answer(api: ApiClient, acme: Tenant) -> None:
    first = api.post("/nudges", BODY, Idempotency_Key="one")
    again = api.post("/nudges", BODY, Idempotency_Key="one")
    assert (again.status_code, again.content) == (first.status_code, first.content) == (201, first.content)
    assert again["Idempotency-Replayed"] == "true"
    assert "Idempotency-Replayed" not in first
    assert count(acme) == 1


def test_another_body_or_address_under_the_key_is_refused(api: ApiClient, acme: Tenant) -> None:
    api.post("/nudges", BODY, Idempotency_Key="one")
    for path, body in [("/nudges", {"nudges": [{"code": "B"}]}), ("/chats", BODY)]:
        answer = api.post(path, body, Idempotency_Key="one")
        assert answer.status_code == 422
    assert api.post("/nudges", {"nudges": [{"code": "B"}]}, Idempotency_Key="one").json()["code"] == "key_reused"
    assert count(acme) == 1


def test_while_the_first_is_at_work_the_second_waits(api: ApiClient, acme: Tenant) -> None:
    at_work(acme, began=timezone.now())
    answer = api.post("/nudges", BODY, Idempotency_Key="one")
    assert (answer.status_code, answer.json()["code"]) == (409, "in_progress")
    assert answer["Retry-After"] == "1"
    assert count(acme) == 0


def test_a_request_that_died_is_taken_over(api: ApiClient, acme: Tenant) -> None:
    at_work(acme, began=timezone.now() - DEAD_AFTER - timedelta(seconds=1))
    assert api.post("/nudges", BODY, Idempotency_Key="one").status_code == 201
    assert count(acme) == 1


def at_work(tenant: Tenant, began: Any) -> None:
    """A row as a request that hasn't answered yet leaves it."""
    with scope(tenant=tenant):
        made = ApiClient(key_for(tenant)).post("/nudges", BODY, Idempotency_Key="one")
        assert made.status_code == 201
        row = IdempotentAnswer.objects.get()
        key = APIKey.objects.filter(tenant=tenant).order_by("pk").first()
        assert key is not None
        IdempotentAnswer.objects.filter(pk=row.pk).update(api_key=key, status=None, body="", began_at=began)
        RecordedNudge.objects.all().delete()


def test_a_refused_request_frees_its_key(api: ApiClient, acme: Tenant) -> None:
    refused = {"nudges": [{"code": "A", "chat": 10**9}]}
    assert api.post("/nudges", refused, Idempotency_Key="one").status_code == 422
    assert api.post("/nudges", BODY, Idempotency_Key="one").status_code == 201
    assert count(acme) == 1


def test_a_failure_of_ours_leaves_nothing_behind(api: ApiClient, acme: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    from rules.services import live_nudges

    def breaks(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(live_nudges, "record_change", breaks)
        answer = api.post("/nudges", BODY, Idempotency_Key="one")
    assert (answer.status_code, answer.json()["code"]) == (500, "server_error")
    assert "disk" not in answer.content.decode()
    assert count(acme) == 0
    assert api.post("/nudges", BODY, Idempotency_Key="one").status_code == 201


def test_another_key_and_another_tenant_see_nothing_of_it(api: ApiClient, acme: Tenant, elsewhere: Tenant) -> None:
    api.post("/nudges", BODY, Idempotency_Key="one")
    for other in (ApiClient(key_for(acme)), ApiClient(key_for(elsewhere))):
        answer = other.post("/nudges", {"nudges": [{"code": "B"}, {"code": "C"}]}, Idempotency_Key="one")
        assert (answer.status_code, answer.json()["taken"]) == (201, 2)


@pytest.mark.parametrize("key", ["", "x" * 256, "a\tb", "é"])
def test_a_key_that_is_none_is_refused(api: ApiClient, acme: Tenant, key: str) -> None:
    answer = api.post("/nudges", BODY, Idempotency_Key=key)
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed_request")
    assert count(acme) == 0


def test_answers_are_forgotten_after_a_day(api: ApiClient, acme: Tenant) -> None:
    api.post("/nudges", BODY, Idempotency_Key="one")
    with scope(tenant=acme):
        IdempotentAnswer.objects.update(began_at=timezone.now() - timedelta(hours=25))
    assert forget_old_answers() == 1
    assert api.post("/nudges", BODY, Idempotency_Key="one").status_code == 201
    assert count(acme) == 2
