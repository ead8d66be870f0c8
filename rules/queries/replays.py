"""Reading replays: progress, counts per rule, and their findings page by page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from chats.models import ChatVersion
from rules.domain.manifest import Manifest
from rules.domain.results import Finding, merge_counts, unpack
from rules.models import Replay, ReplayChunk

PAGE = 50


@dataclass(frozen=True)
class RuleRow:
    """One rule in a replay's report. `others` are nudges with a code that the rule set doesn't have."""

    code: str
    stage: str
    counts: dict[str, int]
    recorded_only: int


@dataclass(frozen=True)
class Progress:
    done: int
    total: int
    rate: float | None
    seconds_left: int | None

    @property
    def rate_text(self) -> str:
        return _("%(n)s chats a second") % {"n": f"{self.rate:.0f}"} if self.rate else ""

    @property
    def left_text(self) -> str:
        return _("about %(n)s s left") % {"n": self.seconds_left} if self.seconds_left else ""


def replays() -> QuerySet[Replay]:
    return Replay.objects.select_related("by").order_by("-id")


def manifest(replay: Replay) -> Manifest:
    return Manifest.model_validate_json(replay.manifest)


def progress(replay: Replay) -> Progress:
    """Chats done of all, chats a second, and seconds that remain at that rate."""
    done = replay.chats_total * replay.chunks_done // replay.chunks_total if replay.chunks_total else 0
    rate = None
    if replay.started_at and done:
        seconds = ((replay.finished_at or timezone.now()) - replay.started_at).total_seconds()
        rate = done / seconds if seconds > 0 else None
    left = round((replay.chats_total - done) / rate) if rate and not replay.finished_at else None
    return Progress(done, replay.chats_total, rate, left)


def counts(replay: Replay) -> dict[str, Any]:
    """Counts over what is done so far."""
    if replay.counts != "{}":
        found: dict[str, Any] = json.loads(replay.counts)
        return found
    parts = ReplayChunk.objects.filter(replay=replay, status="done").order_by("number")
    return merge_counts([json.loads(text) for text in parts.values_list("counts", flat=True)])


def rule_rows(replay: Replay) -> tuple[list[RuleRow], dict[str, int]]:
    """The rules of the set in their order with their counts, and recorded nudges of codes that the set lacks."""
    found = counts(replay)
    rows = []
    specs = manifest(replay).rules
    for spec in specs:
        empty = {"points": 0, "matches": 0, "fires": 0, "shadowed": 0, "capped": 0, "reproduced": 0, "different": 0}
        of_rule = {**empty, "new": 0, **found["rules"].get(spec.code, {})}
        rows.append(RuleRow(spec.code, spec.stage, of_rule, found["recorded_only"].get(spec.code, 0)))
    known = {spec.code for spec in specs}
    return rows, {code: n for code, n in found["recorded_only"].items() if code not in known}


def findings(replay: Replay, *, code: str = "", status: str = "", after: str = "") -> Iterator[tuple[str, Finding]]:
    """Findings in the order of the replay, each with its key; `after` is the key that the page before ended with."""
    chunk, _dash, offset = after.partition("-")
    first, skip = (int(chunk), int(offset) + 1) if chunk.isdigit() and offset.isdigit() else (0, 0)
    rows = ReplayChunk.objects.filter(replay=replay, status="done", number__gte=first).order_by("number")
    for number, blob in rows.values_list("number", "result").iterator(chunk_size=4):
        for at, finding in enumerate(unpack(bytes(blob or b""))):
            if number == first and at < skip:
                continue
            if code and code not in (finding.code, finding.recorded if finding.code is None else finding.code):
                continue
            if status and finding.status != status:
                continue
            yield f"{number}-{at}", finding


def finding_page(
    replay: Replay, *, code: str = "", status: str = "", after: str = ""
) -> tuple[list[dict[str, Any]], str | None]:
    """One page of findings with the chats that they belong to, and the key to go on from."""
    rows: list[tuple[str, Finding]] = []
    for row in findings(replay, code=code, status=status, after=after):
        rows.append(row)
        if len(rows) > PAGE:
            break
    shown = rows[:PAGE]
    wanted = {f.version for _key, f in shown}
    versions = {v.pk: v for v in ChatVersion.objects.filter(pk__in=wanted).select_related("chat").defer("content")}
    page = [
        {"key": key, "finding": f, "chat": versions[f.version].chat, "version": versions[f.version]} for key, f in shown
    ]
    return page, shown[-1][0] if len(rows) > PAGE else None
