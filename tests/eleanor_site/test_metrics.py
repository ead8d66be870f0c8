"""What machines that watch are told, and who else isn't."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from eleanor_site.tenants.models import Tenant
from tests.factories import make_chat, make_replay, make_rule, publish


def samples(client: Client) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    text = client.get("/metrics").content.decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_requests_work_and_replays_are_counted(acme: Tenant) -> None:
    make_chat(acme)
    publish(acme, make_rule(acme))
    make_replay(acme)
    make_replay(acme, run=False)
    client = Client()
    before = samples(client)
    client.get("/healthz")
    client.get("/t/acme/no-such-page")
    after = samples(client)
    ok = ("eleanor_requests_total", (("method", "GET"), ("route", "healthz"), ("status", "200")))
    assert after[ok] == before.get(ok, 0) + 1
    assert after["eleanor_replays", (("status", "done"),)] == 1
    assert after["eleanor_replays", (("status", "queued"),)] == 1
    assert after["eleanor_work", (("kind", "replaychunk"), ("status", "queued"))] >= 1
    assert not any("acme" in str(key) for key in after)


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"REMOTE_ADDR": "127.0.0.1"}, 200),
        ({"REMOTE_ADDR": "::1"}, 200),
        ({"REMOTE_ADDR": "10.0.0.5"}, 404),
        ({"REMOTE_ADDR": "127.0.0.1", "HTTP_X_FORWARDED_FOR": "10.0.0.5"}, 404),
        ({"REMOTE_ADDR": "10.0.0.5", "HTTP_AUTHORIZATION": "Bearer right"}, 200),
        ({"REMOTE_ADDR": "10.0.0.5", "HTTP_AUTHORIZATION": "Bearer wrong"}, 404),
        ({"REMOTE_ADDR": ""}, 404),
    ],
)
def test_who_may_read_them(db: None, settings: Any, given: dict[str, str], status: int) -> None:
    settings.METRICS_TOKEN = "right"
    assert Client().get("/metrics", **given).status_code == status


def test_an_empty_token_opens_nothing(db: None, settings: Any) -> None:
    settings.METRICS_TOKEN = ""
    answer = Client().get("/metrics", REMOTE_ADDR="10.0.0.5", HTTP_AUTHORIZATION="Bearer ")
    assert answer.status_code == 404
