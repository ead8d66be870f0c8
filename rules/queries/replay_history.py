"""What a replay found as a part of the history of nudges: by day, by group, in pages.

A replay's firings are no rows (rule-engine.md section 7.2). What is counted over all of them is kept in memory by the
digest of the result, which never changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

from django.utils.translation import gettext as _
from django_scopes import get_scope

from chats.models import ChatVersion
from eleanor_site.tenants.models import Tenant
from rules.domain.results import STATUSES, Finding
from rules.models import RemovedFinding, Replay, Verdict
from rules.queries.day_charts import Span, day_chart, last_days
from rules.queries.nudge_statistics import GROUPS_SHOWN, GroupRow
from rules.queries.nudges import PAGE, NudgeFilter
from rules.queries.replays import findings, manifest

BATCH = 800
# A page of a rare kind looks at so many findings at most, and then offers to go on.
LOOKED_AT = 60_000


class Cell(NamedTuple):
    """One kind of finding, as counted. `day` is None where the chat has no time; `status` that of the finding."""

    day: date | None
    code: str
    version: int
    model: str
    language: str
    status: str


@dataclass(frozen=True)
class VersionFacts:
    """What is known of a chat version, for many findings."""

    chat_id: int
    number: int
    title: str
    model: str
    language: str
    day: date | None


@dataclass(frozen=True)
class FindingRow:
    """A finding of the list. `code` is the rule that fired, or that of the recorded nudge where none did."""

    key: str
    finding: Finding
    facts: VersionFacts
    version: int
    verdicts: Sequence[str]

    @property
    def code(self) -> str:
        return self.finding.code or self.finding.recorded or ""


def finished_replays() -> list[Replay]:
    """The newest replays that are done, for a choice."""
    return list(Replay.objects.filter(status=Replay.Status.DONE).defer("manifest", "counts").order_by("-id")[:30])


def chosen_replay(given: str = "") -> Replay | None:
    """The replay that an address names, else the newest that is done."""
    done = Replay.objects.filter(status=Replay.Status.DONE).order_by("-id")
    if given.isdecimal() and len(given) < 18:
        return done.filter(pk=given).first()
    return done.first()


def facts_of(version_ids: Sequence[int]) -> dict[int, VersionFacts]:
    columns = ("pk", "chat_id", "number", "chat__title", "chat__model", "chat__language", "chat__started_at")
    found = {}
    for at in range(0, len(version_ids), BATCH):
        rows = ChatVersion.objects.filter(pk__in=version_ids[at : at + BATCH]).values_list(*columns)
        for pk, chat_id, number, title, model, language, started in rows:
            day = started.date() if started else None
            found[pk] = VersionFacts(chat_id, number, title or f"#{chat_id}", model, language, day)
    return found


def cells(replay: Replay) -> Counter[Cell]:
    """All findings of a finished replay, counted by kind."""
    tenant: Tenant = get_scope()["tenant"]
    return _cells(tenant.pk, replay.pk, replay.result_digest)


@lru_cache(maxsize=8)
def _cells(tenant: int, replay_id: int, digest: str) -> Counter[Cell]:
    replay = Replay.objects.get(pk=replay_id)
    versions = {spec.code: spec.version for spec in manifest(replay).rules}
    counted: Counter[Cell] = Counter()
    for part in _batches(findings(replay)):
        facts = facts_of(sorted({f.version for _key, f in part}))
        for _key, finding in part:
            of = facts.get(finding.version)
            if of is None or finding.status is None:
                continue
            code = finding.code or finding.recorded or ""
            counted[Cell(of.day, code, versions.get(code, 0), of.model, of.language, finding.status)] += 1
    return counted + _removed(replay_id, versions)


def removed_findings(replay: Replay, wanted: NudgeFilter, *, fired_only: bool) -> int:
    """Findings that the filter leaves in chats that are deleted: they are counted, and no list has them."""
    kinds = _removed(replay.pk, {spec.code: spec.version for spec in manifest(replay).rules})
    return sum(n for cell, n in kinds.items() if _fits(cell, wanted, fired_only=fired_only))


def _removed(replay_id: int, versions: Mapping[str, int]) -> Counter[Cell]:
    counted: Counter[Cell] = Counter()
    for row in RemovedFinding.objects.filter(chunk__replay=replay_id, status__in=STATUSES):
        counted[Cell(row.day, row.code, versions.get(row.code, 0), row.model, row.language, row.status)] += row.count
    return counted


def _batches(found: Iterator[tuple[str, Finding]]) -> Iterator[list[tuple[str, Finding]]]:
    while part := list(islice(found, 5_000)):
        yield part


def chosen_cells(replay: Replay, wanted: NudgeFilter, *, fired_only: bool) -> Counter[Cell]:
    """The cells that the filter leaves; `fired_only` leaves out nudges that only the history holds."""
    return Counter({cell: n for cell, n in cells(replay).items() if _fits(cell, wanted, fired_only=fired_only)})


def _fits(cell: Cell, wanted: NudgeFilter, *, fired_only: bool) -> bool:
    if fired_only and cell.status == "recorded_only":
        return False
    return (
        (not wanted.rule or cell.code == wanted.rule)
        and (not wanted.model or cell.model == ("" if wanted.model == "none" else wanted.model))
        and (not wanted.language or cell.language == ("" if wanted.language == "none" else wanted.language))
        and (wanted.start is None or (cell.day is not None and cell.day >= wanted.start))
        and (wanted.end is None or (cell.day is not None and cell.day <= wanted.end))
    )


def replay_chart(tenant: Tenant, chosen: Counter[Cell], wanted: NudgeFilter) -> dict[str, Any] | None:
    """Firings by the day of their chat and by rule; None when no chat has a time."""
    counts: Counter[tuple[date, str]] = Counter()
    for cell, n in chosen.items():
        if cell.day is not None:
            counts[cell.day, cell.code] += n
    if not counts:
        return None
    newest = wanted.end or max(day for day, _code in counts)
    span = last_days(newest) if wanted.start is None else Span(min(wanted.start, newest), newest)
    title = _("Nudges of the replay by day of the chat and by rule")
    return day_chart(tenant, counts, span, unit=_("nudges"), title=title)


def replay_groups(chosen: Counter[Cell], by: str) -> list[GroupRow]:
    """The findings by rule, version, model or language; the outcomes are their statuses."""
    rows: dict[str, GroupRow] = {}
    for cell, n in chosen.items():
        key = {
            "rule": cell.code,
            "version": f"{cell.code} v{cell.version}" if cell.version else f"{cell.code} ({_('draft or unknown')})",
            "model": cell.model,
            "language": cell.language,
        }.get(by, cell.status)
        row = rows.setdefault(key, GroupRow(key or _("unknown"), ""))
        row.count += n
        row.outcomes[cell.status] += n
    return sorted(rows.values(), key=lambda row: (-row.count, row.label))[:GROUPS_SHOWN]


def replay_page(
    replay: Replay, wanted: NudgeFilter, *, fired_only: bool, after: str = ""
) -> tuple[list[FindingRow], str]:
    """One page in the order of the replay, and the key to go on from (empty at the end)."""
    rows: list[FindingRow] = []
    versions = {spec.code: spec.version for spec in manifest(replay).rules}
    looked_at, last = 0, ""
    for part in _small_batches(findings(replay, code=wanted.rule, after=after)):
        facts = facts_of(sorted({f.version for _key, f in part}))
        for key, finding in part:
            of = facts.get(finding.version)
            if of is None or finding.status is None or not _fits(_cell_of(finding, of), wanted, fired_only=fired_only):
                continue
            if len(rows) == PAGE:
                return _with_verdicts(rows), rows[-1].key
            code = finding.code or finding.recorded or ""
            rows.append(FindingRow(key, finding, of, versions.get(code, 0), ()))
        looked_at += len(part)
        last = part[-1][0]
        if looked_at >= LOOKED_AT:
            return _with_verdicts(rows), last
    return _with_verdicts(rows), ""


def _cell_of(finding: Finding, of: VersionFacts) -> Cell:
    return Cell(of.day, finding.code or finding.recorded or "", 0, of.model, of.language, str(finding.status))


def _small_batches(found: Iterator[tuple[str, Finding]]) -> Iterator[list[tuple[str, Finding]]]:
    """The first ones are small, since a page is mostly filled from them."""
    size = 2 * PAGE
    while part := list(islice(found, size)):
        yield part
        size = 2_000


def _with_verdicts(rows: list[FindingRow]) -> list[FindingRow]:
    said: dict[tuple[Any, ...], list[str]] = {}
    found = Verdict.objects.filter(chat_version__in={row.finding.version for row in rows}).order_by("id")
    for *key, value in found.values_list("chat_version", "message", "stage", "code", "value"):
        said.setdefault(tuple(key), []).append(value)
    return [
        FindingRow(
            row.key,
            row.finding,
            row.facts,
            row.version,
            said.get((row.finding.version, row.finding.message, row.finding.stage, row.code), ()),
        )
        for row in rows
    ]
