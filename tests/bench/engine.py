"""`python -m tests.bench engine [--conversations N] [--corpus DIR] [--keep DIR] [--json]`: the engine over columns.

Times are medians of five in one process. Where points a second are told they are per second of processor time, since
that is a promise per core and the machine may be shared; answers to edits are in real time. The ratios within one run
are what counts (rule-engine.md sections 8 and 9). 480 conversations of the generator are about 10,000 points, 4,750
about 100,000, and 50,000 are 1.05 million.
"""

from __future__ import annotations

import argparse
import functools
import json
import pickle
import statistics
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from chats.domain.exchange import from_json
from rules.domain import phrases, scalar
from rules.domain.atoms import Atoms
from rules.domain.columns import Columns, Segment, SegmentBuilder
from rules.domain.effects import PREVIEW_SECONDS, LiveEffects
from rules.domain.language import check
from rules.domain.masks import Points, mask
from rules.domain.points import NO_DEFAULTS, Walk
from rules.domain.replaying import replay_segment
from rules.domain.rule import ContinuationRule, first_applicable
from rules.domain.settling import Rule, candidates, codes_of, settle_by_walk, settle_rule_by_rule
from rules.domain.texts import open_texts
from rules.domain.tools import ToolCatalogue
from rules.domain.turns import walk
from tests.golden._columns import engine_rules
from tests.golden.corpus import COUNTED, KNOWN_FIRINGS, KNOWN_SEED, USER_RULE
from tests.rules.domain.corpora import corpus_maker

ROUNDS = 5
NAIVE_POINTS = 10_000
NEW_PATTERN = "ctx.final_text.matches('(?i)(next|staging|prochaine).*(list|rows|liste)')"


@dataclass(frozen=True)
class Row:
    """A line of the table; `ratio` is to `baseline`, and `goal` says what is to be reached, if anything."""

    name: str
    value: float
    unit: str
    baseline: str = ""
    ratio: float | None = None
    goal: str = ""
    missed: bool = False


def rule_of(code: str, stage: Any, cap: int, source: str) -> Rule:
    tree = check(source).tree
    assert tree is not None, source
    return Rule(code, stage, cap, tree)


def median_of(action: Callable[[], Any], rounds: int = ROUNDS, clock: Callable[[], float] = time.process_time) -> float:
    """Seconds that the action takes, the median of some rounds."""
    times = []
    for _ in range(rounds):
        started = clock()
        action()
        times.append(clock() - started)
    return statistics.median(times)


# --- the corpus


@dataclass
class Corpus:
    """Segments as they are stored, the walks of the first chats, and what making them took."""

    conversations: int
    segments: list[Segment]
    first: list[Walk]
    rows: list[Row]

    @property
    def points(self) -> int:
        return sum(segment.points for segment in self.segments)


def lines_of(conversations: int, folder: Path | None) -> Iterator[str]:
    if folder is not None:
        with open(folder / "conversations.jsonl", encoding="utf-8") as lines:
            yield from lines
        return
    for chat, _ in corpus_maker().generate(conversations, KNOWN_SEED):
        yield json.dumps(chat, ensure_ascii=False)


def make_corpus(conversations: int, folder: Path | None) -> Corpus:
    """Import everything once, and tell what each part of it takes."""
    catalogue = ToolCatalogue()
    spent = dict.fromkeys(("parse", "record", "walk", "build"), 0.0)
    size = chats = 0
    first: list[Walk] = []

    def walks() -> Iterator[Walk]:
        nonlocal size, chats
        for line in lines_of(conversations, folder):
            size += len(line.encode())
            chats += 1
            started = time.process_time()
            json.loads(line)
            parsed = time.process_time()
            record = from_json(line)
            made = time.process_time()
            walked = walk(record, catalogue)
            spent["parse"] += parsed - started
            spent["record"] += made - parsed
            spent["walk"] += time.process_time() - made
            if sum(len(w.points) for w in first) < NAIVE_POINTS:
                first.append(walked)
            yield walked

    segments = []
    builder = SegmentBuilder()
    for walked in walks():
        started = time.process_time()
        if builder.points and builder.points + len(walked.points) > 65_536:
            segments.append(builder.build())
            builder = SegmentBuilder()
        builder.add(walked)
        spent["build"] += time.process_time() - started
    started = time.process_time()
    segments.append(builder.build())
    spent["build"] += time.process_time() - started
    points = sum(segment.points for segment in segments)
    rows = [
        Row("import: JSON parser alone", size / spent["parse"] / 1e6, "MB/s"),
        Row("import: chats checked and read", points / spent["record"], "points/s"),
        Row("import: points derived", points / spent["walk"], "points/s"),
        Row("import: columns and texts written", points / spent["build"], "points/s"),
    ]
    corpus = Corpus(chats, segments, first, rows)
    corpus.rows += helper_rows(corpus, spent)
    return corpus


