"""The catalogue: what each default rule would do here, before it is installed."""

from __future__ import annotations

import re

from django.test import Client
from django_scopes import scope

from eleanor_site.tenants.models import Tenant
from rules.models import Rule
from rules.queries.rules import rule_set
from tests.factories import make_chat, make_replay

WHERE = "/t/acme/rules/catalogue"


def fires(text: str) -> dict[str, int]:
    found = re.findall(r'id="effect-(EAI-GOV-\d\d)".*?<b>(\d+)</b> <span>(?:fires)', text, re.S)
    return {code: int(n) for code, n in found}


def chats(tenant: Tenant) -> None:
    cut = {"role": "assistant", "content": "The rest is", "finish_reason": "length"}
    empty = {"role": "assistant", "content": "", "finish_reason": "stop"}
    promise = {"role": "assistant", "content": "I will mend it now.", "finish_reason": "stop"}
    for number, answer in enumerate((cut, cut, empty, promise)):
        make_chat(tenant, {"role": "user", "content": "Mend it."}, answer, external_id=f"c{number}", tools=["mend"])


def test_the_effect_of_each_rule_is_known_before_it_is_installed(viewer: Client, acme: Tenant) -> None:
    chats(acme)
    text = viewer.get(f"{WHERE}?effect=1").content.decode()
    assert {code: n for code, n in fires(text).items() if n} == {"EAI-GOV-01": 2, "EAI-GOV-02": 1, "EAI-GOV-07": 1}
    with scope(tenant=acme):
        assert not Rule.objects.exists()


def test_what_is_promised_is_what_a_replay_finds(publisher: Client, acme: Tenant) -> None:
    chats(acme)
    promised = fires(publisher.get(f"{WHERE}?effect=1").content.decode())
    publisher.post(f"{WHERE}/install", {"code": ["EAI-GOV-07"], "publish": "1", "seen_release": "0"})
    with scope(tenant=acme):
        assert [spec.code for spec in rule_set(acme, drafts=False)] == ["EAI-GOV-07"]
    assert make_replay(acme, drafts=False).fires == promised["EAI-GOV-07"]


def test_without_chats_the_catalogue_says_so(viewer: Client, acme: Tenant) -> None:
    text = viewer.get(f"{WHERE}?part=effect", headers={"HX-Request": "true"}).content.decode()
    assert text.count("No chats are stored yet") == 11
    assert 'hx-trigger="load delay' not in text
