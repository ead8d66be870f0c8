"""Compare the engine over columns with the scalar one and the replay of single points, on chats that were walked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from rules.domain.atoms import Atoms
from rules.domain.catalogue import default_rule_texts
from rules.domain.columns import SEGMENT_POINTS, Columns, build_segments
from rules.domain.deciding import replay
from rules.domain.language import check
from rules.domain.language.environment import FINISH_REASONS
from rules.domain.masks import Points, mask
from rules.domain.points import NO_DEFAULTS, Walk
from rules.domain.replaying import replay_segment
from rules.domain.rule import ContinuationRule
from rules.domain.scalar import compile_scalar
from rules.domain.settling import NONE, Rule, candidates, codes_of, settle_by_walk
from rules.domain.texts import Texts, open_texts


def engine_rules(user_rule: str) -> list[Rule]:
    """The default rules, with the user rule of the benchmark after the last of the final stage."""
    rules: list[Rule] = []
    for text in default_rule_texts():
        rules.append(_rule(text.code, text.stage, text.max_nudges, text.expression))
        if text.code == "EAI-GOV-08":
            rules.append(_rule("USER-01", "final", 1, user_rule))
    return rules


def _rule(code: str, stage: str, cap: int, source: str) -> Rule:
    tree = check(source).tree
    assert tree is not None, source
    return Rule(code, "round" if stage == "round" else "final", cap, tree)


class ColumnJudge:
    """Collects walks with their oracle rows, and judges a segment whenever one is full."""

    def __init__(self, rules: Sequence[Rule], limit: int = SEGMENT_POINTS) -> None:
        self.rules = rules
        self.limit = limit
        self.cases = self.equal = 0
        self.firings: Counter[str] = Counter()
        self._walks: list[Walk] = []
        self._rows: list[dict[str, Any]] = []

    def add(self, walked: Walk, expected: Sequence[dict[str, Any]]) -> None:
        if self._rows and len(self._rows) + len(expected) > self.limit:
            self.judge()
        self._walks.append(walked)
        self._rows += expected

    def judge(self) -> None:
        """Compare what was collected, and begin anew."""
        if not self._walks:
            return
        [segment] = build_segments(self._walks, limit=len(self._rows) + 1)
        columns = Columns(segment.scalars)
        texts = open_texts(segment.texts)
        for field, found in _fields_of(columns, texts):
            wanted = [row[field] for row in self._rows]
            self._case(f"column {field} against the oracle", found == wanted)
        for name, agrees in column_cases(self._walks, self.rules):
            self._case(name, agrees)
        counts = replay_segment(Points(columns, Atoms(columns, lambda: texts)), self.rules).counts["rules"]
        self.firings.update({code: of_rule["fires"] for code, of_rule in counts.items()})
        self._walks, self._rows = [], []

    def _case(self, name: str, agrees: bool) -> None:
        self.cases += 1
        self.equal += agrees
        if not agrees:
            print(f"{name}: differs")


def _fields_of(columns: Columns, texts: Texts) -> Iterator[tuple[str, list[Any]]]:
    """The fields of the oracle's rows, from the columns alone."""
    for name in _PLAIN:
        yield name, columns.field(name).tolist()
    reasons = (None, *FINISH_REASONS)
    yield "finish_reason", [reasons[code] for code in columns.field("finish_reason").tolist()]
    yield "stage", ["round" if is_round else "final" for is_round in columns.field("is_round").tolist()]
    yield "next_nudge", [columns.codes[n - 1] if n else None for n in columns.field("next_nudge").tolist()]
    recorded = {code: columns.recorded(code).tolist() for code in columns.codes}
    counts = ({code: counted[at] for code, counted in recorded.items() if counted[at]} for at in range(columns.points))
    yield "nudges", list(counts)
    finals, users = texts.final.to_pylist(), texts.user.to_pylist()
    yield "final_text", [finals[at] for at in texts.final_of.tolist()]
    yield "user_text", [users[at] for at in texts.user_of[columns.field("turn")].tolist()]


_PLAIN = (
    "message", "tools_available", "tool_calls_total", "tool_calls_since_user", "mutated", "verified_after_mutation",
    "verify_failed", "no_progress_rounds", "read_only_rounds", "budget_low", "require_delivery", "audit_mode",
)  # fmt: skip


def column_cases(walks: Sequence[Walk], rules: Sequence[Rule]) -> Iterator[tuple[str, bool]]:
    """One case for each rule and each chat: the masks of the rule, and where which rule fires, settled in two ways."""
    scalar = [ContinuationRule(r.code, r.max_nudges, compile_scalar(r.tree), "", r.stage) for r in rules]
    segments = list(build_segments(walks))
    views = []
    for segment in segments:
        columns = Columns(segment.scalars)
        texts = open_texts(segment.texts)
        views.append(Points(columns, Atoms(columns, lambda texts=texts: texts)))  # type: ignore[misc]
    contexts = [p.context(w.facts.settled(NO_DEFAULTS)) for w in walks for p in w.points]
    for rule, plain in zip(rules, scalar, strict=True):
        found = [bool(value) for view in views for value in mask(rule.tree, view)]
        yield f"mask of {rule.code}", found == [plain.holds(context) for context in contexts]
    fast = [place for view in views for place in replay_segment(view, rules).outcome.tolist()]
    open_codes = codes_of(rules)
    slow = [
        place
        for view in views
        for place in settle_by_walk(
            view.columns, view, rules, [candidates(rule, view, open_codes) for rule in rules]
        ).tolist()
    ]
    at = 0
    for number, walked in enumerate(walks):
        fired = [decision.fired for decision in replay(walked, scalar)]
        end = at + len(fired)
        codes = [[None if p == NONE else rules[p].code for p in places[at:end]] for places in (fast, slow)]
        yield f"chat {number} over columns", codes == [fired, fired]
        at = end
