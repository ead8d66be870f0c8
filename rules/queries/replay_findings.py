"""Findings of a replay from its packed outcomes: no row a firing (rule-engine.md section 7.2)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db.models import Sum

from eleanor_site.numbers import whole_number
from rules import kept_columns
from rules.domain.columns import segment_digest
from rules.domain.comparing import NOWHERE, translation
from rules.domain.deciding import status_of
from rules.domain.masks import Points
from rules.domain.replaying import unpack_outcome
from rules.domain.results import Finding, Status, chats_digest, merge_counts, sum_of_digests
from rules.domain.settling import NONE, Outcome, Places
from rules.models import RemovedFinding, Replay, ReplayChunk, SegmentChat
from rules.queries.replay_chunks import DoneChunk, chats_in, done_chunk, done_chunks, strays_of
from rules.queries.replay_facets import FacetedChunk, Judgements, Languages, judgements, languages_of
from rules.queries.replays import FindingFilter, manifest
from rules.queries.segments import packed_bits

_STRAY = "s"
# Points that are read at once: few for a page, more and more for an export.
_AT_FIRST = 64
_AT_MOST = 4096


def findings_by_chunk(replay: Replay, wanted: FindingFilter) -> Iterator[list[Finding]]:
    """The same findings chunk by chunk: whoever needs all of them has each segment's rows read once."""
    spoken, said = _looked_up(replay, wanted)
    for chunk in done_chunks(replay):
        if not _may_hold(chunk.row, wanted):
            yield []
            continue
        here = FacetedChunk(chunk, spoken, said)
        found = [finding for _place, finding in _findings_at(chunk, here.places(wanted))]
        found += (finding for _key, finding in _strays(here, wanted, -1))
        yield found


def findings(replay: Replay, wanted: FindingFilter, *, after: str) -> Iterator[tuple[str, Finding]]:
    chunk_number, _dash, offset = after.partition("-")
    first = whole_number(chunk_number, otherwise=0)
    spoken, said = _looked_up(replay, wanted)
    for chunk in done_chunks(replay, first):
        number = chunk.row.number
        if not _may_hold(chunk.row, wanted):
            continue
        here = FacetedChunk(chunk, spoken, said)
        resumed = number == first and bool(offset)
        if not (resumed and offset.startswith(_STRAY)):
            seen = whole_number(offset, otherwise=-1) if resumed else -1
            places = here.places(wanted)
            for place, finding in _findings_at(chunk, places[np.searchsorted(places, seen, side="right") :]):
                yield f"{number}-{place}", finding
        is_stray = resumed and offset[:1] == _STRAY
        yield from _strays(here, wanted, whole_number(offset[1:], otherwise=-1) if is_stray else -1)


def _looked_up(replay: Replay, wanted: FindingFilter) -> tuple[Languages, Judgements]:
    """What the filters ask for beside the chunks themselves."""
    spoken = languages_of(replay) if wanted.language else Languages({})
    return spoken, judgements(replay) if wanted.verdict else Judgements()


def _may_hold(row: ReplayChunk, wanted: FindingFilter) -> bool:
    """Whether the counts of the chunk leave room for such a finding."""
    code, told = wanted.code, wanted.status or wanted.delta
    if wanted.delta == "gone" or told in ("", "same"):
        return True
    counts = json.loads(row.counts)
    if told == "recorded_only":
        alone = counts["recorded_only"]
        return bool(alone.get(code)) if code else bool(alone)
    of_rules = [counts["rules"].get(code, {})] if code else counts["rules"].values()
    return any(of_rule.get(told) for of_rule in of_rules)


