"""Numbers over the history of nudges: by day, by group, and for each rule and model (continuation.md section 14)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from django.db.models import Count, Sum
from django.utils import timezone
from django.utils.translation import gettext as _

from chats.models import Chat
from eleanor_site.tenants.models import Tenant
from rules.models import RecordedNudge, Verdict
from rules.queries.day_charts import Span, day_chart, last_days, moments
from rules.queries.nudges import (
    NudgeFilter,
    day_cells,
    filter_query,
    newest_day,
    nudges,
    undated_cells,
    version_labels,
    with_verdict,
)

GROUPS_SHOWN = 200
_COLUMNS = {"rule": "code", "version": "version", "model": "model", "language": "language"}


@dataclass
class GroupRow:
    """Nudges with something in common. `query` shows them in the list; shares are of those whose outcome is known."""

    label: str
    query: str
    count: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)

    @property
    def known(self) -> int:
        return self.outcomes["acted"] + self.outcomes["finished"] + self.outcomes["ignored"]

    @property
    def acted(self) -> int:
        return self.outcomes["acted"]

    @property
    def finished(self) -> int:
        return self.outcomes["finished"]

    @property
    def ignored(self) -> int:
        return self.outcomes["ignored"]


@dataclass
class RuleModelRow(GroupRow):
    """Of one rule with one model. `turns` are those of the model's stored chats, None where none is stored."""

    code: str = ""
    model: str = ""
    turns: int | None = None
    imported: int = 0

    @property
    def per_hundred_turns(self) -> float | None:
        """Nudges that stored chats hold, of a hundred turns of them; those of live use may have no stored chat."""
        return 100 * self.imported / self.turns if self.turns else None


def history_span(wanted: NudgeFilter) -> Span:
    """The days of the chart: those of the filter, else 28 days up to the newest nudge."""
    end = wanted.end or newest_day(wanted) or timezone.now().date()
    if wanted.start is None:
        return last_days(end)
    return Span(min(wanted.start, end), end)


def history_counts(wanted: NudgeFilter, span: Span) -> dict[tuple[date, str], int]:
    """Nudges by day and code in the span, which takes the place of the filter's own days."""
    cells = day_cells(replace(wanted, start=span.start, end=span.end))
    rows = cells.order_by().values_list("day", "code").annotate(n=Sum("count"))
    return {(date.fromisoformat(day), code): n for day, code, n in rows}


def history_chart(tenant: Tenant, wanted: NudgeFilter) -> dict[str, Any]:
    """Recorded nudges by day and rule."""
    span = history_span(wanted)
    counts = history_counts(wanted, span)
    return day_chart(tenant, counts, span, unit=_("nudges"), title=_("Recorded nudges by day and rule"))


def undated(wanted: NudgeFilter) -> int:
    """Nudges that no day can be told of; a chart can't show them."""
    if wanted.start or wanted.end:
        return 0
    return undated_cells(wanted).aggregate(n=Sum("count"))["n"] or 0


def groups(wanted: NudgeFilter, by: str) -> list[GroupRow]:
    """The nudges that the filter leaves, by rule, version, model, language or verdict; the biggest first."""
    if by == "verdict":
        return _by_verdict(wanted)
    column = _COLUMNS[by]
    rows: dict[Any, GroupRow] = {}
    for key, outcome, n in day_cells(wanted).order_by().values_list(column, "outcome").annotate(n=Sum("count")):
        row = rows.setdefault(key, GroupRow("", ""))
        row.count += n
        row.outcomes[outcome or "unknown"] += n
    biggest = sorted(rows.items(), key=lambda item: (-item[1].count, str(item[0])))[:GROUPS_SHOWN]
    names = version_labels([key for key, _row in biggest]) if by == "version" else {}
    for key, row in biggest:
        row.label = names.get(key) or (str(key) if by != "version" and key else _("unknown"))
        row.query = filter_query(_narrowed(wanted, by, key))
    return [row for _key, row in biggest]


def _narrowed(wanted: NudgeFilter, by: str, key: Any) -> NudgeFilter:
    if by == "version":
        return replace(wanted, version=int(key))
    if by == "rule":
        return replace(wanted, rule=str(key))
    if by == "model":
        return replace(wanted, model=str(key) or "none")
    return replace(wanted, language=str(key) or "none")


def _by_verdict(wanted: NudgeFilter) -> list[GroupRow]:
    """A nudge that two people judged differently counts under both; the last row has those that nobody judged."""
    found = nudges(replace(wanted, verdict="")).order_by()
    rows = []
    for value in Verdict.Value:
        row = GroupRow(str(value.label), filter_query(replace(wanted, verdict=value.value)))
        counted = with_verdict(found, value.value).values_list("outcome").annotate(n=Count("pk"))
        row.outcomes.update({outcome or "unknown": n for outcome, n in counted})
        row.count = row.outcomes.total()
        rows.append(row)
    labelled = with_verdict(found, "any").count()
    everything = day_cells(wanted).aggregate(n=Sum("count"))["n"] or 0
    rest = GroupRow(_("not judged"), filter_query(replace(wanted, verdict="none")), max(0, everything - labelled))
    return [row for row in rows if row.count] + [rest]


def rules_and_models(wanted: NudgeFilter) -> list[RuleModelRow]:
    """What the recorded nudges of each rule with each model came to, by rule and then by number."""
    rows: dict[tuple[str, str], RuleModelRow] = {}
    cells = day_cells(wanted).order_by().values_list("code", "model", "source", "outcome").annotate(n=Sum("count"))
    for code, model, source, outcome, n in cells:
        row = rows.setdefault((code, model), RuleModelRow(code, "", code=code, model=model))
        row.count += n
        row.outcomes[outcome or "unknown"] += n
        if source == RecordedNudge.Source.IMPORT:
            row.imported += n
    turns = turns_by_model(wanted)
    for (code, model), row in rows.items():
        row.turns = turns.get(model)
        row.query = filter_query(replace(wanted, rule=code, model=model or "none"))
    return sorted(rows.values(), key=lambda row: (row.code, -row.count, row.model))


def turns_by_model(wanted: NudgeFilter) -> dict[str, int]:
    """Turns of the stored chats that the filter's language and days leave."""
    found = Chat.objects.order_by()
    if wanted.language:
        found = found.filter(language="" if wanted.language == "none" else wanted.language)
    if wanted.start or wanted.end:
        span = Span(wanted.start or date.min, wanted.end or date.max)
        found = found.filter(started_at__range=moments(span))
    return {model: n for model, n in found.values_list("model").annotate(n=Sum("turn_count")) if n}


def fires_by_day(codes: Sequence[str], span: Span) -> dict[str, list[int]]:
    """Of each code, its recorded nudges on each day of the span."""
    index = {(span.start.toordinal() + n): n for n in range((span.end - span.start).days + 1)}
    found = {code: [0] * len(index) for code in codes}
    for (day, code), n in history_counts(NudgeFilter(), span).items():
        if code in found:
            found[code][index[day.toordinal()]] += n
    return found
