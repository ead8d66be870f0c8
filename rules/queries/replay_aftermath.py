"""What came after a replay's firings, from the counts of its chunks (continuation.md section 14)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import QuerySet, Sum

from eleanor_site.jobs import Status
from rules.domain.aftermath import Aftermath, by_group, merged
from rules.models import Preparation, Replay, ReplayChunk
from rules.queries.replays import manifest


@dataclass(frozen=True)
class AftermathReport:
    """What came after a replay's firings, of all chats that the filters leave.

    `by_stage` has for each stage rows of rule, model and counts, without those that never fired; `blind` the same of
    rules that can't see in some chat; `fires` the firings of each rule. `chats` were counted; `uncounted` ones of the
    replay were deleted before, or can't be walked to the same points any more.
    """

    by_stage: Sequence[tuple[str, Sequence[tuple[str, str, Aftermath]]]]
    blind: Sequence[tuple[str, str, Aftermath]]
    fires: Mapping[str, int]
    chats: int
    uncounted: int


@dataclass(frozen=True)
class Counting:
    """How far the counting is, in points."""

    done: int
    total: int

    @property
    def left(self) -> int:
        return self.total - self.done


def untold_chunks(replay: Replay) -> QuerySet[ReplayChunk]:
    """The chunks that are done and don't tell yet what came after."""
    done = ReplayChunk.objects.filter(replay=replay, status=Status.DONE)
    return done.filter(segment__isnull=False, aftermath="")


def counting(replay: Replay) -> Counting:
    """Points whose aftermath is known, of those for which it will be."""
    left = untold_chunks(replay).aggregate(n=Sum("points"))["n"] or 0
    return Counting(replay.points - left, replay.points)


def is_told(replay: Replay) -> bool:
    return not untold_chunks(replay).exists()


def is_being_told(replay: Replay) -> bool:
    """Somebody asked, and the work hasn't failed for good."""
    work = Preparation.objects.filter(kind=Preparation.Kind.AFTERMATH)
    return replay.aftermath_wanted and not work.filter(status=Status.FAILED).exists()


def aftermath_report(replay: Replay, model: str = "", language: str = "") -> AftermathReport:
    """From what the chunks tell; `none` stands for chats whose model or language isn't known."""
    specs = manifest(replay).rules
    chunks = ReplayChunk.objects.filter(replay=replay, status=Status.DONE).exclude(aftermath="").order_by("number")
    parts = (json.loads(text) for text in chunks.values_list("aftermath", flat=True))
    groups = by_group(parts, [spec.code for spec in specs])
    counted = sum(_chats(of_rules) for of_rules in groups.values())
    chosen = {key: found for key, found in groups.items() if _fits(key[0], model) and _fits(key[1], language)}
    totals = {
        name: merged(found for (of, _language), found in chosen.items() if of == name)
        for name in sorted({of for of, _language in chosen})
    }
    by_stage = []
    for stage in ("final", "round"):
        codes = [spec.code for spec in specs if spec.stage == stage]
        rows = [(code, name, found[code]) for code in codes for name, found in totals.items() if found[code].fires]
        if rows:
            by_stage.append((stage, rows))
    codes = [spec.code for spec in specs]
    blind = [(code, name, found[code]) for code in codes for name, found in totals.items() if found[code].blind]
    fires = {code: sum(found[code].fires for found in totals.values()) for code in codes}
    chats = sum(_chats(found) for found in chosen.values())
    return AftermathReport(by_stage, blind, fires, chats, max(0, replay.chats_total - counted))


def _chats(of_rules: dict[str, Aftermath]) -> int:
    """Every rule has seen every chat of the group."""
    return next((counts.chats for counts in of_rules.values()), 0)


def _fits(value: str, wanted: str) -> bool:
    return not wanted or value == ("" if wanted == "none" else wanted)
