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
from tests.factories import ALWAYS, make_chat, make_rule, publish, some_author


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


def note(**more: object) -> dict[str, object]:
    return {
        "note": "It stops too early.",
        "mode": "live",
        "action": "now",
        "seen_release": live_release_number(),
        **more,
    }


def live_release_number() -> int:
    with scope(tenant=Tenant.objects.get(slug="acme")):
        return live_number()


def test_the_publish_page_shows_words_and_behaviour(publisher: Client, acme: Tenant) -> None:
    make_chat(acme)
    publish(acme, make_rule(acme, "LATER"))
    with scope(tenant=acme):
        by = some_author(acme)
        rule = make_rule(acme, "FIRST")
        publish(acme, rule)
        publishing.reorder(tenant=acme, order=[rule.pk], by=by, seen_release=live_number())
        drafts.save_draft(
            tenant=acme,
            rule=rule,
            by=by,
            revision=0,
            content={"expression": "ctx.tool_calls_total > 9", "prompt_en": "B."},
        )
    text = publisher.get("/t/acme/rules/FIRST/publish").content.decode()
    assert "<code>LATER</code> <b>+1</b>" in text
    assert "tool_calls_total" in text
    assert 'id="gate-tests"' in text
    answer = publisher.post("/t/acme/rules/FIRST/publish", note())
    assert answer.status_code == 302
    with scope(tenant=acme):
        version = RuleVersion.objects.get(rule=rule, number=2)
        assert (version.points, version.fires, version.note) == (1, 0, "It stops too early.")


@pytest.mark.parametrize("given", ["", "  ", "x"])
def test_a_note_is_asked_for_and_nothing_is_lost(publisher: Client, acme: Tenant, given: str) -> None:
    make_rule(acme)
    answer = publisher.post("/t/acme/rules/ACME-01/publish", note(note=given))
    assert answer.status_code == 422
    with scope(tenant=acme):
        assert live_number() == 0


def test_somebody_elses_release_in_between_is_shown_first(publisher: Client, acme: Tenant) -> None:
    make_rule(acme)
    publish(acme, make_rule(acme, "OTHER"))
    answer = publisher.post("/t/acme/rules/ACME-01/publish", note(seen_release=0))
    assert answer.status_code == 409
    text = answer.content.decode()
    assert "It stops too early." in text
    assert 'name="seen_release" value="1"' in text
    assert publisher.post("/t/acme/rules/ACME-01/publish", note()).status_code == 302


def test_a_draft_of_another_version_than_the_live_one_is_a_three_way_conflict(publisher: Client, acme: Tenant) -> None:
    rule = make_rule(acme, prompt_en="First.")
    publish(acme, rule)
    with scope(tenant=acme):
        by = some_author(acme)
        drafts.save_draft(tenant=acme, rule=rule, by=by, revision=0, content={"prompt_en": "Theirs."})
        publish(acme, rule)
        drafts.save_draft(tenant=acme, rule=rule, by=by, revision=0, content={"prompt_en": "Mine."})
        first = RuleVersion.objects.get(rule=rule, number=1)
        publishing.roll_back_rule(tenant=acme, rule=rule, to=first, by=by, seen_release=2, note="back")
    answer = publisher.post("/t/acme/rules/ACME-01/publish", note())
    assert answer.status_code == 409
    text = answer.content.decode()
    for side in ("First.", "Theirs.", "Mine."):
        assert side in text
    with scope(tenant=acme):
        revision = RuleDraft.objects.get(rule=rule).revision
    decided = {
        "revision": revision, "based_on": 3, "stage": "final", "max_nudges": 1, "expression": ALWAYS,
        "prompt_en": "Mine.", "choice-prompt_en": "mine", "mine-prompt_en": "Mine.",
    }  # fmt: skip
    answer = publisher.post("/t/acme/rules/ACME-01/edit", decided)
    assert answer["Location"].endswith("/publish")
    assert publisher.post("/t/acme/rules/ACME-01/publish", note()).status_code == 302
    with scope(tenant=acme):
        assert RuleVersion.objects.get(rule=rule, number=4).prompt_en == "Mine."


def test_an_author_may_ask_and_collect_but_not_publish(author: Client, acme: Tenant) -> None:
    make_rule(acme)
    assert author.get("/t/acme/rules/ACME-01/publish").status_code == 200
    assert author.post("/t/acme/rules/ACME-01/publish", note()).status_code == 403
    answer = author.post("/t/acme/rules/ACME-01/publish", note(action="add"))
    assert answer["Location"].endswith("/releases/open")
    assert "ACME-01" in author.get("/t/acme/releases/open").content.decode()


def test_a_request_for_approval_goes_its_way(
    author: Client, publisher: Client, acme: Tenant, people: dict[str, User]
) -> None:
    acme.second_person = True
    acme.save()
    with scope(tenant=acme):
        drafts.create_rule(
            tenant=acme, by=people["author"], code="ACME-01", content={"expression": ALWAYS, "prompt_en": "Go."}
        )
    where = author.post("/t/acme/rules/ACME-01/publish", note(action="request"))["Location"]
    assert author.post(f"{where}decide", {"action": "approve"}).status_code == 403
    assert "Approve" in publisher.get(where).content.decode()
    publisher.post(f"{where}decide", {"action": "approve", "note": "Fine."})
    answer = publisher.post(f"{where}decide", {"action": "publish", "note": "Now.", "seen_release": "0"})
    assert answer["Location"].endswith("/releases/1/")
    again = publisher.post(f"{where}decide", {"action": "publish", "note": "Now.", "seen_release": "1"})
    assert again.status_code == 409


def test_versions_are_listed_compared_and_taken_back(publisher: Client, viewer: Client, acme: Tenant) -> None:
    make_chat(acme)
    rule = make_rule(acme)
    publish(acme, rule)
    with scope(tenant=acme):
        drafts.save_draft(
            tenant=acme, rule=rule, by=some_author(acme), revision=0, content={"expression": "ctx.mutated"}
        )
    publish(acme, rule)
    assert viewer.get("/t/acme/rules/ACME-01/versions/").content.decode().count("<tr data-item>") == 2
    text = viewer.get("/t/acme/rules/ACME-01/versions/compare?a=1&b=2").content.decode()
    assert "<del>" in text or "diff-gone" in text
    assert "?version=1" in text
    shown = viewer.get("/t/acme/rules/ACME-01/effect?version=1&set=newly").content.decode()
    assert "I will compute it now." in shown
    publisher.post("/t/acme/rules/ACME-01/versions/1/roll-back", {"seen_release": "2", "note": "Too few."})
    with scope(tenant=acme):
        entry = publishing.live_entry(rule)
        assert entry is not None
        assert (entry.version.number, entry.version.expression) == (3, ALWAYS)


def test_drafts_chosen_in_the_list_are_collected(author: Client, acme: Tenant) -> None:
    make_rule(acme, "A")
    make_rule(acme, "B")
    answer = author.post("/t/acme/releases/open/add", {"code": ["A", "B", "NO-SUCH"]})
    assert answer["Location"].endswith("/releases/open")
    text = author.get("/t/acme/releases/open").content.decode()
    assert "publish" in text
    assert text.count('name="rule" value=') == 2


def test_an_archived_rule_comes_back_at_once(author: Client, acme: Tenant) -> None:
    rule = make_rule(acme)
    where = author.post("/t/acme/rules/ACME-01/archive", {})["Location"]
    assert "Undo" in author.get(where).content.decode()
    author.post("/t/acme/rules/ACME-01/archive", {"restore": "1"})
    with scope(tenant=acme):
        assert Rule.objects.get(pk=rule.pk).archived_at is None
