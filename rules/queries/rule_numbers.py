"""What the list of rules says of each rule's history: nudges of the last days, the last one, and verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Count, Max, Q
from django.utils import timezone

from rules.models import RecordedNudge, Verdict
from rules.queries.day_charts import Span
from rules.queries.nudge_statistics import fires_by_day

DAYS: Final = 7
FEWEST_VERDICTS: Final = 20
"""With fewer verdicts a percentage says more about chance than about the rule (product.md 5.9)."""


@dataclass(frozen=True)
class RuleNumbers:
    """Nudges a day, oldest first; `right` of `judged` verdicts that say right or wrong. None: never."""

    days: list[int] = field(default_factory=lambda: [0] * DAYS)
    last_fired: datetime | None = None
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
    """The numbers of each of these codes, by three queries whatever their number."""
    today = timezone.now().date()
    days = fires_by_day(codes, Span(today - timedelta(days=DAYS - 1), today))
    last = dict(
        RecordedNudge.objects.filter(code__in=codes).order_by().values_list("code").annotate(at=Max("sorted_at"))
    )
    said = Verdict.objects.filter(code__in=codes, value__in=("right", "wrong")).order_by().values_list("code")
    verdicts = {
        code: (right, n) for code, right, n in said.annotate(right=Count("pk", filter=Q(value="right")), n=Count("pk"))
    }
    return {code: RuleNumbers(days[code], last.get(code), *verdicts.get(code, (0, 0))) for code in codes}
