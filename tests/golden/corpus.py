"""Compare every point of a made-up corpus with the oracle that was written while it was made up.

The same points are put into columns, segment by segment, and compared again: each field with the oracle, each rule's
mask and each firing with the scalar evaluator. Segments lie in memory one at a time.

Of the default rules, the firings of those that do not depend on the wording of helpers are compared too where the
corpus is one whose counts are known (rule-engine.md section 9: seed 7, of 200, 2,000 or 50,000 chats).
"""

from __future__ import annotations

import itertools
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chats.domain.exchange import from_json
from rules.domain import ContinuationRule, default_rules
from rules.domain.deciding import replay
from rules.domain.language import check
from rules.domain.points import NO_DEFAULTS, Point, Walk
from rules.domain.scalar import compile_scalar
from rules.domain.tools import ToolCatalogue
from rules.domain.turns import walk
from tests.golden._columns import ColumnJudge, engine_rules

USER_RULE = "ctx.final_text.matches('(?i)(unable to|cannot|je ne peux pas|impossible de) ') && ctx.tool_calls_total < 3"
COUNTED = tuple(f"EAI-GOV-{number}" for number in ("01", "02", "03", "04", "05", "09", "10", "11"))
KNOWN_SEED = 7
KNOWN_FIRINGS = {
    200: (58, 0, 97, 320, 20, 41, 48, 80),
    2_000: (611, 0, 978, 3_525, 192, 457, 588, 769),
    50_000: (14_686, 0, 24_112, 86_003, 4_255, 12_412, 14_171, 19_673),
}


def benchmark_rules() -> list[ContinuationRule]:
    """The default rules, with the user rule of the benchmark after the last of the final stage."""
    tree = check(USER_RULE).tree
    assert tree is not None
    rules = default_rules()
    at = [rule.code for rule in rules].index("EAI-GOV-08") + 1
    return [*rules[:at], ContinuationRule("USER-01", 1, compile_scalar(tree), ""), *rules[at:]]


def walks(folder: Path) -> Iterator[tuple[str, Walk]]:
    """Each chat's external id and its walk, one chat in memory at a time."""
    catalogue = ToolCatalogue()
    with open(folder / "conversations.jsonl", encoding="utf-8") as lines:
        for line in lines:
            record = from_json(line)
            yield record.external_id or "", walk(record, catalogue)


def oracle(folder: Path) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    with open(folder / "points.jsonl", encoding="utf-8") as lines:
        rows = map(json.loads, lines)
        for chat, points in itertools.groupby(rows, key=lambda row: row["conversation"]):
            yield chat, list(points)


def different_fields(point: Point, walked: Walk, wanted: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Found and expected value of each field of the oracle's row that the point gives otherwise."""
    ctx = point.context(walked.facts.settled(NO_DEFAULTS))
    different = {}
    for name, value in wanted.items():
        if name == "conversation":
            continue
        found = getattr(ctx if hasattr(ctx, name) else point, name)
        if found != value:
            different[name] = (found, value)
    return different


def run(argv: list[str]) -> int:
    """`corpus DIR`: a folder with conversations.jsonl, points.jsonl and manifest.json."""
    if len(argv) != 1:
        print("usage: python -m tests.golden corpus DIR", file=sys.stderr)
        return 2
    folder = Path(argv[0])
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    rules = benchmark_rules()
    columns = ColumnJudge(engine_rules(USER_RULE))
    firings: Counter[str] = Counter()
    cases = equal = 0
    for (chat, walked), (expected_chat, expected) in zip(walks(folder), oracle(folder), strict=True):
        cases += max(len(walked.points), len(expected))
        if chat != expected_chat or len(walked.points) != len(expected) or walked.skipped:
            print(f"{chat}: {len(walked.points)} points, not {len(expected)} of {expected_chat}; {walked.skipped}")
            continue
        for point, wanted in zip(walked.points, expected, strict=True):
            different = different_fields(point, walked, wanted)
            equal += not different
            if different:
                print(f"{chat}, point {point.seq}: found and expected {different}")
        firings.update(d.fired for d in replay(walked, rules) if d.fired is not None)
        columns.add(walked, expected)
    columns.judge()
    cases += columns.cases
    equal += columns.equal
    for rule in rules:
        print(f"{rule.code}: {firings[rule.code]} firings, {columns.firings[rule.code]} over columns")
    if manifest.get("seed") == KNOWN_SEED and manifest.get("conversations") in KNOWN_FIRINGS:
        for code, wanted in zip(COUNTED, KNOWN_FIRINGS[manifest["conversations"]], strict=True):
            for way, found in (("", firings[code]), (" over columns", columns.firings[code])):
                cases += 1
                equal += found == wanted
                if found != wanted:
                    print(f"{code}: {found} firings{way}, not {wanted}")
    print(f"{equal} of {cases}")
    return 0 if equal == cases else 1
