"""Reading the history of recorded nudges: one list with filters, in pages that cost the same at any depth."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet, Sum
from django.db.models.expressions import RawSQL
from django.http import QueryDict
from django_scopes import get_scope

from chats.domain.masking import masked_id
from eleanor_site.days import day_from, within
from eleanor_site.numbers import whole_number
from rules.models import NudgeDay, RecordedNudge, RuleVersion, Verdict

PAGE = 50
Source = RecordedNudge.Source
OUTCOMES = ("acted", "finished", "ignored", "unknown")
GROUPS = ("rule", "version", "model", "language", "verdict")
VERDICTS = (*Verdict.Value.values, "none")


@dataclass(frozen=True)
class NudgeFilter:
    """Filters of the history, as they stand in the URL. `version` is the id of a rule version."""

    rule: str = ""
    version: int | None = None
    model: str = ""
    language: str = ""
    source: str = ""
    outcome: str = ""
    verdict: str = ""
    start: date | None = None
    end: date | None = None

    @property
    def is_empty(self) -> bool:
        return all(getattr(self, f.name) == f.default for f in fields(self))


@dataclass
class NudgeRow:
    """A nudge of the list with what people said of it."""

    nudge: RecordedNudge
    verdicts: list[str] = field(default_factory=list)


def filter_of(given: QueryDict) -> NudgeFilter:
    """The filter that the parameters of an address name; what they can't mean is left out."""

    def text(key: str) -> str:
        return given.get(key, "").replace("\x00", "")[:200]

    def one_of(key: str, known: Sequence[str]) -> str:
        return text(key) if text(key) in known else ""

    version = text("version")
    return NudgeFilter(
        rule=text("rule"),
        version=whole_number(version, otherwise=None, most=10**17 - 1),
        model=text("model"),
        language=text("lang"),
        source=one_of("source", Source.values),
        outcome=one_of("outcome", OUTCOMES),
        verdict=one_of("verdict", VERDICTS),
        start=day_from(text("from")),
        end=day_from(text("to")),
    )


def nudges(wanted: NudgeFilter) -> QuerySet[RecordedNudge]:
    """The newest first, by the time that is known of each."""
    related = RecordedNudge.objects.select_related("chat", "chat_version", "version__rule")
    found: QuerySet[RecordedNudge] = related.defer("chat_version__content").order_by("-sorted_at", "-id")
    found = found.filter(**_kinds(wanted))
    if wanted.version is not None:
        found = found.filter(version=wanted.version) if wanted.version else found.filter(version__isnull=True)
    found = found.filter(**within("sorted_at", wanted.start, wanted.end))
    if wanted.start or wanted.end:
        found = found.filter(at__isnull=False)
    if wanted.verdict:
        found = with_verdict(found, wanted.verdict)
    return found


# Verdicts are few beside nudges: they lead to the nudges, not the other way round.
_JUDGED = (
    "SELECT n.id FROM rules_verdict v JOIN rules_recordednudge n ON n.chat_version_id = v.chat_version_id "
    "AND n.point = v.message AND n.stage = v.stage AND n.code = v.code WHERE v.tenant_id = %s"
)


def with_verdict(found: QuerySet[RecordedNudge], verdict: str) -> QuerySet[RecordedNudge]:
    """Those with this verdict of anybody; `any`: those that somebody judged; `none`: those that nobody did."""
    tenant = get_scope()["tenant"].pk
    if verdict == "any":
        return found.filter(pk__in=RawSQL(_JUDGED, (tenant,)))
    if verdict == "none":
        here = Q(chat_version=OuterRef("chat_version"), message=OuterRef("point"), stage=OuterRef("stage"))
        return found.filter(~Exists(Verdict.objects.filter(here, code=OuterRef("code"))))
    return found.filter(pk__in=RawSQL(f"{_JUDGED} AND v.value = %s", (tenant, verdict)))


def nudge_page(wanted: NudgeFilter, after: str = "") -> tuple[list[NudgeRow], str]:
    """One page, and the key to go on from (empty at the end). `after` is such a key, `TIME_ID`."""
    found = _after(nudges(wanted), after)
    rows = list(found[: PAGE + 1])
    shown = [NudgeRow(nudge) for nudge in rows[:PAGE]]
    _add_verdicts(shown)
    return shown, key_of(rows[PAGE - 1]) if len(rows) > PAGE else ""


def key_of(nudge: RecordedNudge) -> str:
    return f"{nudge.sorted_at.astimezone(UTC).strftime('%Y%m%dT%H%M%S%f')}_{nudge.pk}"


def _after(found: QuerySet[RecordedNudge], key: str) -> QuerySet[RecordedNudge]:
    moment, _line, pk = key.partition("_")
    try:
        at = datetime.strptime(moment, "%Y%m%dT%H%M%S%f").replace(tzinfo=UTC)
    except ValueError:
        return found
    if not pk.isdecimal() or len(pk) > 18:
        return found
    # The first condition is implied by the second; it lets the index start at the right place.
    return found.filter(sorted_at__lte=at).filter(Q(sorted_at__lt=at) | Q(sorted_at=at, id__lt=int(pk)))


def _add_verdicts(rows: list[NudgeRow]) -> None:
    versions = {row.nudge.chat_version_id for row in rows if row.nudge.chat_version_id}
    said: dict[tuple[Any, ...], list[str]] = {}
    found = Verdict.objects.filter(chat_version__in=versions).order_by("id")
    for *key, value in found.values_list("chat_version", "message", "stage", "code", "value"):
        said.setdefault(tuple(key), []).append(value)
    for row in rows:
        nudge = row.nudge
        row.verdicts = said.get((nudge.chat_version_id, nudge.point, nudge.stage, nudge.code), [])


