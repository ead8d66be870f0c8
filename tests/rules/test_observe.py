"""Observed rules: evaluated and recorded, never injected, and not for ever."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from eleanor_site.audit.models import Entry
from eleanor_site.tenants.models import Tenant
from rules.models import ReleaseEntry, RuleDraft
from rules.queries.rules import live_number, rule_rows, rule_set
from rules.services import publishing
from rules.switching import end_observations
from rules.tasks import end_observations as task
from tests.factories import make_rule, publish, some_author


def observe(tenant: Tenant, code: str = "SEEN-01") -> None:
    publishing.publish_drafts(
        tenant=tenant,
        rules=[make_rule(tenant, code)],
        by=some_author(tenant),
        note="look",
        seen_release=live_number(),
        mode="observe",
    )


def test_an_observed_rule_is_in_the_release_and_takes_no_point(in_acme: Tenant) -> None:
    observe(in_acme)
    publish(in_acme, make_rule(in_acme, "LIVE-01"))
    assert [spec.code for spec in rule_set(in_acme, drafts=False)] == ["LIVE-01"]
    assert [(row.rule.code, row.state) for row in rule_rows()] == [("SEEN-01", "observe"), ("LIVE-01", "live")]


def test_it_ends_after_the_tenants_number_of_days(in_acme: Tenant) -> None:
    in_acme.observe_days = 3
    in_acme.save()
    observe(in_acme)
    until = ReleaseEntry.objects.get().observe_until
    assert until is not None
    assert timedelta(days=2, hours=23) < until - timezone.now() <= timedelta(days=3)
    assert end_observations(until - timedelta(minutes=1)) == 0
    assert end_observations(until + timedelta(minutes=1)) == 1
    assert [(row.rule.code, row.state) for row in rule_rows()] == [("SEEN-01", "draft")]
    assert RuleDraft.objects.get().prompt_en == "Go on, says SEEN-01."
    assert Entry.objects.order_by("-number").values_list("action", flat=True)[0] == "rule.observe_end"
    assert end_observations(until + timedelta(minutes=1)) == 0


def test_the_other_rules_of_the_release_stay(in_acme: Tenant) -> None:
    publish(in_acme, make_rule(in_acme, "LIVE-01"))
    observe(in_acme)
    ReleaseEntry.objects.filter(mode="observe").update(observe_until=timezone.now() - timedelta(seconds=1))
    task()
    assert [spec.code for spec in rule_set(in_acme, drafts=False)] == ["LIVE-01"]
    assert live_number() == 3