def _findings_at(chunk: DoneChunk, places: Places) -> Iterator[tuple[int, Finding]]:
    """The findings at these points, read from the columns in growing portions."""
    columns = chunk.points.columns
    codes = [rule.code for rule in chunk.rules]
    others = [rule.code for rule in chunk.others or ()]
    turns = columns.field("turn")
    at, size = 0, _AT_FIRST
    while at < len(places):
        part = places[at : at + size]
        at, size = at + size, min(size * 4, _AT_MOST)
        numbers = columns.field("chat")[part].tolist()
        chats = chunk.chats_of(set(numbers))
        fired, following = chunk.outcome[part].tolist(), columns.field("next_nudge")[part].tolist()
        compared_with = [NONE] * len(part) if chunk.compared is None else chunk.compared[part].tolist()
        rows = zip(
            part.tolist(),
            numbers,
            columns.field("message")[part].tolist(),
            columns.field("is_round")[part].tolist(),
            turns[part].tolist(),
            fired,
            following,
            compared_with,
            strict=True,
        )
        for place, number, message, is_round, turn, rule, nudge, other in rows:
            chat = chats[number]
            code = None if rule == NONE else codes[rule]
            recorded = columns.codes[nudge - 1] if nudge else None
            yield (
                place,
                Finding(
                    chat.version_id,
                    message,
                    "round" if is_round else "final",
                    chat.turn(turn - int(turns[chat.first_point])),
                    code,
                    recorded,
                    status_of(code, recorded),
                    None if other == NONE else others[other],
                ),
            )


def _strays(here: FacetedChunk, wanted: FindingFilter, seen: int) -> Iterator[tuple[str, Finding]]:
    chunk = here.chunk
    for at, chat, message, turn, recorded in here.strays(wanted):
        if at > seen:
            status: Status = "recorded_only"
            version = chunk.chats[chat].version_id
            yield f"{chunk.row.number}-{_STRAY}{at}", Finding(version, message, "", turn, None, recorded, status)


# --- is it what was written?


def members(replay: Replay) -> list[str]:
    """The content hashes of the chats that were replayed, sorted; only of chunks that are done."""
    found: list[str] = []
    for chunk in done_chunks(replay):
        contents = bytes(chunk.segment.contents)
        found += [contents[32 * chat : 32 * chat + 32].hex() for chat in chats_in(chunk.points, chunk.row.scope)]
    return sorted(found)


def flaws(replay: Replay) -> list[str]:
    """What in the stored result contradicts the rest of it; empty when nothing does.

    Outcomes are compared with their digests, counts with outcomes, columns with theirs, and chats with the hashes
    that the columns name; so a row that was altered afterwards is found, wherever it lies.
    """
    found = []
    digests, parts = [], []
    for chunk in done_chunks(replay):
        number, segment = chunk.row.number, chunk.segment
        contents = bytes(segment.contents)
        if segment_digest(bytes(segment.scalars), segment.text_hash) != segment.digest:
            found.append(f"chunk {number}: the columns of segment {segment.pk} are not what was written")
        held = SegmentChat.objects.filter(segment=segment).order_by("number")
        hashes = [bytes.fromhex(text) for text in held.values_list("version__content_hash", flat=True)]
        if len(hashes) == segment.chat_count and b"".join(hashes) != contents:
            found.append(f"chunk {number}: chats are not those that segment {segment.pk} was made from")
        digest = outcome_digest(chunk.points, chunk.outcome, contents, chunk.row.scope)
        if chunk.row.removed_chats:
            digest = sum_of_digests([digest, chunk.row.removed_digest])
        if digest != chunk.row.result_hash:
            found.append(f"chunk {number}: the outcome is not what was written")
        counts = json.loads(chunk.row.counts)
        removed = _removed_fires(chunk.row)
        for at, rule in enumerate(chunk.rules):
            fires = int(np.count_nonzero(chunk.outcome == at)) + removed.get(rule.code, 0)
            if fires != counts["rules"][rule.code]["fires"]:
                found.append(f"chunk {number}: the firings of {rule.code} are not those of the outcome")
        digests.append(chunk.row.result_hash)
        parts.append(counts)
    # Chunks whose chats were all deleted have nothing left to look at; their numbers count on.
    emptied = ReplayChunk.objects.filter(replay=replay, status="done", segment__isnull=True).order_by("number")
    for result_hash, text in emptied.values_list("result_hash", "counts"):
        digests.append(result_hash)
        parts.append(json.loads(text))
    if replay.status == Replay.Status.DONE:
        if sum_of_digests(digests) != replay.result_digest:
            found.append("the digest of the result is not that of its chunks")
        if json.loads(replay.counts) != merge_counts(parts):
            found.append("the counts are not the sum of the chunks")
    if manifest(replay).digest() != replay.name_digest:
        found.append("the manifest is not what the replay was started with")
    return found