def day_cells(wanted: NudgeFilter) -> QuerySet[NudgeDay]:
    """The counts that the filter leaves, each nudge once; its verdict is no part of them.

    By day where the filter has days, else the sums over all days, which are far fewer rows.
    """
    found = NudgeDay.objects.filter(count__gt=0)
    if wanted.start or wanted.end:
        # An empty day and the star sort before digits.
        found = found.filter(day__gte=wanted.start.isoformat() if wanted.start else "0")
        if wanted.end:
            found = found.filter(day__lte=wanted.end.isoformat())
    else:
        found = found.filter(day=NudgeDay.ALL_DAYS)
    return _of_kind(found, wanted)


def undated_cells(wanted: NudgeFilter) -> QuerySet[NudgeDay]:
    """The counts of nudges that have no time, whatever days the filter has."""
    return _of_kind(NudgeDay.objects.filter(count__gt=0, day=""), wanted)


def newest_day(wanted: NudgeFilter) -> date | None:
    """The last day with a nudge of the kind that the filter leaves, whatever days it has."""
    found = _of_kind(NudgeDay.objects.filter(count__gt=0, day__gte="0"), wanted)
    day = found.order_by("-day").values_list("day", flat=True).first()
    return date.fromisoformat(day) if day else None


def _of_kind(found: QuerySet[NudgeDay], wanted: NudgeFilter) -> QuerySet[NudgeDay]:
    found = found.filter(**_kinds(wanted))
    return found if wanted.version is None else found.filter(version=wanted.version)


def _kinds(wanted: NudgeFilter) -> dict[str, str]:
    """What recorded nudges and their counts by day are filtered by alike."""
    asked = {
        "code": wanted.rule,
        "model": wanted.model,
        "language": wanted.language,
        "source": wanted.source,
        "outcome": wanted.outcome,
    }
    nothing = {"model": "none", "language": "none", "outcome": "unknown"}
    return {name: "" if value == nothing.get(name) else value for name, value in asked.items() if value}


def codes() -> list[str]:
    """The codes of all nudges that the tenant's histories hold."""
    return list(day_cells(NudgeFilter()).order_by("code").values_list("code", flat=True).distinct())


def models() -> list[str]:
    found = day_cells(NudgeFilter()).exclude(model="")
    return list(found.order_by("model").values_list("model", flat=True).distinct())


def version_labels(ids: Sequence[int]) -> dict[int, str]:
    """`CODE vN` of rule versions by id."""
    found = RuleVersion.objects.filter(pk__in=[pk for pk in ids if pk]).select_related("rule")
    return {version.pk: f"{version.rule.code} v{version.number}" for version in found}


def total(cells: QuerySet[NudgeDay]) -> int:
    return cells.aggregate(n=Sum("count"))["n"] or 0


def export_rows(wanted: NudgeFilter) -> Iterator[dict[str, Any]]:
    """Every nudge that the filter leaves, as plain values; reads on while they are taken.

    Ids that sources gave are masked as on pages; `chat` names the chat, whose own page and export show everything.
    """
    judged = Verdict.objects.order_by("id").values_list("chat_version", "message", "stage", "code", "value")
    said = {tuple(key): value for *key, value in judged}
    columns = (
        "id", "code", "source", "chat_id", "chat__external_id", "chat_version_id", "message", "point", "turn", "stage",
        "version__number", "model", "language", "outcome", "at",
    )  # fmt: skip
    rows = nudges(wanted).values(*columns).iterator(chunk_size=2000)
    masked_source = lru_cache(maxsize=4096)(masked_id)  # a chat has many nudges
    return (_exported(row, said, masked_source) for row in rows)


def _exported(
    row: dict[str, Any], said: dict[tuple[Any, ...], str], masked_source: Callable[[str], str]
) -> dict[str, Any]:
    return {
        "nudge": row["id"],
        "time_utc": row["at"].astimezone(UTC).isoformat() if row["at"] else None,
        "rule": row["code"],
        "version": row["version__number"],
        "source": row["source"],
        "chat": row["chat_id"],
        "external_id": None if row["chat__external_id"] is None else masked_source(row["chat__external_id"]),
        "message": row["message"],
        "point": row["point"],
        "turn": None if row["turn"] is None else row["turn"] + 1,
        "stage": row["stage"],
        "model": row["model"],
        "language": row["language"],
        "outcome": row["outcome"],
        "verdict": said.get((row["chat_version_id"], row["point"], row["stage"], row["code"]), ""),
    }


EXPORT_COLUMNS = (
    "nudge", "time_utc", "rule", "version", "source", "chat", "external_id", "message", "point", "turn", "stage",
    "model", "language", "outcome", "verdict",
)  # fmt: skip


def filter_query(wanted: NudgeFilter) -> str:
    """The filter as the parameters of an address."""
    query = QueryDict(mutable=True)
    values = {
        "rule": wanted.rule,
        "version": "" if wanted.version is None else str(wanted.version),
        "model": wanted.model,
        "lang": wanted.language,
        "source": wanted.source,
        "outcome": wanted.outcome,
        "verdict": wanted.verdict,
        "from": wanted.start.isoformat() if wanted.start else "",
        "to": wanted.end.isoformat() if wanted.end else "",
    }
    for key, value in values.items():
        if value:
            query[key] = value
    return query.urlencode()