def helper_rows(corpus: Corpus, spent: dict[str, float]) -> list[Row]:
    """What each text term of the default rules takes over the distinct texts, and the import with all of them."""
    rows: list[Row] = []
    views = [in_memory(segment) for segment in corpus.segments]
    trees = []
    for source in (
        "is_go_ahead(ctx.user_text)",
        "lists_remaining_work(ctx.final_text)",
        "announces_action(last_paragraph(ctx.final_text))",
        "asks_user(ctx.final_text)",
    ):
        tree = check(source).tree
        assert tree is not None
        trees.append(tree)
        started = time.process_time()
        for view in views:
            mask(tree, view)
        seconds = time.process_time() - started
        texts = sum(
            len(v.atoms.text_columns.texts.user if "user" in source else v.atoms.text_columns.texts.final)
            for v in views
        )
        rows.append(Row(f"import: {source}", seconds / texts * 1e6, "us/text"))
    started = time.process_time()
    for segment in corpus.segments:
        in_memory(segment).atoms.fill(trees)
    total = time.process_time() - started
    texts = sum(len(v.atoms.text_columns.texts.user) + len(v.atoms.text_columns.texts.final) for v in views)
    rows.append(Row("import: all four together", total / texts * 1e6, "us/text"))
    seconds = spent["record"] + spent["walk"] + spent["build"] + total
    derived = spent["walk"] + spent["build"] + total
    speed = corpus.points / derived
    goal = ">= 20,000 points/s"
    rows.append(Row("import: derive, write and all helpers", speed, "points/s", goal=goal, missed=speed < 20_000))
    rows.append(Row("import: everything", corpus.points / seconds, "points/s"))
    return rows


def in_memory(segment: Segment) -> Points:
    columns = Columns(segment.scalars)
    return Points(columns, Atoms(columns, lambda: open_texts(segment.texts)))


# --- strategies


def naive(walks: Sequence[Walk], rules: Sequence[Rule]) -> int:
    """The scalar evaluator in a plain loop: the first rule that applies at each point; returns the firings."""
    compiled = [ContinuationRule(r.code, r.max_nudges, scalar.compile_scalar(r.tree), "", r.stage) for r in rules]
    fired = 0
    for walked in walks:
        settings = walked.facts.settled(NO_DEFAULTS)
        own: dict[str, int] = {}
        turn = -1
        for point in walked.points:
            if point.turn != turn:
                turn, own = point.turn, {}
            rule = first_applicable(compiled, point.context(settings, own), point.stage)
            if rule is None:
                continue
            fired += 1
            if rule.code != point.next_nudge:
                own[rule.code] = own.get(rule.code, 0) + 1
    return fired


def memoised_helpers() -> Callable[[], None]:
    """Let the scalar evaluator look helpers up by text, as if their bits were cached; gives the way back."""
    before = dict(scalar._CALLS)
    calls: Any = scalar._CALLS
    for name in ("is_go_ahead", "lists_remaining_work", "announces_action", "asks_user", "last_paragraph"):
        calls[name] = functools.cache(getattr(phrases, name))
    calls["matches"] = functools.cache(before["matches"])
    return lambda: calls.update(before)


def replay(views: Sequence[Points], rules: Sequence[Rule], settle: Callable[..., Any]) -> None:
    open_codes = codes_of(rules)
    for view in views:
        found = [candidates(rule, view, open_codes) for rule in rules]
        settle(view.columns, view, rules, found)