def _removed_fires(row: ReplayChunk) -> dict[str, int]:
    if not row.removed_chats:
        return {}
    rows = RemovedFinding.objects.filter(chunk=row, status__in=("reproduced", "different", "new"))
    return dict(rows.order_by().values_list("code").annotate(n=Sum("count")))


@dataclass(frozen=True)
class Told:
    """What a chunk says of some of its chats: how many they are, the digest of what was decided there, and each
    finding as status, code and chat version; `newly` and `gone` beside the four statuses."""

    chats: int
    digest: str
    findings: list[tuple[str, str, int]]


def told_of(row: ReplayChunk, numbers: Collection[int]) -> Told:
    """Of the chats of the chunk's segment with these numbers, as far as they belong to its scope."""
    chunk = done_chunk(row)
    faceted = FacetedChunk(chunk, Languages({}), Judgements())
    inside = [number for number in chats_in(chunk.points, row.scope) if number in numbers]
    here = np.isin(chunk.points.columns.field("chat"), inside)
    bits = packed_bits(inside, chunk.segment.chat_count)
    digest = outcome_digest(chunk.points, chunk.outcome, bytes(chunk.segment.contents), bits)
    found: list[tuple[str, str, int]] = []
    for status in ("", "newly", "gone"):
        places = faceted.places(FindingFilter(delta=status))
        for _place, finding in _findings_at(chunk, places[here[places]]):
            code = finding.compared if status == "gone" else finding.code or finding.recorded
            found.append((status or str(finding.status), code or "", finding.version))
    for chat, _message, _turn, code in strays_of(chunk.segment, bits):
        found.append(("recorded_only", code, chunk.chats[chat].version_id))
    return Told(len(inside), digest, found)


def outcome_digest(points: Points, outcome: Outcome, contents: bytes, kept: Any) -> str:
    """Names what was decided in each chat of the scope, whatever segment it lies in."""
    starts = points.columns.chat_starts.tolist()
    decided = outcome.astype("<u2").tobytes()
    return chats_digest(
        (contents[32 * chat : 32 * chat + 32], decided[2 * starts[chat] : 2 * starts[chat + 1]])
        for chat in chats_in(points, kept)
    )


# --- two replays


@dataclass
class _Pair:
    """A chunk of the right replay, and what the left one decided at its points, as far as both have the chats.

    `old` holds places in the left list; `lined_up` tells of each point whether its chat is in both.
    """

    chunk: DoneChunk
    old: Outcome
    lined_up: Any
    chats: int


def _pairs(left: Replay, right: Replay, first: int = 0) -> Iterator[_Pair]:
    """The chunks of the right replay beside the left one's decisions.

    Chunks over the same chats of the same segment lie side by side as they are; other chats are found by what they
    hold, whatever segments they lay in.
    """
    rows = ReplayChunk.objects.filter(replay=left, status="done", segment__isnull=False)
    same = {(segment, _bytes(kept)): pk for pk, segment, kept in rows.values_list("pk", "segment", "scope")}
    known: dict[bytes, Any] | None = None
    for chunk in done_chunks(right, first):
        columns, kept = chunk.points.columns, chunk.row.scope
        pk = same.get((chunk.row.segment_id or 0, _bytes(kept)))
        if pk is not None:
            old = unpack_outcome(bytes(rows.values_list("result", flat=True).get(pk=pk) or b""))
            scope = chunk.points.scope
            lined_up = np.ones(columns.points, dtype=np.bool_) if scope is None else scope
            yield _Pair(chunk, old, lined_up, len(chats_in(chunk.points, kept)))
            continue
        if known is None:
            known = dict(_decided(left))
        yield _by_content(chunk, known)


