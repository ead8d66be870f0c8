"""Webhooks: signed, told once an event, tried again, and never led to addresses of our own machine."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.server
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import transaction
from django.test import Client
from django.utils import timezone
from django_scopes import scope

from eleanor_site.audit.models import Entry
from eleanor_site.jobs import Status
from eleanor_site.tenants.models import Tenant
from eleanor_site.webhooks import deliveries, posting, services
from eleanor_site.webhooks.models import Attempt, Delivery, Event, Webhook
from eleanor_site.webhooks.signing import new_secret, signature
from rules.services.publishing import GateClosed, publish_drafts
from rules.services.rule_tests import add_context
from rules.webhook_events import tell_due, tell_refusals
from tests.factories import make_chat, make_replay, make_rule, publish, some_author


@dataclass
class Receiver:
    """A server that remembers what it was sent, and answers with the next of `statuses` (then 200)."""

    url: str = ""
    statuses: list[int] = field(default_factory=list)
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    told = Receiver()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            told.got.append(({k.lower(): v for k, v in self.headers.items()}, body))
            status = told.statuses.pop(0) if told.statuses else 200
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    told.url = f"http://127.0.0.1:{server.server_port}/eleanor?x=1"
    yield told
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def webhook(in_acme: Tenant, receiver: Receiver) -> Webhook:
    return services.add_webhook(
        tenant=in_acme, by=some_author(in_acme), url=receiver.url, events=[Event.RELEASE_PUBLISHED, Event.GATE_FAILED]
    )


def queue_one(tenant: Tenant) -> Delivery:
    with transaction.atomic():
        [delivery] = services.tell(tenant, Event.RELEASE_PUBLISHED, {"release": 7})
    return delivery


def state(delivery: Delivery) -> tuple[str, int]:
    delivery.refresh_from_db()
    return delivery.status, delivery.attempts


def test_a_published_vector_of_the_scheme() -> None:
    """The example of the Standard Webhooks specification and its libraries."""
    found = signature(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1614265330,
        b'{"test": 2432232314}',
    )
    assert found == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_delivery_is_signed(in_acme: Tenant, webhook: Webhook, receiver: Receiver) -> None:
    delivery = queue_one(in_acme)
    deliveries.deliver(delivery.pk)
    assert state(delivery) == (Status.DONE, 1)
    [(headers, body)] = receiver.got
    key = base64.b64decode(webhook.secret.removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    assert headers["webhook-id"] == delivery.name
    told = json.loads(body)
    assert (told["type"], told["tenant"], told["data"]) == ("release.published", "acme", {"release": 7})


def test_a_failed_delivery_is_tried_again_with_growing_pauses(
    in_acme: Tenant, webhook: Webhook, receiver: Receiver
) -> None:
    receiver.statuses = [500, 404]
    delivery = queue_one(in_acme)
    now = timezone.now()
    for status, wait in ((500, 10), (404, 60)):
        with time_machine.travel(now, tick=False):
            deliveries.deliver(delivery.pk)
            delivery.refresh_from_db()
            assert (delivery.status, delivery.due_at) == (Status.QUEUED, now + timedelta(seconds=wait))
            assert deliveries.deliveries_to_send() == []
            deliveries.deliver(delivery.pk)  # not due yet: nothing happens
        now += timedelta(seconds=wait)
        assert Attempt.objects.filter(delivery=delivery).last().status == status  # type: ignore[union-attr]
    with time_machine.travel(now, tick=False):
        assert deliveries.deliveries_to_send() == [delivery.pk]
        assert deliveries.deliveries_to_send() == []  # the second of two sweepers
        deliveries.deliver(delivery.pk)
    assert state(delivery) == (Status.DONE, 3)
    ids = {headers["webhook-id"] for headers, _body in receiver.got}
    bodies = {body for _headers, body in receiver.got}
    assert (len(receiver.got), len(ids), len(bodies)) == (3, 1, 1)


def test_a_delivery_fails_for_good_after_the_last_try(in_acme: Tenant, webhook: Webhook, receiver: Receiver) -> None:
    receiver.statuses = [500] * 20
    delivery = queue_one(in_acme)
    now = timezone.now()
    for pause in (*deliveries.BACK_OFF, timedelta()):
        with time_machine.travel(now, tick=False):
            deliveries.deliver(delivery.pk)
        now += pause
    assert state(delivery) == (Status.FAILED, 8)
    assert services.send_again(tenant=in_acme, delivery=delivery, by=some_author(in_acme))
    receiver.statuses = []
    deliveries.deliver(delivery.pk)
    assert state(delivery) == (Status.DONE, 1)
    assert not services.send_again(tenant=in_acme, delivery=delivery, by=some_author(in_acme))


def test_a_redirect_is_not_followed(in_acme: Tenant, webhook: Webhook, receiver: Receiver) -> None:
    receiver.statuses = [302]
    delivery = queue_one(in_acme)
    deliveries.deliver(delivery.pk)
    assert state(delivery) == (Status.QUEUED, 1)
    assert len(receiver.got) == 1


def test_a_worker_that_died_in_a_try_is_replaced(in_acme: Tenant, webhook: Webhook, receiver: Receiver) -> None:
    delivery = queue_one(in_acme)
    long_ago = timezone.now() - timedelta(minutes=5)
    Delivery.objects.filter(pk=delivery.pk).update(status=Status.RUNNING, attempts=1, heartbeat_at=long_ago)
    assert deliveries.deliveries_to_send() == [delivery.pk]
    deliveries.deliver(delivery.pk)
    assert state(delivery) == (Status.DONE, 2)


def test_a_webhook_that_is_switched_off_is_told_nothing(in_acme: Tenant, webhook: Webhook, receiver: Receiver) -> None:
    delivery = queue_one(in_acme)
    by = some_author(in_acme)
    services.change_webhook(
        tenant=in_acme, webhook=webhook, by=by, url=webhook.url, events=webhook.events.split(), active=False
    )
    deliveries.deliver(delivery.pk)
    assert state(delivery)[0] == Status.FAILED
    with transaction.atomic():
        assert services.tell(in_acme, Event.RELEASE_PUBLISHED, {}) == []
    assert receiver.got == []


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1/", "http://localhost/", "https://10.0.0.8/", "https://[::1]/", "https://169.254.169.254/latest",
        "https://192.168.1.1/", "https://[::ffff:127.0.0.1]/", "https://0.0.0.0/", "https://[fd00::1]/",
        "https://[64:ff9b::7f00:1]/", "https://2130706433/",
    ],
)  # fmt: skip
def test_private_addresses_are_never_reached(url: str, settings: Any) -> None:
    settings.WEBHOOKS_TO_PRIVATE_ADDRESSES = False
    outcome = posting.post(url, b"{}", {})
    assert outcome.trouble in ("private", "address")
    assert outcome.status is None


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("https://example.org/hook", ""),
        ("http://example.org/hook", "https"),
        ("ftp://example.org", "form"),
        ("https://", "form"),
        ("https://user:pw@example.org/", "credentials"),
        ("https://example.org/\r\nX: y", "form"),
        ("https://example.org:99999/", "form"),
        ("https://exämple.org/", "form"),
        ("javascript:alert(1)", "form"),
    ],
)
def test_addresses_that_can_be_none_are_refused(url: str, problem: str, settings: Any) -> None:
    settings.WEBHOOKS_TO_PRIVATE_ADDRESSES = False
    assert posting.address_problem(url) == problem


def test_nobody_answers() -> None:
    outcome = posting.post("http://127.0.0.1:1/", b"{}", {})
    assert (outcome.status, outcome.trouble) == (None, "connection")


# --- events


def test_a_published_release_is_told_once_and_with_the_release(in_acme: Tenant, webhook: Webhook) -> None:
    publish(in_acme, make_rule(in_acme, "ACME-01"))
    [delivery] = Delivery.objects.all()
    assert json.loads(delivery.payload)["data"]["release"] == 1


def test_a_closed_gate_is_told_though_the_publication_is_undone(in_acme: Tenant, webhook: Webhook) -> None:
    rule = make_rule(in_acme, "ACME-01", expression="ctx.mutated")
    by = some_author(in_acme)
    add_context(tenant=in_acme, rule=rule, by=by, should_fire=True, stage="final", context="{}")
    with pytest.raises(GateClosed):
        publish_drafts(tenant=in_acme, rules=[rule], by=by, note="n", seen_release=0)
    assert not Delivery.objects.exists()
    tell_refusals()
    [delivery] = Delivery.objects.all()
    told = json.loads(delivery.payload)
    assert (told["type"], told["data"]["rule"]) == ("gate.failed", "ACME-01")
    tell_refusals()
    assert Delivery.objects.count() == 1


def test_a_finished_replay_and_an_ending_observation_are_told_once(in_acme: Tenant, webhook: Webhook) -> None:
    by = some_author(in_acme)
    services.change_webhook(
        tenant=in_acme, webhook=webhook, by=by, url=webhook.url, events=["replay.finished", "rule.observe_expiring"],
        active=True,
    )  # fmt: skip
    make_chat(in_acme)
    rule = make_rule(in_acme, "WATCH")
    publish(in_acme, make_rule(in_acme, "ACME-01"))
    until = timezone.now() + timedelta(days=2)
    publish_drafts(tenant=in_acme, rules=[rule], by=by, note="n", seen_release=1, mode="observe", observe_until=until)
    replay = make_replay(in_acme, drafts=False)
    tell_due()
    tell_due()
    told = {d.event: json.loads(d.payload)["data"] for d in Delivery.objects.all()}
    assert Delivery.objects.count() == 2
    assert (told["replay.finished"]["replay"], told["replay.finished"]["status"]) == (replay.pk, "done")
    assert told["rule.observe_expiring"]["rule"] == "WATCH"


def test_an_event_of_an_undone_transaction_is_never_told(in_acme: Tenant, webhook: Webhook) -> None:
    with transaction.atomic():
        services.tell(in_acme, Event.RELEASE_PUBLISHED, {})
        transaction.set_rollback(True)
    assert not Delivery.objects.exists()


def test_another_tenant_is_not_told(in_acme: Tenant, webhook: Webhook, elsewhere: Tenant) -> None:
    publish(elsewhere, make_rule(elsewhere, "ELSE-01"))
    assert not Delivery.objects.exists()


# --- pages


def test_the_pages(admin: Client, acme: Tenant, receiver: Receiver) -> None:
    made = admin.post("/t/acme/settings/webhooks/", {"url": receiver.url, "events": ["release.published"]})
    page = made["Location"]
    assert made.status_code == 302
    with scope(tenant=acme):
        secret = Webhook.objects.get().secret
    assert secret not in admin.get(page).content.decode()
    assert secret in admin.get(f"{page}?secret=1").content.decode()
    admin.post(f"{page}action", {"action": "test"})
    with scope(tenant=acme):
        [delivery] = Delivery.objects.all()
        deliveries.deliver(delivery.pk)
    assert b"status 200" in admin.get(page).content
    admin.post(f"{page}action", {"action": "secret"})
    with scope(tenant=acme):
        assert Webhook.objects.get().secret != secret
    off = admin.post(page, {"url": receiver.url, "events": ["gate.failed"]})
    assert off.status_code == 302
    with scope(tenant=acme):
        webhook = Webhook.objects.get()
        assert (webhook.active, webhook.events) == (False, "gate.failed")
    admin.post(f"{page}action", {"action": "remove"})
    with scope(tenant=acme):
        assert not Webhook.objects.exists()
        actions = list(Entry.objects.order_by("number").values_list("action", flat=True))
        assert secret not in str(list(Entry.objects.values()))
    assert actions == [f"webhook.{verb}" for verb in ("add", "test", "secret", "change", "remove")]


@pytest.mark.parametrize("form", [{}, {"url": "ftp://x"}, {"url": "https://x.example", "events": ["none"]}])
def test_a_wrong_form_is_shown_again(admin: Client, form: dict[str, Any]) -> None:
    answer = admin.post("/t/acme/settings/webhooks/", form)
    assert answer.status_code == 422


def test_secrets_are_unlike() -> None:
    assert len({new_secret() for _ in range(50)}) == 50
