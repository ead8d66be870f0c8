"""Drafts, versions and releases: nothing published changes, nobody overwrites anybody."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from django_scopes import scope

from eleanor_site.audit.models import Entry
from eleanor_site.problems import Refused
from eleanor_site.tenants.models import Tenant, User
from rules.models import KnownPrompt, Release, ReleaseEntry, Rule, RuleDraft, RuleVersion
from rules.queries.codes import code_problem
from rules.queries.rules import live_number, rule_rows, rule_set
from rules.services import drafts, publishing
from tests.factories import ALWAYS, make_rule, publish, some_author


def codes(tenant: Tenant) -> list[str]:
    return [spec.code for spec in rule_set(tenant, drafts=False)]


def test_publishing_makes_a_version_and_a_release_and_ends_the_draft(in_acme: Tenant) -> None:
    rule = make_rule(in_acme)
    release = publish(in_acme, rule)
    assert (release.number, release.status) == (1, "live")
    assert RuleVersion.objects.get(rule=rule).number == 1
    assert not RuleDraft.objects.filter(rule=rule).exists()
    assert codes(in_acme) == ["ACME-01"]
    actions = list(Entry.objects.order_by("number").values_list("action", flat=True))
    assert actions == ["rule.create", "rule.version", "release.publish"]


def test_a_second_version_takes_the_place_of_the_first(in_acme: Tenant) -> None:
    first, second = make_rule(in_acme, "A"), make_rule(in_acme, "B")
    publish(in_acme, first, second)
    by = some_author(in_acme)
    drafts.save_draft(tenant=in_acme, rule=first, by=by, revision=0, content={"max_nudges": 3})
    publish(in_acme, first)
    assert [(e.version.rule.code, e.version.number) for e in ReleaseEntry.objects.filter(release__number=2)] == [
        ("A", 2),
        ("B", 1),
    ]
    assert RuleVersion.objects.get(rule=first, number=1).max_nudges == 1


def test_exactly_one_release_is_live(in_acme: Tenant) -> None:
    publish(in_acme, make_rule(in_acme, "A"))
    publish(in_acme, make_rule(in_acme, "B"))
    assert list(Release.objects.order_by("number").values_list("status", flat=True)) == ["superseded", "live"]
    with pytest.raises(IntegrityError), transaction.atomic():
        Release.objects.filter(number=1).update(status="live")


def test_publishing_on_top_of_somebody_elses_release_is_a_conflict(in_acme: Tenant) -> None:
    rule = make_rule(in_acme)
    publish(in_acme, make_rule(in_acme, "OTHER"))
    with pytest.raises(publishing.ReleaseConflict):
        publishing.publish_drafts(tenant=in_acme, rules=[rule], by=some_author(in_acme), note="", seen_release=0)
    assert RuleDraft.objects.filter(rule=rule).exists()
    assert not RuleVersion.objects.filter(rule=rule).exists()


@pytest.mark.parametrize("content", [{"expression": "ctx."}, {"expression": ""}, {"prompt_en": " "}])
def test_a_draft_that_can_not_work_is_refused(in_acme: Tenant, content: dict[str, str]) -> None:
    rule = make_rule(in_acme, **content)
    with pytest.raises(Refused):
        publish(in_acme, rule)
    assert live_number() == 0


def test_reorder_pause_and_roll_back_each_make_a_release(in_acme: Tenant) -> None:
    a, b = make_rule(in_acme, "A"), make_rule(in_acme, "B")
    publish(in_acme, a, b)
    by = some_author(in_acme)
    publishing.reorder(tenant=in_acme, order=[b.pk, a.pk], by=by, seen_release=1)
    assert codes(in_acme) == ["B", "A"]
    publishing.set_mode(tenant=in_acme, rule=b, mode="paused", by=by, seen_release=2)
    assert codes(in_acme) == ["A"]
    publishing.take_out(tenant=in_acme, rule=a, by=by, seen_release=3)
    assert codes(in_acme) == []
    publishing.roll_back(tenant=in_acme, to=Release.objects.get(number=1), by=by, seen_release=4, note="back")
    assert codes(in_acme) == ["A", "B"]
    assert live_number() == 5


def test_a_code_is_unique_in_its_tenant_only(acme: Tenant, elsewhere: Tenant) -> None:
    make_rule(acme, "SAME")
    make_rule(elsewhere, "SAME")
    with pytest.raises(Refused):
        make_rule(acme, "SAME")


@pytest.mark.parametrize("code", ["", " A", "A ", "a/b", "..", "new", "order", "catalogue", "x" * 65, "a\nb", "a\x00"])
def test_codes_that_do_not_fit(code: str) -> None:
    assert code_problem(code)


@pytest.mark.parametrize("code", ["A", "EAI-GOV-01", "règle 1", "x" * 64, "a.b", "新"])
def test_codes_that_fit(code: str) -> None:
    assert not code_problem(code)


def test_every_prompt_ever_saved_is_remembered(in_acme: Tenant) -> None:
    rule = make_rule(in_acme, prompt_en="Do  it.", prompt_fr="Fais-le.")
    drafts.save_draft(tenant=in_acme, rule=rule, by=some_author(in_acme), revision=1, content={"prompt_en": "Now."})
    assert KnownPrompt.objects.filter(code="ACME-01").count() == 3


def test_a_draft_saved_by_somebody_else_is_not_overwritten(
    author: Client, acme: Tenant, people: dict[str, User]
) -> None:
    rule = make_rule(acme)
    with scope(tenant=acme):
        drafts.save_draft(tenant=acme, rule=rule, by=people["publisher"], revision=1, content={"prompt_en": "Theirs."})
    mine = {"revision": 1, "stage": "final", "max_nudges": 1, "expression": ALWAYS, "prompt_en": "Mine."}
    answer = author.post("/t/acme/rules/ACME-01/edit", mine)
    assert answer.status_code == 409
    assert b"Theirs." in answer.content
    assert b"Mine." in answer.content
    with scope(tenant=acme):
        assert RuleDraft.objects.get(rule=rule).prompt_en == "Theirs."


def test_an_expression_with_an_error_can_be_saved_as_a_draft(author: Client, acme: Tenant) -> None:
    make_rule(acme)
    typed = {"revision": 1, "stage": "final", "max_nudges": 1, "expression": "ctx.no_progres >", "prompt_en": "x"}
    answer = author.post("/t/acme/rules/ACME-01/edit", typed)
    assert answer.status_code == 302
    shown = author.get("/t/acme/rules/ACME-01/edit").content.decode()
    assert "ctx.no_progres &gt;" in shown


def test_the_check_names_place_and_repair(author: Client) -> None:
    answer = author.post("/t/acme/rules/check/expression", {"expression": "🙂 ctx.no_progres > 2"})
    assert answer.status_code == 200
    answer = author.post("/t/acme/rules/check/expression", {"expression": "ctx.no_progres > 2", "stage": "round"})
    text = answer.content.decode()
    assert "no_progress_rounds" in text


def test_the_list_shows_order_and_drafts(viewer: Client, acme: Tenant) -> None:
    publish(acme, make_rule(acme, "LIVE-01"))
    make_rule(acme, "DRAFT-01")
    text = viewer.get("/t/acme/rules/").content.decode()
    assert text.index("LIVE-01") < text.index("DRAFT-01")
    with scope(tenant=acme):
        assert [(row.rule.code, row.position, row.state) for row in rule_rows()] == [
            ("LIVE-01", 1, "live"),
            ("DRAFT-01", None, "draft"),
        ]


def test_discarding_the_only_draft_removes_the_rule(author: Client, acme: Tenant) -> None:
    make_rule(acme)
    author.post("/t/acme/rules/ACME-01/discard")
    with scope(tenant=acme):
        assert not Rule.objects.exists()


def test_installing_the_catalogue_keeps_its_order(publisher: Client, acme: Tenant) -> None:
    publisher.post(
        "/t/acme/rules/catalogue/install",
        {"code": ["EAI-GOV-03", "EAI-GOV-01"], "publish": "1", "seen_release": "0"},
    )
    with scope(tenant=acme):
        assert codes(acme) == ["EAI-GOV-01", "EAI-GOV-03"]
