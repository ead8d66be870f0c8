"""Findings of a replay from its packed outcomes: no row a firing (rule-engine.md section 7.2)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from django.db.models import Sum

from eleanor_site.numbers import whole_number
from rules import kept_columns
from rules.domain.columns import segment_digest
from rules.domain.comparing import NOWHERE, translation
from rules.domain.masks import Points
from rules.domain.replaying import unpack_outcome
from rules.domain.results import Finding, Status, chats_digest, merge_counts, sum_of_digests
from rules.domain.settling import NONE, Outcome, Places, Rule
from rules.domain.turns import Defaults
from rules.domain.walk import status_of
from rules.models import RemovedFinding, Replay, ReplayChunk, Segment, SegmentChat
from rules.queries.replays import compared, manifest
from rules.queries.segments import Part, packed_bits

_STRAY = "s"
# Points that are read at once: few for a page, more and more for an export.
_AT_FIRST = 64
_AT_MOST = 4096
_FEW_CHATS = 200


@dataclass
class _Chunk:
    """A chunk that is done, with its points once somebody needs them."""

    row: ReplayChunk
    defaults: Defaults
    rules: list[Rule]
    others: list[Rule] | None

    @cached_property
    def segment(self) -> Segment:
        assert self.row.segment is not None, "a chunk that is done has its segment"
        return self.row.segment

    @cached_property
    def points(self) -> Points:
        kept = None if self.row.scope is None else bytes(self.row.scope)
        part = Part(self.segment.pk, self.segment.digest, kept, 0, 0)
        [points] = kept_columns.views_of(self.row.tenant, [part], self.defaults)
        return points

    @cached_property
    def outcome(self) -> Outcome:
        return unpack_outcome(bytes(self.row.result or b""))

    @cached_property
    def compared(self) -> Outcome | None:
        """The outcome of the other rule set, as places in its own list."""
        return None if self.row.compared is None else unpack_outcome(bytes(self.row.compared))

    @cached_property
    def translated(self) -> Outcome | None:
        """The same as places in this replay's list; NOWHERE for rules that it lacks."""
        if self.compared is None:
            return None
        return translation(self.others or [], self.rules)[self.compared]

    @cached_property
    def chats(self) -> dict[int, SegmentChat]:
        rows = SegmentChat.objects.filter(segment=self.row.segment_id)
        return {row.number: row for row in rows}

    def chats_of(self, numbers: Collection[int]) -> Mapping[int, SegmentChat]:
        """The chats of these numbers: a page needs a few of thousands."""
        if "chats" in self.__dict__ or len(numbers) > _FEW_CHATS:
            return self.chats
        rows = SegmentChat.objects.filter(segment=self.row.segment_id, number__in=sorted(numbers))
        return {row.number: row for row in rows}


def _chunks(replay: Replay, first: int = 0) -> Iterator[_Chunk]:
    """Chunks that are done, in their order."""
    frozen = manifest(replay)
    rules = kept_columns.engine_rules(frozen.rules)
    against = compared(replay)
    others = kept_columns.engine_rules(against.rules) if against is not None else None
    rows = ReplayChunk.objects.filter(replay=replay, status="done", number__gte=first, segment__isnull=False)
    unread = ("scalars", "people", "tools", "sequels")
    rows = rows.select_related("segment", "tenant").defer("aftermath", *(f"segment__{name}" for name in unread))
    for row in rows.order_by("number").iterator(chunk_size=4):
        yield _Chunk(row, frozen.defaults, rules, others)


def _chunk_of(row: ReplayChunk) -> _Chunk:
    frozen, against = manifest(row.replay), compared(row.replay)
    others = kept_columns.engine_rules(against.rules) if against is not None else None
    return _Chunk(row, frozen.defaults, kept_columns.engine_rules(frozen.rules), others)


def findings_by_chunk(replay: Replay, *, code: str, status: str) -> Iterator[list[Finding]]:
    """The same findings chunk by chunk: whoever needs all of them has each segment's rows read once."""
    for chunk in _chunks(replay):
        found: list[Finding] = []
        if _may_hold(chunk.row, code, status):
            found += (finding for _place, finding in _findings_at(chunk, _places(chunk, code, status)))
            if status in ("", "recorded_only"):
                found += (finding for _key, finding in _strays(chunk, code, -1))
        yield found


def findings(replay: Replay, *, code: str, status: str, after: str) -> Iterator[tuple[str, Finding]]:
    chunk_number, _dash, offset = after.partition("-")
    first = whole_number(chunk_number, otherwise=0)
    for chunk in _chunks(replay, first):
        number = chunk.row.number
        resumed = number == first and bool(offset)
        if _may_hold(chunk.row, code, status):
            seen = whole_number(offset, otherwise=-1) if resumed else -1
            if not (resumed and offset.startswith(_STRAY)):
                places = _places(chunk, code, status)
                for place, finding in _findings_at(chunk, places[np.searchsorted(places, seen, side="right") :]):
                    yield f"{number}-{place}", finding
            if status in ("", "recorded_only"):
                is_stray = resumed and offset[:1] == _STRAY
                seen_strays = whole_number(offset[1:], otherwise=-1) if is_stray else -1
                yield from _strays(chunk, code, seen_strays)


