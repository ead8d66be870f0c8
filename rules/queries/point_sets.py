"""Effects and point lists over the columns: what stands behind `rules.queries.effects`."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, timedelta
from typing import Any, Final

import numpy as np

from chats.domain.languages import language_of
from eleanor_site.numbers import whole_number
from eleanor_site.tenants.models import Tenant
from rules import kept_columns, text_files
from rules.domain.atoms import OutOfTime, atoms_of
from rules.domain.comparing import NOWHERE, counterfactual, place_of, translation
from rules.domain.context import TurnContext
from rules.domain.corpus_findings import Observed, observed_values
from rules.domain.corpus_findings import corpus_warnings as warnings_of
from rules.domain.effects import Effect, LiveEffects
from rules.domain.language.diagnostics import Diagnostic
from rules.domain.language.environment import FIELDS
from rules.domain.language.tree import Node
from rules.domain.masks import Points
from rules.domain.near_misses import Clause
from rules.domain.near_misses import near_misses as clauses_with_misses
from rules.domain.replaying import counts_of
from rules.domain.results import merge_counts
from rules.domain.rule_changes import RuleChange, rule_changes
from rules.domain.rule_set import BrokenRule, RuleSpec, rule_set_digest
from rules.domain.scalar import Mark, trace
from rules.domain.segment_cache import SegmentCache
from rules.domain.settling import (
    NONE,
    Outcome,
    Places,
    Rule,
    candidates,
    codes_of,
    counts_of_others,
    matched,
    own_counts,
)
from rules.models import SegmentChat
from rules.queries.effects import (
    PREVIEW_SECONDS,
    SETS,
    ClauseMisses,
    CorpusFacts,
    Daily,
    Day,
    EffectAnswer,
    Excerpt,
    OrderAnswer,
    OrderRow,
    PointPage,
    PointRow,
    State,
    TextPart,
)
from rules.queries.manifests import defaults_of
from rules.queries.rules import rule_set
from rules.queries.segments import CorpusView, Part, Scope, is_importing, kept_view

EXCERPT_LENGTH: Final = 280
EXCERPT_BEFORE: Final = 80
# Kept beside the unpacked columns: outcomes and candidates of the live rules, in bytes a point.
_LIVE_BYTES: Final = 36
_live_cache: Final = SegmentCache(128 * 1024 * 1024)
_day_cache: Final = SegmentCache(32 * 1024 * 1024)
_UNDATED: Final = -1


@dataclass
class _Kept:
    """A corpus with its live rules settled, and what was worked out from that."""

    live: LiveEffects
    before: dict[str, dict[str, int]] = field(default_factory=dict)
    counts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class _Engine:
    """A corpus that questions can be asked of, or the state that keeps it from that."""

    state: State
    facts: CorpusFacts
    view: CorpusView
    kept: _Kept | None = None
    broken_code: str = ""
    prepared: int = 0
    prepare_total: int = 0

    @property
    def live(self) -> LiveEffects:
        assert self.kept is not None, "only asked when the state is ready"
        return self.kept.live


def _engine(tenant: Tenant, scope: Scope, deadline: float | None) -> _Engine:
    view = kept_view(tenant, scope)
    facts = CorpusFacts(scope.name(), view.digest, view.chats, view.points, view.missing, is_importing(), view.as_of)
    if not view.parts:
        state: State = "preparing" if view.missing else "empty"
        return _Engine(state, facts, view, prepare_total=view.missing)
    live_specs = rule_set(tenant, drafts=False)
    try:
        live_rules = kept_columns.engine_rules(live_specs)
    except BrokenRule as broken:
        return _Engine("broken", facts, view, broken_code=broken.code)
    defaults = defaults_of(tenant)
    key = (view.digest, rule_set_digest(live_specs), defaults)
    kept = _live_cache.peek(tenant.pk, key)
    if kept is None:
        views = kept_columns.views_of(tenant, view.parts, defaults)
        ready = _prepared(tenant, views, view.parts, [rule.tree for rule in live_rules], deadline)
        if ready < len(views):
            return _Engine("preparing", facts, view, prepared=ready, prepare_total=len(views))
        kept = _live_cache.get(
            tenant.pk, key, lambda: (_Kept(LiveEffects(views, live_rules)), view.points * _LIVE_BYTES)
        )
    return _Engine("ready", facts, view, kept)


def _prepared(
    tenant: Tenant, views: Sequence[Points], parts: Sequence[Part], trees: Sequence[Node], deadline: float | None
) -> int:
    """Of how many segments all text terms of the trees are known, after searching for them until the deadline."""
    if kept_columns.fetch_bits(views, parts, trees):
        return len(views)
    ready = 0
    for view in views:
        try:
            view.atoms.fill(trees, deadline)
        except text_files.TextsGone:
            continue
        ready += all(view.atoms.is_complete(key) for tree in trees for key in atoms_of(tree))
        if deadline is not None and time.monotonic() > deadline:
            break
    if ready < len(views):
        # Some were complete all along.
        ready = sum(all(v.atoms.is_complete(key) for tree in trees for key in atoms_of(tree)) for v in views)
    kept_columns.store_bits(tenant, views, parts)
    return ready


# --- the effect


def effect(tenant: Tenant, specs: Sequence[RuleSpec], code: str, scope: Scope, seconds: float | None) -> EffectAnswer:
    started = time.monotonic()
    deadline = None if seconds is None else started + seconds
    engine = _engine(tenant, scope, deadline)
    found, state, broken = _effect(tenant, engine, specs, code, seconds)
    before = _before(engine, code) if state == "ready" else None
    return EffectAnswer(
        state,
        engine.facts,
        # Numbers only: a page's context lives in a cycle until the collector comes by, and would keep megabytes alive.
        None if found is None else replace(found, segments=()),
        before,
        broken,
        engine.prepared,
        engine.prepare_total,
        (time.monotonic() - started) * 1000,
    )


def _effect(
    tenant: Tenant, engine: _Engine, specs: Sequence[RuleSpec], code: str, seconds: float | None
) -> tuple[Effect | None, State, str]:
    if engine.state != "ready":
        return None, engine.state, engine.broken_code
    try:
        rules = kept_columns.engine_rules(specs)
    except BrokenRule as broken:
        return None, "broken", broken.code
    live = engine.live
    if all(rule.code != code for rule in (*rules, *live.rules)):
        raise ValueError(f"no rule {code!r} in this list or in the live one")
    kept_columns.fetch_bits(live.views, engine.view.parts, [rule.tree for rule in rules])
    try:
        found = live.effect(rules, code, seconds)
    except text_files.TextsGone:
        return None, "preparing", ""
    kept_columns.store_bits(tenant, live.views, engine.view.parts)
    if not found.exact and not found.seen:
        return None, "preparing", ""  # nothing has been seen yet, so there is nothing to estimate from
    return found, "ready", ""


def _before(engine: _Engine, code: str) -> dict[str, int] | None:
    """The live rule's own numbers; None for a rule that isn't live."""
    kept = engine.kept
    assert kept is not None
    if place_of(kept.live.rules, code) == NOWHERE:
        return None
    if code not in kept.before:
        found = kept.live.effect(kept.live.rules, code)
        kept.before[code] = {
            "fires": found.fires,
            "matches": found.matches,
            "shadowed": found.shadowed,
            "capped": found.capped,
        }
    return kept.before[code]


# --- sets of points


@dataclass(frozen=True)
class _Question:
    """A rule list over a corpus with its effect, as the sets are read from it."""

    engine: _Engine
    rules: list[Rule]
    code: str
    effect: Effect

    @property
    def at(self) -> int:
        return place_of(self.rules, self.code)

    @property
    def before(self) -> int:
        return place_of(self.engine.live.rules, self.code)

    @property
    def rule(self) -> Rule:
        return next(rule for rule in (*self.rules, *self.engine.live.rules) if rule.code == self.code)


def _question(tenant: Tenant, specs: Sequence[RuleSpec], code: str, scope: Scope) -> tuple[_Question | None, State]:
    engine = _engine(tenant, scope, time.monotonic() + PREVIEW_SECONDS)
    found, state, _broken = _effect(tenant, engine, specs, code, PREVIEW_SECONDS)
    if found is None:
        return None, state
    return _Question(engine, kept_columns.engine_rules(specs), code, found), state


def point_page(
    tenant: Tenant,
    specs: Sequence[RuleSpec],
    code: str,
    set_name: str,
    scope: Scope,
    clause: int | None,
    after: str,
    size: int,
) -> PointPage:
    if set_name not in SETS:
        raise ValueError(f"no set {set_name!r}")
    question, state = _question(tenant, specs, code, scope)
    if question is None:
        return PointPage(state)
    try:
        sets = [_places(question, segment, set_name, clause) for segment in range(len(question.effect.segments))]
    except OutOfTime:
        return PointPage("preparing")
    total = sum(len(places) for places in sets)
    chosen = _after(question.engine.view.parts, sets, after, size + 1)
    rows = _rows(question, chosen[:size])
    return PointPage("ready", rows, rows[-1].key if len(chosen) > size and rows else "", total, question.effect.exact)


def _places(question: _Question, segment: int, set_name: str, clause: int | None) -> Places:
    """The points of a segment that belong to a set, ascending."""
    part, live = question.effect.segments[segment], question.engine.live
    at, before = question.at, question.before
    outcome, old = part.outcome, live.outcomes[segment]
    fired = np.flatnonzero(outcome == at)
    was = np.flatnonzero(old == before) if before != NOWHERE else part.matches[:0]
    places: Places
    match set_name:
        case "newly":
            places = fired[old[fired] != before]
        case "gone":
            places = was[outcome[was] != at]
        case "same":
            places = fired[old[fired] == before]
        case "fires":
            places = fired
        case "matches":
            places = part.matches
        case "shadowed":
            places = part.matches[outcome[part.matches] < at]
        case "capped":
            places = part.matches[outcome[part.matches] > at]
        case _:
            places = _near_places(question, segment, clause)
    return places


def _near_places(question: _Question, segment: int, clause: int | None) -> Places:
    clauses, stage_places = _clauses(question, segment, time.monotonic() + PREVIEW_SECONDS)
    missed = [c.missed for n, c in enumerate(clauses) if clause is None or n == clause]
    found = np.unique(np.concatenate(missed)) if missed else stage_places[:0]
    return stage_places[found]


def _clauses(question: _Question, segment: int, deadline: float | None) -> tuple[list[Clause], Places]:
    """The clauses of the rule over the points of its stage in a segment, and those points. Raises OutOfTime."""
    rule, live = question.rule, question.engine.live
    view = replace(live.views[segment], deadline=deadline)
    places = np.flatnonzero(view.at_stage(rule.stage))
    counters: dict[str, Any] = {}
    if question.at != NOWHERE:
        outcome = question.effect.segments[segment].outcome
        counters = counts_of_others(view.columns, question.rules, question.at, places, outcome)
        if rule.code in rule.reads:
            own = own_counts(view.columns, rule.code, np.flatnonzero(outcome == question.at), places)
            counters[rule.code] = view.columns.recorded(rule.code)[places] + own
    found, _holds = clauses_with_misses(rule.tree, replace(view.among(places), counters=counters))
    return found, places


def near_misses(tenant: Tenant, specs: Sequence[RuleSpec], code: str, scope: Scope) -> list[ClauseMisses]:
    question, _state = _question(tenant, specs, code, scope)
    if question is None or not question.effect.exact:
        return []
    try:
        per_segment = [_clauses(question, n, None)[0] for n in range(len(question.effect.segments))]
    except text_files.TextsGone:
        return []
    source = next((spec.expression for spec in specs if spec.code == code), "")
    found = []
    for number, clauses in enumerate(zip(*per_segment, strict=True)):
        start, end = clauses[0].node.span
        missed = sum(len(clause.missed) for clause in clauses)
        matters = any(clause.matters for clause in clauses)
        found.append(ClauseMisses(number, start, end, source[start:end], missed, matters))
    return found


def _after(parts: Sequence[Part], sets: Sequence[Places], after: str, count: int) -> list[tuple[int, int]]:
    """At most so many points behind the key, as places in the list of segments and offsets."""
    segment, _dash, offset = after.partition("-")
    at = (whole_number(segment, otherwise=-1, most=10**17), whole_number(offset, otherwise=-1))
    chosen: list[tuple[int, int]] = []
    for number, (part, places) in enumerate(zip(parts, sets, strict=True)):
        if part.segment < at[0]:
            continue
        first = int(np.searchsorted(places, at[1], side="right")) if part.segment == at[0] else 0
        chosen += [(number, offset) for offset in places[first : first + count - len(chosen)].tolist()]
        if len(chosen) >= count:
            break
    return chosen


# --- rows


def _rows(question: _Question, chosen: Sequence[tuple[int, int]]) -> list[PointRow]:
    engine = question.engine
    by_segment: dict[int, list[int]] = {}
    for number, offset in chosen:
        by_segment.setdefault(number, []).append(offset)
    rows: list[PointRow] = []
    table = translation(engine.live.rules, question.rules)
    for number, offsets in by_segment.items():
        view, part = engine.live.views[number], engine.view.parts[number]
        after, before = question.effect.segments[number].outcome, engine.live.outcomes[number]
        behind = counterfactual(view.columns, before, after, table)
        chats = chats_at(view, part.segment, offsets)
        for offset in offsets:
            chat = chats[offset]
            rows.append(
                PointRow(
                    key=f"{part.segment}-{offset}",
                    chat=chat.version.chat,
                    version=chat.version,
                    message=int(view.columns.field("message")[offset]),
                    stage="round" if view.columns.field("is_round")[offset] else "final",
                    turn=turn_of(view, chat, offset),
                    recorded=recorded_at(view, offset),
                    fired=_code_at(after, offset, question.rules),
                    fired_before=_code_at(before, offset, engine.live.rules),
                    counterfactual=bool(behind[offset]),
                    excerpt=excerpt_at(view, offset, question.rule.tree),
                )
            )
    return rows


def chats_at(view: Points, segment: int, offsets: Sequence[int]) -> dict[int, SegmentChat]:
    """The chat of each of the points."""
    numbers = view.columns.field("chat")[list(offsets)].tolist()
    rows = SegmentChat.objects.filter(segment=segment, number__in=sorted(set(numbers)))
    found = {row.number: row for row in rows.select_related("version__chat").defer("version__content")}
    return {offset: found[number] for offset, number in zip(offsets, numbers, strict=True)}


def turn_of(view: Points, chat: SegmentChat, offset: int) -> int:
    """The number of the point's turn in its chat, from 0."""
    turns = view.columns.field("turn")
    return chat.turn(int(turns[offset]) - int(turns[chat.first_point]))


