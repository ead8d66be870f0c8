"""What a release did: recorded nudges in the seven days before and after it (product.md section 5.8)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils.translation import gettext as _

from eleanor_site.audit.extras import Extra, add_extra
from eleanor_site.audit.models import Entry
from eleanor_site.tenants.models import Tenant
from rules.models import Release
from rules.queries.day_charts import Span, day_chart
from rules.queries.nudge_statistics import history_counts
from rules.queries.nudges import NudgeFilter

DAYS = 7


@dataclass(frozen=True)
class BeforeAfter:
    """Recorded nudges of one rule in the seven days before the release's day, and from that day on."""

    code: str
    before: int
    after: int

    @property
    def change(self) -> int:
        return self.after - self.before


def add_extras() -> None:
    """Offer it to the page of a change."""
    add_extra(Extra("release", "rules/release_effect.html", around_entry))


def around_entry(tenant: Tenant, entry: Entry) -> dict[str, Any] | None:
    """For an entry about a release that was published; None for others."""
    if not entry.object_id.isdecimal() or len(entry.object_id) > 9:
        return None
    release = Release.objects.filter(number=int(entry.object_id), published_at__isnull=False).first()
    return around(tenant, release) if release else None


def around(tenant: Tenant, release: Release) -> dict[str, Any]:
    """Counts by rule, and a chart of the fourteen days with the release in the middle."""
    assert release.published_at is not None, "only a published release has days around it"
    day = release.published_at.date()
    span = Span(day - timedelta(days=DAYS), day + timedelta(days=DAYS - 1))
    counts = history_counts(NudgeFilter(), span)
    before: Counter[str] = Counter()
    after: Counter[str] = Counter()
    for (when, code), n in counts.items():
        (before if when < day else after)[code] += n
    codes = sorted({*before, *after})
    return {
        "release": release,
        "effect_rows": [BeforeAfter(code, before[code], after[code]) for code in codes],
        "effect_total": BeforeAfter("", before.total(), after.total()),
        "chart": day_chart(tenant, counts, span, unit=_("nudges"), title=_("Recorded nudges around the release")),
    }