def measure(corpus: Corpus) -> list[Row]:
    rules = engine_rules(USER_RULE)
    points = corpus.points
    rows = list(corpus.rows)
    few = sum(len(w.points) for w in corpus.first)
    slow = few / median_of(lambda: naive(corpus.first, rules), 1)
    restore = memoised_helpers()
    naive(corpus.first, rules)
    base = few / median_of(lambda: naive(corpus.first, rules))
    restore()
    rows += [
        Row("naive: scalar evaluator in a loop", slow, "points/s"),
        Row("naive, texts cached", base, "points/s", "naive", base / slow),
    ]

    def against(name: str, seconds: float, least: float | None = None, baseline: float = base) -> Row:
        ratio = points / seconds / baseline
        of = "naive, texts cached" if baseline == base else "naive"
        goal = f">= {least:g} x" if least else ""
        return Row(name, points / seconds, "points/s", of, ratio, goal, bool(least and ratio < least))

    def cold() -> None:
        for segment in corpus.segments:
            replay_segment(in_memory(segment), rules)

    rows.append(against("columns, text terms cold", median_of(cold, 1), baseline=slow))
    with tempfile.TemporaryDirectory() as folder:
        tracemalloc.start()
        views = mapped(corpus.segments, Path(folder))
        live = LiveEffects(views, rules)
        for rule in rules:
            live.effect([replace(rule, max_nudges=3) if r is rule else r for r in rules], rule.code)
        unpacked = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        # The columns are views of the blobs, which were there before.
        taken = (unpacked + sum(len(segment.scalars) for segment in corpus.segments)) / 1e6
        rows += checked_counts(corpus, views, rules)
        walk_time = median_of(lambda: replay(views, rules, settle_by_walk))
        fast_time = median_of(lambda: replay(views, rules, settle_rule_by_rule))
        whole_time = median_of(lambda: [replay_segment(view, rules).packed() for view in views])
        rows += [
            against("columns, cached, candidate walk", walk_time, 8),
            against("columns, cached, rule by rule", fast_time, 25 if points < 60_000 else 40),
            against("columns, cached, with counts and result", whole_time),
        ]
        rows += scan_rows(views, rules, fast_time)
        rows += preview_rows(live, rules, points)
        goal = "<= 60 MB" if points > 900_000 else ""
        rows.append(
            Row("memory above base, texts not counted", taken, "MB", goal=goal, missed=bool(goal) and taken > 60)
        )
    return rows


def checked_counts(corpus: Corpus, views: Sequence[Points], rules: Sequence[Rule]) -> list[Row]:
    """Firings of the rules that no wording touches are known: a fast engine that is wrong is of no use."""
    wanted = KNOWN_FIRINGS.get(corpus.conversations)
    if wanted is None:
        return []
    results = [replay_segment(view, rules).counts["rules"] for view in views]
    found = tuple(sum(counts[code]["fires"] for counts in results) for code in COUNTED)
    return [
        Row(
            "firings of eight rules that are known",
            sum(found),
            "firings",
            goal=str(sum(wanted)),
            missed=found != wanted,
        )
    ]


def scan_rows(views: Sequence[Points], rules: Sequence[Rule], fast: float) -> list[Row]:
    names = ["is_round", "tools_available", "mutated", "verified_after_mutation", "verify_failed", "budget_low",
             "require_delivery", "audit_mode", "finish_reason", "tool_calls_total", "tool_calls_since_user",
             "no_progress_rounds", "read_only_rounds", "next_nudge", "turn"]  # fmt: skip

    def scan(columns: Sequence[str]) -> None:
        for view in views:
            for name in columns:
                np.sum(view.columns.field(name).view(np.uint8))

    two = check("ctx.mutated && ctx.tool_calls_total < 3").tree
    assert two is not None
    all_columns = median_of(lambda: scan(names))
    two_columns = median_of(lambda: scan(["mutated", "tool_calls_total"]))
    mask_time = median_of(lambda: [mask(two, view) for view in views])
    ratio = mask_time / two_columns
    return [
        Row("scan limit: sum of all columns", all_columns * 1000, "ms"),
        Row("rule by rule / scan limit", fast * 1000, "ms", "scan limit", fast / all_columns),
        Row("mask of two scalar terms", mask_time * 1000, "ms", "scan of two columns", ratio, "<= 50 x", ratio > 50),
    ]