def _may_hold(row: ReplayChunk, code: str, status: str) -> bool:
    """Whether the counts of the chunk leave room for such a finding."""
    if status in ("", "gone"):
        return True
    counts = json.loads(row.counts)
    if status == "recorded_only":
        alone = counts["recorded_only"]
        return bool(alone.get(code)) if code else bool(alone)
    of_rules = [counts["rules"].get(code, {})] if code else counts["rules"].values()
    return any(of_rule.get(status) for of_rule in of_rules)


def _places(chunk: _Chunk, code: str, status: str) -> Places:
    """The points of the chunk that the filters leave, ascending."""
    columns, outcome = chunk.points.columns, chunk.outcome
    following = columns.field("next_nudge")
    numbers = np.array([columns.code_number(rule.code) for rule in chunk.rules] + [-1], dtype=np.int64)
    fired = outcome != NONE
    own = numbers[np.where(fired, outcome, len(chunk.rules))]
    match status:
        case "reproduced":
            found = fired & (following == own)
        case "different":
            found = fired & (following > 0) & (following != own)
        case "new":
            found = fired & (following == 0)
        case "recorded_only":
            found = ~fired & (following > 0)
        case "newly" | "gone":
            found = _changed(chunk, status)
        case _:
            found = fired | (following > 0)
    if code and status != "gone":
        at = next((n for n, rule in enumerate(chunk.rules) if rule.code == code), NOWHERE)
        found = found & ((outcome == at) | (~fired & (following == columns.code_number(code))))
    elif code:
        found = found & (_compared_codes(chunk) == code)
    if chunk.points.scope is not None:
        found = found & chunk.points.scope
    return np.flatnonzero(found)


def _changed(chunk: _Chunk, status: str) -> Any:
    other = chunk.translated
    if other is None:
        return np.zeros(chunk.points.columns.points, dtype=np.bool_)
    if status == "newly":
        return (chunk.outcome != NONE) & (chunk.outcome != other)
    return (other != NONE) & (chunk.outcome != other)


def _compared_codes(chunk: _Chunk) -> Any:
    """The code that the other rule set fires at each point."""
    codes = np.array([rule.code for rule in chunk.others or ()] + [""], dtype=object)
    other = chunk.compared
    if other is None:
        return np.full(chunk.points.columns.points, "", dtype=object)
    return codes[np.where(other == NONE, len(codes) - 1, other)]


def _findings_at(chunk: _Chunk, places: Places) -> Iterator[tuple[int, Finding]]:
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


def _strays(chunk: _Chunk, code: str, seen: int) -> Iterator[tuple[str, Finding]]:
    kept = None if chunk.row.scope is None else bytes(chunk.row.scope)
    for at, (chat, message, turn, recorded) in enumerate(strays_of(chunk.segment, kept)):
        if at <= seen or (code and recorded != code):
            continue
        status: Status = "recorded_only"
        version = chunk.chats[chat].version_id
        yield f"{chunk.row.number}-{_STRAY}{at}", Finding(version, message, "", turn, None, recorded, status)


def strays_of(segment: Segment, kept: bytes | None) -> list[tuple[int, int, int, str]]:
    """Recorded nudges without a point right before them, of the chats that belong: chat, message, turn, code."""
    return [
        (chat, message, turn, code)
        for chat, message, turn, code in json.loads(segment.strays)
        if kept is None or kept[chat >> 3] & 128 >> (chat & 7)
    ]


# --- is it what was written?


def members(replay: Replay) -> list[str]:
    """The content hashes of the chats that were replayed, sorted; only of chunks that are done."""
    found: list[str] = []
    for chunk in _chunks(replay):
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
    for chunk in _chunks(replay):
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
    chunk = _chunk_of(row)
    inside = [number for number in chats_in(chunk.points, row.scope) if number in numbers]
    here = np.isin(chunk.points.columns.field("chat"), inside)
    bits = packed_bits(inside, chunk.segment.chat_count)
    digest = outcome_digest(chunk.points, chunk.outcome, bytes(chunk.segment.contents), bits)
    found: list[tuple[str, str, int]] = []
    for status in ("", "newly", "gone"):
        places = _places(chunk, "", status)
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

    chunk: _Chunk
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
    for chunk in _chunks(right, first):
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


def _by_content(chunk: _Chunk, known: Mapping[bytes, Any]) -> _Pair:
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
    for chunk in _chunks(replay):
        starts = chunk.points.columns.chat_starts.tolist()
        contents = bytes(chunk.segment.contents)
        for chat in chats_in(chunk.points, chunk.row.scope):
            yield contents[32 * chat : 32 * chat + 32], chunk.outcome[starts[chat] : starts[chat + 1]]


def chats_in(points: Points, kept: Any) -> Sequence[int]:
    """The numbers of the segment's chats that belong."""
    count = points.columns.chats
    if kept is None:
        return range(count)
    bits = np.unpackbits(np.frombuffer(bytes(kept), dtype=np.uint8), count=count)
    numbers: list[int] = np.flatnonzero(bits).tolist()
    return numbers
