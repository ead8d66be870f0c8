"""Gates and approvals: what keeps a change from going live, and who may let it."""

from __future__ import annotations

import pytest

from chats.models import Chat, ChatVersion
from eleanor_site.problems import Conflict, Refused
from eleanor_site.tenants.models import Tenant, User
from rules.models import Proposal, Release, ReleaseEntry, Rule, RuleDraft, RuleVersion, Verdict
from rules.queries.gates import gates
from rules.queries.rules import live_number, rule_set
from rules.services import drafts, proposals, publishing, rule_tests
from tests.factories import ALWAYS, make_chat, make_rule, publish, some_author

NEVER = "ctx.tool_calls_total > 99"


def version_of(chat: Chat) -> ChatVersion:
    return ChatVersion.objects.get(chat=chat)


def keep(tenant: Tenant, rule: Rule, chat: Chat, *, should_fire: bool) -> None:
    rule_tests.add_point(
        tenant=tenant,
        rule=rule,
        by=some_author(tenant),
        version=version_of(chat),
        message=1,
        stage="final",
        should_fire=should_fire,
    )


def with_second_person(tenant: Tenant) -> Tenant:
    tenant.second_person = True
    tenant.save()
    return tenant


@pytest.fixture
def chat(in_acme: Tenant) -> Chat:
    return make_chat(in_acme)


def test_a_failing_test_keeps_the_rule_from_going_live(in_acme: Tenant, chat: Chat) -> None:
    rule = make_rule(in_acme)
    keep(in_acme, rule, chat, should_fire=False)
    with pytest.raises(publishing.GateClosed):
        publish(in_acme, rule)
    assert live_number() == 0
    assert RuleDraft.objects.filter(rule=rule).exists()
    drafts.save_draft(tenant=in_acme, rule=rule, by=some_author(in_acme), revision=1, content={"expression": NEVER})
    assert publish(in_acme, rule).number == 1


def test_an_observed_rule_may_fail_its_tests_since_it_is_never_injected(in_acme: Tenant, chat: Chat) -> None:
    rule = make_rule(in_acme)
    keep(in_acme, rule, chat, should_fire=False)
    publishing.publish_drafts(
        tenant=in_acme, rules=[rule], by=some_author(in_acme), note="look", seen_release=0, mode="observe"
    )
    with pytest.raises(publishing.GateClosed):
        proposals.publish(
            tenant=in_acme,
            by=some_author(in_acme),
            proposal=proposals.add_to_open(tenant=in_acme, by=some_author(in_acme), rules=[rule]),
            note="now for real",
            seen_release=1,
        )


def test_the_gates_say_what_is_missing(in_acme: Tenant, chat: Chat) -> None:
    rule = make_rule(in_acme)
    assert [(g.key, g.state) for g in gates(in_acme, rule)] == [
        ("ready", "passed"),
        ("tests", "open"),
        ("labels", "open"),
        ("replay", "open"),
    ]
    keep(in_acme, rule, chat, should_fire=True)
    assert [(g.key, g.state) for g in gates(in_acme, rule)][1] == ("tests", "passed")
    drafts.save_draft(tenant=in_acme, rule=rule, by=some_author(in_acme), revision=1, content={"expression": "ctx."})
    assert gates(in_acme, rule)[0].state == "failed"


def test_with_a_second_person_nothing_unseen_goes_live(in_acme: Tenant, people: dict[str, User]) -> None:
    tenant = with_second_person(in_acme)
    rule = make_rule(tenant)
    with pytest.raises(publishing.NeedsApproval):
        publish(tenant, rule)
    assert RuleVersion.objects.count() == 0
    asked = proposals.request_for(tenant=tenant, by=people["author"], rule=rule, mode="live", note="It stops early.")
    with pytest.raises(Refused):
        proposals.approve(tenant=tenant, by=people["author"], proposal=asked)
    proposals.approve(tenant=tenant, by=people["publisher"], proposal=asked)
    release = proposals.publish(tenant=tenant, by=people["publisher"], proposal=asked, note="ok", seen_release=0)
    assert release.approved_by == people["publisher"]
    assert RuleVersion.objects.get(rule=rule).approved_by == people["publisher"]
    assert [spec.code for spec in rule_set(tenant, drafts=False)] == ["ACME-01"]


def test_who_wrote_on_the_draft_can_not_approve_it(in_acme: Tenant, people: dict[str, User]) -> None:
    tenant = with_second_person(in_acme)
    rule = make_rule(tenant)
    drafts.save_draft(tenant=tenant, rule=rule, by=people["admin"], revision=1, content={"prompt_en": "Do it."})
    asked = proposals.request_for(tenant=tenant, by=people["author"], rule=rule, mode="live", note="why")
    with pytest.raises(Refused):
        proposals.approve(tenant=tenant, by=people["admin"], proposal=asked)


@pytest.mark.parametrize("approved", [False, True])
def test_an_edit_takes_the_approval_back(in_acme: Tenant, people: dict[str, User], approved: bool) -> None:
    tenant = with_second_person(in_acme)
    rule = make_rule(tenant)
    asked = proposals.request_for(tenant=tenant, by=people["author"], rule=rule, mode="live", note="why")
    if approved:
        proposals.approve(tenant=tenant, by=people["publisher"], proposal=asked)
    drafts.save_draft(tenant=tenant, rule=rule, by=people["author"], revision=1, content={"prompt_en": "Other."})
    assert Proposal.objects.get(pk=asked.pk).status == "withdrawn"
    with pytest.raises(Conflict):
        proposals.publish(tenant=tenant, by=people["publisher"], proposal=asked, note="x", seen_release=0)