def preview_rows(live: LiveEffects, rules: Sequence[Rule], points: int) -> list[Row]:
    rows: list[Row] = []
    full = points > 900_000

    def edited(code: str, sources: Sequence[str]) -> float:
        """The median over expressions that nobody has typed before, since the same one again is cheaper."""
        times = []
        for source in sources:
            changed = [replace(r, tree=rule_of("X", r.stage, 1, source).tree) if r.code == code else r for r in rules]
            started = time.perf_counter()
            live.effect(changed, code, PREVIEW_SECONDS)
            times.append((time.perf_counter() - started) * 1000)
        return statistics.median(times)

    early = [f'ctx.finish_reason == "length" && ctx.tool_calls_total >= {n}' for n in range(ROUNDS)]
    late = [
        f"ctx.tools_available && ctx.tool_calls_since_user > {n} && !ctx.budget_low && "
        "lists_remaining_work(ctx.final_text) && !asks_user(ctx.final_text)"
        for n in range(ROUNDS)
    ]
    rounds = [f"ctx.read_only_rounds >= (ctx.audit_mode ? {n + 6} : {n + 3})" for n in range(ROUNDS)]
    for name, code, sources in (("an early rule", "EAI-GOV-01", early), ("a late rule", "EAI-GOV-08", late),
                                ("a rule of rounds", "EAI-GOV-11", rounds)):  # fmt: skip
        ms = edited(code, sources)
        goal = "<= 45 ms" if full else ""
        rows.append(Row(f"preview: {name}", ms, "ms", goal=goal, missed=bool(goal) and ms > 45))
    changed = [replace(r, tree=rule_of("X", "final", 1, NEW_PATTERN).tree) if r.code == "USER-01" else r for r in rules]
    started = time.perf_counter()
    effect = live.effect(changed, "USER-01", PREVIEW_SECONDS)
    first, estimate = (time.perf_counter() - started) * 1000, effect.fires
    while not effect.exact:
        effect = live.effect(changed, "USER-01", PREVIEW_SECONDS)
    exact = (time.perf_counter() - started) * 1000
    again = median_of(lambda: live.effect(changed, "USER-01", PREVIEW_SECONDS), clock=time.perf_counter) * 1000
    off = abs(estimate - effect.fires) / max(effect.fires, 1) * 100
    return [
        *rows,
        Row("preview: new regex, first answer", first, "ms", goal="<= 200 ms", missed=first > 200),
        Row("preview: first answer off by", off, "%"),
        Row("preview: new regex, exact after", exact, "ms", goal="<= 2,000 ms", missed=exact > 2000),
        Row("preview: the same again", again, "ms"),
    ]


def mapped(segments: Sequence[Segment], folder: Path) -> list[Points]:
    """The segments as a web process holds them: scalars unpacked, texts memory-mapped."""
    views = []
    for number, segment in enumerate(segments):
        path = folder / str(number)
        path.write_bytes(segment.texts)
        columns = Columns(segment.scalars)
        views.append(Points(columns, Atoms(columns, functools.partial(open_texts, path))))
    return views


def kept_corpus(conversations: int, folder: Path | None, keep: Path | None) -> Corpus:
    path = keep / f"engine-{conversations}.pickle" if keep else None
    if path is not None and path.exists():
        with path.open("rb") as file:
            corpus: Corpus = pickle.load(file)
            return corpus
    corpus = make_corpus(conversations, folder)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pickle.dumps(corpus))
    return corpus


def run(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench engine")
    parser.add_argument("--conversations", type=int, default=2000)
    parser.add_argument("--corpus", type=Path, help="a folder that make_corpus.py has written")
    parser.add_argument("--keep", type=Path, help="a folder for what was imported, so that the next run needn't")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    corpus = kept_corpus(options.conversations, options.corpus, options.keep)
    rows = measure(corpus)
    if options.json:
        for row in rows:
            print(
                json.dumps(
                    {
                        "name": row.name,
                        "value": row.value,
                        "unit": row.unit,
                        "baseline": row.baseline,
                        "ratio": row.ratio,
                    }
                )
            )
    else:
        print(f"{corpus.conversations:,} conversations, {corpus.points:,} points, {len(corpus.segments)} segments")
        for row in rows:
            ratio = f"{row.ratio:10.1f} x {row.baseline}" if row.ratio is not None else ""
            mark = "MISSED " if row.missed else ""
            print(f"{row.name:<58}{row.value:>14,.1f} {row.unit:<9}{mark}{row.goal:<20}{ratio}")
    missed = [row.name for row in rows if row.missed]
    if missed:
        print("missed: " + "; ".join(missed), file=sys.stderr)
    return 1 if missed else 0
