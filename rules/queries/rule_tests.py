"""The tests that are kept with a rule, and what a state of the rule makes of them."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from django.utils.translation import gettext as _

from chats.models import ChatVersion
from chats.queries.chats import record_of
from eleanor_site.tenants.models import Tenant
from rules.domain.context import TurnContext
from rules.domain.deciding import Decision, RuleOutcome, decide, replay
from rules.domain.language.environment import FIELDS, FINISH_REASONS
from rules.domain.manifest import Manifest
from rules.domain.points import Walk
from rules.domain.rule import ContinuationRule
from rules.domain.rule_set import BrokenRule, RuleSpec, compile_rules
from rules.domain.turns import walk
from rules.models import Rule, RuleTest
from rules.queries.manifests import manifest_of

MOST_TESTS: Final = 100
_KEPT_WALKS: Final = 48
_LONGEST_KEPT: Final = 300_000  # characters of a stored chat

Outcome = Literal["fires", "shadowed", "capped", "false", "gone", "broken"]


@dataclass(frozen=True)
class TestResult:
    """One test with what the rule does there: its outcome among the whole rule set.

    `gone` says that the point isn't there any more (another tool catalogue), `broken` that a rule of the set has an
    error, so that nothing could be decided.
    """

    test: RuleTest
    outcome: Outcome
    excerpt: str

    @property
    def passed(self) -> bool:
        if self.outcome in ("gone", "broken"):
            return False
        return (self.outcome == "fires") is self.test.should_fire

    @property
    def word(self) -> str:
        words = {
            "fires": _("it fires"),
            "shadowed": _("it matches, but an earlier rule fires"),
            "capped": _("it matches, but its cap is reached"),
            "false": _("it doesn't match"),
            "gone": _("this point isn't there any more"),
            "broken": _("not run: a rule of the set has an error"),
        }
        return words[self.outcome]


def tests_of(rule: Rule) -> list[RuleTest]:
    found = RuleTest.objects.filter(rule=rule).select_related("chat_version__chat").defer("chat_version__content")
    return list(found.order_by("pk")[:MOST_TESTS])


def run_tests(tenant: Tenant, rule: Rule, specs: Sequence[RuleSpec]) -> list[TestResult]:
    """Each test of the rule under this rule set, which holds the rule in the state that is tried."""
    tests = tests_of(rule)
    if not tests:
        return []
    manifest = manifest_of(tenant, specs, [])
    try:
        rules = compile_rules(specs)
    except BrokenRule:
        return [TestResult(test, "broken", "") for test in tests]
    return [_run(test, rules, manifest, tenant) for test in tests]


def _run(test: RuleTest, rules: Sequence[ContinuationRule], manifest: Manifest, tenant: Tenant) -> TestResult:
    code = test.rule.code
    if test.chat_version is None:
        context = read_context(test.context)
        mine = [rule for rule in rules if rule.code == code]
        decided = decide(mine, context, mine[0].stage) if mine else ()
        return TestResult(test, decided[0].outcome if decided else "false", context.final_text[:160])
    decision = decision_at(tenant, test.chat_version, test.message or 0, test.stage, rules, manifest)
    if decision is None:
        return TestResult(test, "gone", "")
    return TestResult(test, outcome_of(decision, code), decision.context.final_text[:160])


def decision_at(
    tenant: Tenant,
    version: ChatVersion,
    message: int,
    stage: str,
    rules: Sequence[ContinuationRule],
    manifest: Manifest,
) -> Decision | None:
    """What the rules decide at a stored point; None when the chat has no such point."""
    found = _walked(version, manifest, tenant)
    point = next((p for p in found.points if (p.message, p.stage) == (message, stage)), None)
    if point is None:
        return None
    # Counters begin anew at each turn, so the points of this turn decide.
    turn = replace(found, points=[p for p in found.points if p.turn == point.turn])
    return next(d for d in replay(turn, rules, manifest.defaults) if d.point == point)


def outcome_of(decision: Decision, code: str) -> RuleOutcome:
    return next((r.outcome for r in decision.rules if r.code == code), "false")


_walks: OrderedDict[tuple[int, str, str], Walk] = OrderedDict()
_walks_lock = threading.Lock()


def _walked(version: ChatVersion, manifest: Manifest, tenant: Tenant) -> Walk:
    """The walk of a stored chat, kept for the next keystroke. Keyed by tenant first."""
    settings = json.dumps([[e.model_dump() for e in manifest.catalogue], sorted(manifest.known_prompts)])
    key = (tenant.pk, version.content_hash, settings)
    with _walks_lock:
        if key in _walks:
            _walks.move_to_end(key)
            return _walks[key]
    stored = ChatVersion.objects.select_related("chat").get(pk=version.pk)
    found = walk(record_of(stored), manifest.tool_catalogue(), manifest.prompts())
    if len(stored.content) <= _LONGEST_KEPT:
        with _walks_lock:
            _walks[key] = found
            while len(_walks) > _KEPT_WALKS:
                _walks.popitem(last=False)
    return found


def context_problem(text: str) -> str:
    """Why this text isn't a written context, as a sentence; empty when it is one."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return _("This is not JSON.")
    if not isinstance(values, dict):
        return _("A context is a JSON object with fields of the turn context.")
    for name, value in values.items():
        if name not in FIELDS:
            return _("The turn context has no field %(name)s.") % {"name": name}
        if not _fits(FIELDS[name], value):
            return _("The value of %(name)s doesn't fit: expected %(type)s.") % {"name": name, "type": FIELDS[name]}
    return ""


def _fits(kind: str, value: Any) -> bool:
    match kind:
        case "bool":
            return isinstance(value, bool)
        case "int":
            return _is_count(value)
        case "string?":
            return value is None or value in FINISH_REASONS
        case "map":
            return isinstance(value, dict) and all(_is_count(count) for count in value.values())
        case _:
            return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 2**31


def read_context(text: str) -> TurnContext:
    """A written context that was found good when it was stored."""
    values: Mapping[str, Any] = json.loads(text)
    return TurnContext(**values)