def recorded_at(view: Points, offset: int) -> str | None:
    """The code of the nudge recorded right after the point."""
    number = int(view.columns.field("next_nudge")[offset])
    return view.columns.codes[number - 1] if number else None


def _code_at(outcome: Outcome, offset: int, rules: Sequence[Rule]) -> str | None:
    place = int(outcome[offset])
    return None if place == NONE else rules[place].code


def excerpt_at(view: Points, offset: int, tree: Node) -> Excerpt:
    """The text of the point around what first made a term of the predicate true; else its beginning."""
    try:
        texts = view.atoms.text_columns.texts
    except text_files.TextsGone:
        return Excerpt("final_text", ())
    final = texts.final[int(texts.final_of[offset])].as_py()
    user = texts.user[int(texts.user_of[int(view.columns.field("turn")[offset])])].as_py()
    context = TurnContext(final_text=final, user_text=user)
    marks = [
        mark
        for term in atoms_of(tree).values()
        for node in trace(term, context).walk()
        for mark in node.marks
        if mark.field in ("final_text", "user_text")
    ]
    chosen = marks[0].field if marks else "final_text" if final else "user_text"
    return _excerpt(chosen, final if chosen == "final_text" else user, [m for m in marks if m.field == chosen])


def _excerpt(name: str, text: str, marks: Sequence[Mark]) -> Excerpt:
    spans = _joined(sorted((mark.start, mark.end) for mark in marks if mark.end > mark.start))
    start = max(0, spans[0][0] - EXCERPT_BEFORE) if spans else 0
    end = min(len(text), start + EXCERPT_LENGTH)
    parts = []
    at = start
    for first, last in spans:
        first, last = max(first, at), min(last, end)
        if first >= last:
            continue
        if first > at:
            parts.append(TextPart(text[at:first], False))
        parts.append(TextPart(text[first:last], True))
        at = last
    if at < end:
        parts.append(TextPart(text[at:end], False))
    return Excerpt(name, tuple(parts), start > 0, end < len(text))