def _bytes(kept: Any) -> bytes | None:
    return None if kept is None else bytes(kept)


def _by_content(chunk: DoneChunk, known: Mapping[bytes, Any]) -> _Pair:
    columns = chunk.points.columns
    starts = columns.chat_starts.tolist()
    contents = bytes(chunk.segment.contents)
    old = np.full(columns.points, NONE, dtype=np.uint16)
    lined_up = np.zeros(columns.points, dtype=np.bool_)
    shared = 0
    for chat in chats_in(chunk.points, chunk.row.scope):
        start, end = starts[chat], starts[chat + 1]
        before = known.get(contents[32 * chat : 32 * chat + 32])
        if before is not None and len(before) == end - start:
            old[start:end], lined_up[start:end] = before, True
            shared += 1
    return _Pair(chunk, old, lined_up, shared)


def changes(left: Replay, right: Replay) -> tuple[dict[str, tuple[int, int]], int]:
    """Firings that only the right one has, and only the left one, by code; and the number of chats lined up."""
    rules_left, rules_right = (kept_columns.engine_rules(manifest(replay).rules) for replay in (left, right))
    table = translation(rules_left, rules_right)
    newly = np.zeros(len(rules_right) + 1, dtype=np.int64)
    gone = np.zeros(len(rules_left) + 1, dtype=np.int64)
    shared = 0
    for pair in _pairs(left, right):
        shared += pair.chats
        new = pair.chunk.outcome
        differs = np.flatnonzero(pair.lined_up & (table[pair.old] != new))
        newly += np.bincount(np.minimum(new[differs], len(rules_right)), minlength=len(newly))
        gone += np.bincount(np.minimum(pair.old[differs], len(rules_left)), minlength=len(gone))
    found: dict[str, tuple[int, int]] = {}
    for rule, count in zip(rules_right, newly.tolist(), strict=False):
        found[rule.code] = (count, 0)
    for rule, count in zip(rules_left, gone.tolist(), strict=False):
        found[rule.code] = (found.get(rule.code, (0, 0))[0], count)
    return found, shared


def changed_points(
    left: Replay, right: Replay, *, code: str, after: str
) -> Iterator[tuple[str, int, int, str, int, str | None, str | None]]:
    """Points at which the two decide otherwise: key, version, message, stage, turn, left and right rule."""
    rules_left = kept_columns.engine_rules(manifest(left).rules)
    chunk_number, _dash, offset = after.partition("-")
    first = whole_number(chunk_number, otherwise=0)
    for pair in _pairs(left, right, first):
        chunk, old = pair.chunk, pair.old
        table = translation(rules_left, chunk.rules)
        differs = pair.lined_up & (table[old] != chunk.outcome)
        if code:
            was, now = (next((n for n, r in enumerate(rules) if r.code == code), NOWHERE)
                        for rules in (rules_left, chunk.rules))  # fmt: skip
            differs &= (old == was) | (chunk.outcome == now)
        places = np.flatnonzero(differs)
        if chunk.row.number == first and offset:
            seen = whole_number(offset, otherwise=-1)
            places = places[np.searchsorted(places, seen, side="right") :]
        for place, finding in _findings_at(chunk, places):
            before = int(old[place])
            rule = None if before == NONE else rules_left[before].code
            key = f"{chunk.row.number}-{place}"
            yield key, finding.version, finding.message, finding.stage, finding.turn, rule, finding.code


def _decided(replay: Replay) -> Iterator[tuple[bytes, Any]]:
    """What was decided at the points of each chat, by what the chat holds."""
    for chunk in done_chunks(replay):
        starts = chunk.points.columns.chat_starts.tolist()
        contents = bytes(chunk.segment.contents)
        for chat in chats_in(chunk.points, chunk.row.scope):
            yield contents[32 * chat : 32 * chat + 32], chunk.outcome[starts[chat] : starts[chat + 1]]
