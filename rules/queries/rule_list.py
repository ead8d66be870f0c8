"""The list of rules: what its address leaves of them, in which order, and what is known of each (product.md 5.2)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime, timedelta
from typing import Any, Final

from django.http import QueryDict
from django.utils import timezone
from django.utils.http import urlencode

from rules.models import Replay
from rules.queries.rule_numbers import RuleNumbers, rule_numbers
from rules.queries.rules import RuleRow, rule_rows

STAGES: Final = ("final", "round")
STATES: Final = ("live", "observe", "paused", "draft", "archived")
LANGUAGES: Final = ("en", "fr", "no-en", "no-fr")
FIRED: Final = ("7", "30", "not-30", "never")
SORTS: Final = ("code", "fires", "fired", "change", "precision")
REPLAYS_LOOKED_AT: Final = 20


@dataclass(frozen=True)
class RuleFilter:
    """What the address says; empty is the default. Names are those of the address.

    `lang` is a language in which the rule has both title and prompt, or `no-` and one in which either is missing.
    `fired` is a number of days, `not-30`, or `never`. Without `sort` the order is that of evaluation.
    """

    q: str = ""
    stage: str = ""
    state: str = ""
    lang: str = ""
    fired: str = ""
    sort: str = ""

    @property
    def query(self) -> str:
        """The query string; what is at its default doesn't appear."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return urlencode({name: value for name, value in values.items() if value})


@dataclass(frozen=True)
class LastEvaluated:
    """The newest evaluation that left a trace: a recorded nudge, or a finished replay that held the rule.

    `how` is the nudge's source (import, live, observe) or `replay`. An evaluation in live use that came to no nudge
    isn't recorded anywhere.
    """

    at: datetime
    how: str
    replay: int = 0
    title: str = ""


@dataclass(frozen=True)
class ListedRule:
    row: RuleRow
    numbers: RuleNumbers
    evaluated: LastEvaluated | None


def filter_of(given: QueryDict) -> RuleFilter:
    """What it doesn't know counts as the default."""

    def one(name: str, known: Sequence[str]) -> str:
        value = given.get(name, "")
        return value if value in known else ""

    return RuleFilter(
        q=given.get("q", "").replace("\x00", "")[:200].strip(),
        stage=one("stage", STAGES),
        state=one("state", STATES),
        lang=one("lang", LANGUAGES),
        fired=one("fired", FIRED),
        sort=one("sort", SORTS),
    )


def listed_rules(wanted: RuleFilter) -> list[ListedRule]:
    """The rules that the filter leaves, in its order. The number of queries doesn't depend on that of the rules."""
    rows = [row for row in rule_rows(archived=wanted.state == "archived") if _fits(row, wanted)]
    codes = [row.rule.code for row in rows]
    numbers = rule_numbers(codes)
    evaluated = last_evaluations(numbers)
    today = timezone.now().date()
    found = [
        ListedRule(row, numbers[code], evaluated.get(code))
        for row, code in zip(rows, codes, strict=True)
        if _fired(numbers[code].last_fired, numbers[code].undated, wanted.fired, today)
    ]
    # Sorting keeps the order of evaluation among equals.
    return sorted(found, key=_ORDERS[wanted.sort]) if wanted.sort else found


def last_evaluations(numbers: Mapping[str, RuleNumbers]) -> dict[str, LastEvaluated]:
    """By code the newest evaluation that is known. Of replays only the newest finished ones are looked at."""
    found = {code: LastEvaluated(n.last_fired, n.source) for code, n in numbers.items() if n.last_fired is not None}
    missing = set(numbers)
    done = Replay.objects.filter(status=Replay.Status.DONE, finished_at__isnull=False).order_by("-id")
    columns = ("pk", "title", "finished_at", "counts")
    for pk, title, at, counts in done.values_list(*columns)[:REPLAYS_LOOKED_AT].iterator(chunk_size=5):
        for code, of_rule in json.loads(counts).get("rules", {}).items():
            if code in missing and of_rule.get("points"):
                missing.discard(code)
                if code not in found or found[code].at < at:
                    found[code] = LastEvaluated(at, "replay", pk, title or f"#{pk}")
        if not missing:
            break
    return found


def _fits(row: RuleRow, wanted: RuleFilter) -> bool:
    content = row.content
    words = f"{row.rule.code} {content.title_en} {content.title_fr} {content.expression}".casefold()
    if wanted.q.casefold() not in words or wanted.stage not in ("", content.stage):
        return False
    if wanted.state not in ("", row.state):
        return False
    if not wanted.lang:
        return True
    language = wanted.lang.removeprefix("no-")
    has_both = all(getattr(content, f"{name}_{language}").strip() for name in ("title", "prompt"))
    return has_both is not wanted.lang.startswith("no-")


def _fired(last: datetime | None, undated: int, wanted: str, today: date) -> bool:
    """Days are whole ones in UTC, as those of the column that counts nudges."""
    if wanted == "never":
        return last is None and not undated
    if not wanted:
        return True
    days = int(wanted.removeprefix("not-"))
    lately = last is not None and last.date() > today - timedelta(days=days)
    return lately is not wanted.startswith("not-")


def _newest_first(at: datetime | None) -> tuple[bool, float]:
    """Those without a time come last."""
    return (at is None, -at.timestamp() if at else 0.0)


_ORDERS: Final[dict[str, Callable[[ListedRule], Any]]] = {
    "code": lambda listed: listed.row.rule.code.casefold(),
    "fires": lambda listed: -listed.numbers.fires,
    "fired": lambda listed: _newest_first(listed.numbers.last_fired),
    "change": lambda listed: _newest_first(listed.row.changed_at),
    # The least precise first: they are what somebody has to look at.
    "precision": lambda listed: (listed.numbers.precision is None, listed.numbers.precision or 0),
}
