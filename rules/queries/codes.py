"""Rule codes: what can be one, and which are known where an expression is written."""

from __future__ import annotations

import re

from django.utils.translation import gettext as _

from rules.models import NudgeDay, Rule
from rules.queries.rules import live_entries

# Words that stand where a code stands in an address (product.md section 4).
RESERVED_CODES = frozenset({"new", "order", "catalogue", "check"})
CODE_LIMIT = 64
_UNFIT = re.compile(r"[/\x00-\x1f\x7f\ud800-\udfff]")


def code_problem(code: str) -> str:
    """Why this text can't be a rule's code, as a sentence; empty when it can."""
    if not code:
        return _("A rule needs a code.")
    if code != code.strip():
        return _("A code has no white space at its ends.")
    if len(code) > CODE_LIMIT:
        return _("A code has at most %(n)s characters.") % {"n": CODE_LIMIT}
    if _UNFIT.search(code):
        return _("A code holds no slash and no control character.")
    if not code.strip("."):
        return _("A code holds something else than dots.")
    if code in RESERVED_CODES:
        return _("“%(code)s” is a word of our addresses. Choose another code.") % {"code": code}
    return ""


def taken(code: str) -> str:
    """A sentence when a rule of this tenant has the code already, else empty."""
    return _("A rule with this code exists already.") if Rule.objects.filter(code=code).exists() else ""


def known_codes() -> frozenset[str]:
    """Codes of the tenant's rules and of nudges that its histories hold."""
    # Counted by day as they are written, so that a keystroke never walks a million rows.
    recorded = (
        NudgeDay.objects.filter(day=NudgeDay.ALL_DAYS).order_by().values_list("code", flat=True).distinct()[:1000]
    )
    return frozenset(Rule.objects.values_list("code", flat=True)) | frozenset(recorded)


def later_codes(rule: Rule) -> frozenset[str]:
    """Codes of the live rules that come after this one; empty when it isn't live."""
    codes = [e.version.rule.code for e in live_entries()]
    return frozenset(codes[codes.index(rule.code) + 1 :]) if rule.code in codes else frozenset()
