"""Another order of the live rules: moved by buttons alone, with what every rule gains or loses before it is saved."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django_scopes import scope

from eleanor_site.tenants.models import Tenant
from rules.models import Proposal, Rule
from rules.queries.rules import live_number, rule_set
from tests.factories import make_chat, make_rule, publish

WHERE = "/t/acme/rules/order"


@pytest.fixture
def ids(acme: Tenant) -> list[int]:
    make_chat(acme)
    rules = [make_rule(acme, code) for code in ("A", "B", "C")]
    publish(acme, *rules)
    return [rule.pk for rule in rules]


def shown(text: str) -> list[str]:
    return re.findall(r'name="order" value="\d+"><code>(\w+)</code>', text)


def live(tenant: Tenant) -> list[str]:
    with scope(tenant=tenant):
        return [spec.code for spec in rule_set(tenant, drafts=False)]


def test_up_down_and_a_number_move_a_rule(publisher: Client, ids: list[int], acme: Tenant) -> None:
    a, b, c = ids
    posted = {"order": [a, b, c]}
    assert shown(publisher.post(WHERE, posted | {f"up-{c}": "1"}).content.decode()) == ["A", "C", "B"]
    assert shown(publisher.post(WHERE, posted | {f"down-{a}": "1"}).content.decode()) == ["B", "A", "C"]
    numbers = {f"to-{a}": "3", f"to-{b}": "2", f"to-{c}": "3"}
    assert shown(publisher.post(WHERE, posted | numbers | {"move": str(a)}).content.decode()) == ["B", "C", "A"]
    typed = {f"to-{a}": "1", f"to-{b}": "2", f"to-{c}": "1"}
    assert shown(publisher.post(WHERE, posted | typed | {"apply": "1"}).content.decode()) == ["C", "A", "B"]
    assert live(acme) == ["A", "B", "C"]


def test_the_effect_is_shown_before_it_is_saved(publisher: Client, ids: list[int], acme: Tenant) -> None:
    _a, b, _c = ids
    text = publisher.post(WHERE, {"order": ids, f"up-{b}": "1"}).content.decode()
    numbers = r"<td class=\"num\"[^>]*>(\d+)</td>" * 2
    rows = re.findall(rf"<code>(\w+)</code>.*?{numbers}", text, re.S)
    assert rows[:2] == [("B", "0", "1"), ("A", "1", "0")]


def test_saving_publishes_and_adding_collects(publisher: Client, ids: list[int], acme: Tenant) -> None:
    a, b, c = ids
    publisher.post(WHERE, {"order": [c, b, a], "save": "1", "seen_release": "1", "note": "why"})
    assert live(acme) == ["C", "B", "A"]
    publisher.post(WHERE, {"order": [a, c, b], "add": "1", "seen_release": "2"})
    assert live(acme) == ["C", "B", "A"]
    with scope(tenant=acme):
        proposal = Proposal.objects.get()
    where = f"/t/acme/releases/proposals/{proposal.pk}/"
    text = publisher.get(where).content.decode()
    assert re.search(r"<ol><li><code>A</code></li><li><code>C</code></li>", text)
    publisher.post(f"{where}decide", {"action": "publish", "note": "Better so.", "seen_release": "2"})
    assert live(acme) == ["A", "C", "B"]


def test_an_order_on_top_of_somebody_elses_release_is_shown_again(
    publisher: Client, ids: list[int], acme: Tenant
) -> None:
    with scope(tenant=acme):
        publish(acme, make_rule(acme, "D"))
    a, b, c = ids
    answer = publisher.post(WHERE, {"order": [c, b, a], "save": "1", "seen_release": "1"})
    assert answer.status_code == 409
    assert shown(answer.content.decode()) == ["C", "B", "A", "D"]
    with scope(tenant=acme):
        assert live_number() == 2
        assert Rule.objects.count() == 4
