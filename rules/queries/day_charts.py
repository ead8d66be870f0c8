"""Counts by day and rule as the chart component takes them (`components/chart.html`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.urls import reverse
from django.utils import formats
from django.utils.translation import gettext as _

from eleanor_site.audit.models import Entry
from eleanor_site.tenants.models import Tenant
from rules.models import Release

SERIES = 8
DAYS_SHOWN = 28
# So many bars can be told apart; longer spans are drawn by week, then by month.
MOST_BARS = 120

DayCounts = Mapping[tuple[date, str], int]


@dataclass(frozen=True)
class Span:
    """The days that a chart shows, both ends included."""

    start: date
    end: date


def moments(span: Span) -> tuple[datetime, datetime]:
    """The first and the last moment of the span. Its days are those of UTC, whatever zone the reader is in."""
    return datetime.combine(span.start, time.min, UTC), datetime.combine(span.end, time.max, UTC)


def last_days(newest: date, *, days: int = DAYS_SHOWN) -> Span:
    return Span(newest - timedelta(days=days - 1), newest)


def day_chart(
    tenant: Tenant,
    counts: DayCounts,
    span: Span,
    *,
    unit: str,
    title: str,
    chart_id: str = "by-day",
    url_of: Callable[[str], str] | None = None,
) -> dict[str, Any]:
    """Stacked bars of the counts in the span, at most eight series (the smallest together as "other"), with releases.

    `counts` are by day and code; those outside of the span are left out.
    """
    starts, step = _bars(span)
    shown = [((day, code), n) for (day, code), n in counts.items() if span.start <= day <= span.end]
    totals: Counter[str] = Counter()
    for (_day, code), n in shown:
        totals[code] += n
    number = _numbers(totals)
    bars = [Counter[int]() for _start in starts]
    for (day, code), n in shown:
        bars[_bar(day, starts, step)][number[code]] += n
    labels = _labels(number, totals)
    top = _nice(max((bar.total() for bar in bars), default=0))
    total = sum(totals.values())
    return {
        "id": chart_id,
        "title": title,
        "unit": unit,
        "sentence": _sentence(total, unit, span, labels, bars),
        "max": top,
        "ticks": [{"value": value, "label": formats.localize(value)} for value in (0, top // 2, top)],
        "days": [
            {"label": _label(start, step), "total": bar.total(), "segments": _segments(bar, labels)}
            for start, bar in zip(starts, bars, strict=True)
        ],
        "series": [
            {"number": n, "label": label, "total": sum(bar[n] for bar in bars), "url": url_of(label) if url_of else ""}
            for n, label in labels.items()
        ],
        "releases": _releases(tenant, span, starts, step),
    }


def _bars(span: Span) -> tuple[list[date], str]:
    days = (span.end - span.start).days + 1
    if days <= MOST_BARS:
        return [span.start + timedelta(days=n) for n in range(days)], "day"
    first = span.start - timedelta(days=span.start.weekday())
    weeks = (span.end - first).days // 7 + 1
    if weeks <= MOST_BARS:
        return [first + timedelta(weeks=n) for n in range(weeks)], "week"
    months = [span.start.replace(day=1)]
    while (following := (months[-1] + timedelta(days=32)).replace(day=1)) <= span.end:
        months.append(following)
    return months, "month"


def _bar(day: date, starts: list[date], step: str) -> int:
    if step == "month":
        return (day.year - starts[0].year) * 12 + day.month - starts[0].month
    return (day - starts[0]).days // (7 if step == "week" else 1)


def _numbers(totals: Counter[str]) -> dict[str, int]:
    """Which series each code belongs to. The biggest have their own, in the order of their codes."""
    most = SERIES if len(totals) <= SERIES else SERIES - 1
    own = sorted(code for code, _n in sorted(totals.items(), key=lambda item: (-item[1], item[0]))[:most])
    return {code: own.index(code) + 1 if code in own else SERIES for code in totals}


def _labels(number: Mapping[str, int], totals: Counter[str]) -> dict[int, str]:
    labels = {n: code for code, n in sorted(number.items(), key=lambda item: item[1])}
    if len(totals) > SERIES:
        labels[SERIES] = _("other")
    return labels


def _segments(bar: Counter[int], labels: Mapping[int, str]) -> list[dict[str, Any]]:
    found, start = [], 0
    for n, label in labels.items():
        if bar[n]:
            found.append({"series": n, "start": start, "value": bar[n], "label": label})
            start += bar[n]
    return found


def _releases(tenant: Tenant, span: Span, starts: list[date], step: str) -> list[dict[str, Any]]:
    found = Release.objects.filter(published_at__range=moments(span)).order_by("number")
    rows = [(r.number, r.published_at.date()) for r in found if r.published_at]
    entries = Entry.objects.filter(object_type="release", object_id__in=[str(number) for number, _at in rows])
    changes = dict(entries.values_list("object_id", "number"))
    return [
        {
            "day": _bar(day, starts, step),
            "label": _("Release %(n)s, %(day)s") % {"n": number, "day": formats.date_format(day, "SHORT_DATE_FORMAT")},
            "url": reverse("audit:change", args=[tenant.slug, changes[str(number)]])
            if str(number) in changes
            else reverse("rules:release", args=[tenant.slug, number]),
        }
        for number, day in rows
    ]


def _sentence(total: int, unit: str, span: Span, labels: Mapping[int, str], bars: list[Counter[int]]) -> str:
    values = {
        "total": formats.localize(total),
        "unit": unit,
        "start": formats.date_format(span.start, "SHORT_DATE_FORMAT"),
        "end": formats.date_format(span.end, "SHORT_DATE_FORMAT"),
    }
    if not total:
        return _("No %(unit)s from %(start)s to %(end)s.") % values
    most = max(labels, key=lambda n: sum(bar[n] for bar in bars))
    return _("%(total)s %(unit)s from %(start)s to %(end)s; most by %(most)s.") % {**values, "most": labels[most]}


def _label(start: date, step: str) -> str:
    shown = formats.date_format(start, "SHORT_DATE_FORMAT")
    if step == "week":
        return _("week of %(day)s") % {"day": shown}
    return formats.date_format(start, "YEAR_MONTH_FORMAT") if step == "month" else shown


def _nice(value: int) -> int:
    """The end of the axis: the next even number of the kind 2, 4, 6, 10, 20, 40 … that holds the value."""
    if value <= 2:
        return 2
    unit = int("1" + "0" * (len(str(value)) - 1))
    return next(n for step in (1, 2, 4, 6, 8, 10) if (n := step * unit) >= value and n % 2 == 0)
