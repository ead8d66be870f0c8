"""Which rule codes are known where an expression is written."""

from __future__ import annotations

from rules.models import RecordedNudge, Rule
from rules.queries.rules import live_entries


def known_codes() -> frozenset[str]:
    """Codes of the tenant's rules and of nudges that its histories hold."""
    recorded = RecordedNudge.objects.order_by().values_list("code", flat=True).distinct()[:1000]
    return frozenset(Rule.objects.values_list("code", flat=True)) | frozenset(recorded)


def later_codes(rule: Rule) -> frozenset[str]:
    """Codes of the live rules that come after this one; empty when it isn't live."""
    codes = [e.version.rule.code for e in live_entries()]
    return frozenset(codes[codes.index(rule.code) + 1 :]) if rule.code in codes else frozenset()