def _joined(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans that touch or overlap as one."""
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined


# --- other questions


def corpus_warnings(tenant: Tenant, specs: Sequence[RuleSpec], code: str, scope: Scope) -> list[Diagnostic]:
    question, _state = _question(tenant, specs, code, scope)
    if question is None or not question.effect.exact or question.at == NOWHERE:
        return []
    rule = question.rule
    return warnings_of(rule.tree, question.engine.live.views, rule.stage, lambda text: language_of([text]))


def observed(tenant: Tenant, stage: str, scope: Scope) -> dict[str, tuple[Observed, ...]]:
    engine = _engine(tenant, scope, time.monotonic() + PREVIEW_SECONDS)
    if engine.state != "ready":
        return {}
    found = {
        name: observed_values(engine.live.views, name, "round" if stage == "round" else "final") for name in FIELDS
    }
    return {name: values for name, values in found.items() if values}


def order_effect(tenant: Tenant, specs: Sequence[RuleSpec], scope: Scope) -> OrderAnswer:
    engine = _engine(tenant, scope, time.monotonic() + PREVIEW_SECONDS)
    if not specs:
        return OrderAnswer(engine.state, engine.facts)
    found, state, broken = _effect(tenant, engine, specs, specs[0].code, PREVIEW_SECONDS)
    if found is None or not found.exact:
        return OrderAnswer("preparing" if found else state, engine.facts, broken_code=broken)
    rules, live = kept_columns.engine_rules(specs), engine.live
    sums: dict[str, RuleChange] = {}
    for before, part in zip(live.outcomes, found.segments, strict=True):
        for code, change in rule_changes(before, live.rules, part.outcome, rules).items():
            sums[code] = sums.get(code, RuleChange()) + change
    rows = [OrderRow(code, c.before, c.after, c.newly, c.gone) for code, c in sums.items()]
    return OrderAnswer("ready", engine.facts, rows)


def live_counts(tenant: Tenant, scope: Scope) -> dict[str, dict[str, int]]:
    engine = _engine(tenant, scope, time.monotonic() + PREVIEW_SECONDS)
    if engine.kept is None:
        return {}
    live = engine.live
    if not engine.kept.counts and live.rules:
        parts = [_settled_counts(live, segment) for segment in range(len(live.views))]
        engine.kept.counts.update(merge_counts(parts))
    counts: Mapping[str, dict[str, int]] = engine.kept.counts.get("rules", {})
    return dict(counts)


def _settled_counts(live: LiveEffects, segment: int) -> dict[str, Any]:
    view, outcome, open_codes = live.views[segment], live.outcomes[segment], codes_of(live.rules)
    matches = [
        matched(view.columns, view, live.rules, at, candidates(rule, view, open_codes), outcome)
        for at, rule in enumerate(live.rules)
    ]
    return counts_of(view, live.rules, outcome, matches)


def daily(tenant: Tenant, specs: Sequence[RuleSpec], code: str, until: date, days: int, scope: Scope) -> Daily:
    question, _state = _question(tenant, specs, code, scope)
    if question is None:
        return Daily()
    first = until - timedelta(days=days - 1)
    after, before = np.zeros(days, dtype=np.int64), np.zeros(days, dtype=np.int64)
    dated = undated = total = 0
    for number, part in enumerate(question.effect.segments):
        view = question.engine.live.views[number]
        began = _days_of(tenant, question.engine.view.parts[number], view)
        of_chats = began - first.toordinal()
        of_chats = np.where((of_chats >= 0) & (of_chats < days), of_chats, _UNDATED)
        dated += int(np.count_nonzero(of_chats != _UNDATED))
        chats = view.columns.field("chat")
        fired = np.flatnonzero(part.outcome == question.at)
        total += len(fired)
        undated += int(np.count_nonzero(began[chats[fired]] == 0))
        fired_before = np.flatnonzero(question.engine.live.outcomes[number] == question.before)
        for sums, places in ((after, fired), (before, fired_before)):
            found = of_chats[chats[places]]
            sums += np.bincount(found[found != _UNDATED], minlength=days)
    outside = total - undated - int(after.sum())
    shown = [Day(first + timedelta(days=n), int(after[n]), int(before[n])) for n in range(days)] if dated else []
    return Daily(shown, undated, outside, question.effect.exact)


def _days_of(tenant: Tenant, part: Part, view: Points) -> Any:
    """The day on which each chat of a segment began, as ordinals; chats without a time are on day 0."""

    def load() -> tuple[Any, int]:
        days = np.zeros(view.columns.chats, dtype=np.int64)
        rows = SegmentChat.objects.filter(segment=part.segment, version__chat__started_at__isnull=False)
        for number, at in rows.values_list("number", "version__chat__started_at").iterator(chunk_size=5000):
            if at is not None:
                days[number] = at.astimezone(UTC).date().toordinal()
        return days, days.nbytes

    # Chats of equal content may have begun on other days, so the digest alone is no name here.
    return _day_cache.get(tenant.pk, (part.segment, part.digest), load)
