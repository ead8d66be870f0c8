"""What the list of rules says of each rule's history: nudges of the last days, the last one, and verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Count, OuterRef, Q, Subquery, Sum
from django.utils import timezone

from rules.models import NudgeDay, RecordedNudge, Rule, Verdict
from rules.queries.day_charts import Span
from rules.queries.nudge_statistics import fires_by_day

DAYS: Final = 7
FEWEST_VERDICTS: Final = 20
"""With fewer verdicts a percentage says more about chance than about the rule (product.md 5.9)."""


@dataclass(frozen=True)
class RuleNumbers:
    """Nudges a day, oldest first; `right` of `judged` verdicts that say right or wrong.

    `last_fired` is the newest nudge whose time is known and `source` where that one came from; `undated` counts the
    nudges whose time isn't.
    """

    days: list[int] = field(default_factory=lambda: [0] * DAYS)
    last_fired: datetime | None = None
    source: str = ""
    undated: int = 0
    right: int = 0
    judged: int = 0

    @property
    def fires(self) -> int:
        return sum(self.days)

    @property
    def precision(self) -> int | None:
        """In per cent; None while too few points were judged."""
        return round(100 * self.right / self.judged) if self.judged >= FEWEST_VERDICTS else None


def rule_numbers(codes: Sequence[str]) -> dict[str, RuleNumbers]:
    """The numbers of each of these codes, by a few queries whatever their number."""
    today = timezone.now().date()
    days = fires_by_day(codes, Span(today - timedelta(days=DAYS - 1), today))
    said = Verdict.objects.filter(code__in=codes, value__in=("right", "wrong")).order_by().values_list("code")
    verdicts = {
        code: (right, n) for code, right, n in said.annotate(right=Count("pk", filter=Q(value="right")), n=Count("pk"))
    }
    cells = NudgeDay.objects.filter(code__in=codes, count__gt=0).order_by().values_list("code")
    undated = dict(cells.filter(day="").annotate(n=Sum("count")))
    total = dict(cells.filter(day=NudgeDay.ALL_DAYS).annotate(n=Sum("count")))
    # Where no nudge has a time, looking for the newest one that has would read them all.
    last = _last_fired([code for code in total if total[code] > undated.get(code, 0)])
    found = {}
    for code in codes:
        at, source = last.get(code, (None, ""))
        right, judged = verdicts.get(code, (0, 0))
        found[code] = RuleNumbers(days[code], at, source, undated.get(code, 0), right, judged)
    return found


def _last_fired(codes: Sequence[str]) -> dict[str, tuple[datetime, str]]:
    """When each of these codes was last nudged, and the source of that nudge; one step in an index each."""
    of_code = RecordedNudge.objects.filter(code=OuterRef("code"), at__isnull=False).order_by("-sorted_at", "-id")
    newest = Rule.objects.filter(code__in=codes).annotate(newest=Subquery(of_code.values("pk")[:1]))
    found = RecordedNudge.objects.filter(pk__in=list(newest.values_list("newest", flat=True)))
    return {code: (at, source) for code, at, source in found.values_list("code", "at", "source") if at is not None}
