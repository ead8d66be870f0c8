"""What has to be green before a rule goes live (product.md 5.3, "Publish page")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from eleanor_site.tenants.models import Tenant
from rules.domain.language import check
from rules.models import Replay, Rule, RuleDraft, RuleVersion
from rules.queries.labelled import Label, labels_of
from rules.queries.replays import manifest
from rules.queries.rule_tests import TestResult, run_tests
from rules.queries.rules import edited_set, rule_set, stage_of

State = Literal["passed", "failed", "open"]


@dataclass(frozen=True)
class Gate:
    """One thing that is looked at before publishing. `open` ones tell something and hold nobody back."""

    key: str
    state: State
    title: str
    sentence: str
    results: Sequence[TestResult] = field(default_factory=tuple)
    labels: Sequence[Label] = field(default_factory=tuple)


def blocking_gates(tenant: Tenant, rule: Rule) -> list[Gate]:
    """The gates that a failure closes: expression and prompt, the tests kept with the rule, labelled points."""
    content = RuleDraft.objects.filter(rule=rule).first()
    if content is None:
        newest = RuleVersion.objects.filter(rule=rule).order_by("-number").first()
        return [] if newest is None else _gates(tenant, rule, newest)
    return _gates(tenant, rule, content)


def gates(tenant: Tenant, rule: Rule) -> list[Gate]:
    """All gates of the publish page, in the order in which they are shown."""
    return [*blocking_gates(tenant, rule), _replay_gate(tenant, rule)]


def failed(found: Sequence[Gate]) -> list[Gate]:
    return [gate for gate in found if gate.state == "failed"]


def _gates(tenant: Tenant, rule: Rule, content: RuleDraft | RuleVersion) -> list[Gate]:
    ready = _ready_gate(content)
    if ready.state == "failed":
        return [ready]
    return [ready, _tests_gate(tenant, rule, content), _labels_gate(tenant, rule, content)]


def _ready_gate(content: RuleDraft | RuleVersion) -> Gate:
    title = _("Expression and prompt")
    if check(content.expression, stage=stage_of(content)).errors:
        return Gate("ready", "failed", title, _("The expression has an error."))
    if not (content.prompt_en.strip() or content.prompt_fr.strip()):
        return Gate("ready", "failed", title, _("There is no prompt: a nudge without words can't be sent."))
    return Gate("ready", "passed", title, _("The expression can be evaluated, and there is a prompt."))


def _tests_gate(tenant: Tenant, rule: Rule, content: RuleDraft | RuleVersion) -> Gate:
    title = _("Tests of the rule")
    results = run_tests(tenant, rule, edited_set(tenant, rule.code, content))
    if not results:
        return Gate("tests", "open", title, _("The rule has no tests."))
    red = [result for result in results if not result.passed]
    if red:
        sentence = ngettext("%(n)s test of %(code)s fails.", "%(n)s tests of %(code)s fail.", len(red)) % {
            "n": len(red),
            "code": rule.code,
        }
        return Gate("tests", "failed", title, sentence, tuple(red))
    sentence = ngettext("The one test passes.", "All %(n)s tests pass.", len(results)) % {"n": len(results)}
    return Gate("tests", "passed", title, sentence, tuple(results))


def _labels_gate(tenant: Tenant, rule: Rule, content: RuleDraft | RuleVersion) -> Gate:
    """Points that people judged, and that are as they should be now, must stay so."""
    title = _("Judged points")
    edited = edited_set(tenant, rule.code, content)
    found = labels_of(tenant, rule.code, edited, rule_set(tenant, drafts=False))
    if not found:
        return Gate("labels", "open", title, _("No point of this rule was judged yet."))
    red = [label for label in found if label.turns_red]
    if red:
        sentence = ngettext("%(n)s judged point turns red.", "%(n)s judged points turn red.", len(red))
        return Gate("labels", "failed", title, sentence % {"n": len(red)}, labels=tuple(red))
    right = sum(label.fires is label.must_fire for label in found)
    sentence = _("%(right)s of %(n)s judged points are as they should be, and none turns red.")
    return Gate("labels", "passed", title, sentence % {"right": right, "n": len(found)}, labels=tuple(found))


def _replay_gate(tenant: Tenant, rule: Rule) -> Gate:
    """Whether a full replay has seen exactly this state of the rule."""
    title = _("Full replay")
    content = RuleDraft.objects.filter(rule=rule).first()
    last = Replay.objects.filter(status=Replay.Status.DONE).order_by("-id").first()
    if last is None or content is None:
        return Gate("replay", "open", title, _("No full replay has been run yet."))
    at = {"name": str(last), "when": last.finished_at}
    for spec in manifest(last).rules:
        if spec.code == rule.code and spec.expression == content.expression and spec.max_nudges == content.max_nudges:
            return Gate("replay", "passed", title, _("Replay %(name)s has seen this state of the rule.") % at)
    return Gate("replay", "open", title, _("The last full replay, %(name)s, has seen another state.") % at)