def test_switching_off_and_rolling_back_need_no_second_person(in_acme: Tenant) -> None:
    rule = make_rule(in_acme)
    publish(in_acme, rule)
    tenant = with_second_person(in_acme)
    by = some_author(tenant)
    publishing.set_mode(tenant=tenant, rule=rule, mode="paused", by=by, seen_release=1)
    publishing.set_mode(tenant=tenant, rule=rule, mode="live", by=by, seen_release=2)
    publishing.take_out(tenant=tenant, rule=rule, by=by, seen_release=3)
    first = Release.objects.get(number=1)
    assert publishing.roll_back(tenant=tenant, to=first, by=by, seen_release=4, note="back").number == 5


def test_observing_is_no_way_around_the_second_person(in_acme: Tenant) -> None:
    tenant = with_second_person(in_acme)
    rule = make_rule(tenant)
    by = some_author(tenant)
    publishing.publish_drafts(tenant=tenant, rules=[rule], by=by, note="x", seen_release=0, mode="observe")
    publishing.set_mode(tenant=tenant, rule=rule, mode="paused", by=by, seen_release=1)
    with pytest.raises(publishing.NeedsApproval):
        publishing.set_mode(tenant=tenant, rule=rule, mode="live", by=by, seen_release=2)


def test_several_drafts_are_collected_into_one_release_and_roll_back_together(in_acme: Tenant) -> None:
    by = some_author(in_acme)
    a, b = make_rule(in_acme, "A"), make_rule(in_acme, "B")
    publish(in_acme, a, b)
    for rule in (a, b):
        drafts.save_draft(tenant=in_acme, rule=rule, by=by, revision=0, content={"max_nudges": 5})
        opened = proposals.add_to_open(tenant=in_acme, by=by, rules=[rule])
    proposals.set_order(tenant=in_acme, by=by, order=[b.pk, a.pk])
    release = proposals.publish(
        tenant=in_acme, by=by, proposal=Proposal.objects.get(pk=opened.pk), note="both", seen_release=1
    )
    entries = ReleaseEntry.objects.filter(release=release)
    assert [(e.version.rule.code, e.version.max_nudges) for e in entries] == [("B", 5), ("A", 5)]
    back = publishing.roll_back(
        tenant=in_acme, to=Release.objects.get(number=1), by=by, seen_release=2, note="both back"
    )
    entries = ReleaseEntry.objects.filter(release=back)
    assert [(e.version.rule.code, e.version.max_nudges) for e in entries] == [("A", 1), ("B", 1)]


def test_one_rule_rolls_back_by_a_new_version(in_acme: Tenant) -> None:
    by = some_author(in_acme)
    rule = make_rule(in_acme)
    publish(in_acme, rule)
    drafts.save_draft(tenant=in_acme, rule=rule, by=by, revision=0, content={"max_nudges": 5})
    publish(in_acme, rule)
    first = RuleVersion.objects.get(rule=rule, number=1)
    publishing.roll_back_rule(tenant=in_acme, rule=rule, to=first, by=by, seen_release=2, note="back")
    entry = publishing.live_entry(rule)
    assert entry is not None
    assert (entry.version.number, entry.version.max_nudges) == (3, 1)


def judge(tenant: Tenant, chat: Chat, value: str, by: User) -> None:
    Verdict.objects.create(
        tenant=tenant,
        chat=chat,
        chat_version=version_of(chat),
        message=1,
        stage="final",
        code="ACME-01",
        version=1,
        value=value,
        by=by,
    )


@pytest.mark.parametrize(
    ("live", "edited", "value", "closed"),
    [
        (ALWAYS, NEVER, "right", True),
        (ALWAYS, NEVER, "wrong", False),
        (NEVER, ALWAYS, "wrong", True),
        (NEVER, ALWAYS, "missed", False),
        (NEVER, "ctx.tool_calls_total > 98", "missed", False),
        (ALWAYS, NEVER, "unsure", False),
    ],
)
def test_a_judged_point_that_turns_red_keeps_the_rule_from_going_live(
    in_acme: Tenant, chat: Chat, people: dict[str, User], live: str, edited: str, value: str, closed: bool
) -> None:
    rule = make_rule(in_acme, expression=live)
    publish(in_acme, rule)
    judge(in_acme, chat, value, people["reviewer"])
    drafts.save_draft(tenant=in_acme, rule=rule, by=some_author(in_acme), revision=0, content={"expression": edited})
    if closed:
        with pytest.raises(publishing.GateClosed):
            publish(in_acme, rule)
    else:
        assert publish(in_acme, rule).number == 2


def test_where_people_disagree_nobody_is_held_back(in_acme: Tenant, chat: Chat, people: dict[str, User]) -> None:
    rule = make_rule(in_acme)
    publish(in_acme, rule)
    judge(in_acme, chat, "right", people["reviewer"])
    judge(in_acme, chat, "wrong", people["author"])
    drafts.save_draft(tenant=in_acme, rule=rule, by=some_author(in_acme), revision=0, content={"expression": NEVER})
    assert publish(in_acme, rule).number == 2
