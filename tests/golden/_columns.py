"""Compare the engine over columns with the scalar one and the replay of single points, on chats that were walked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rules.domain.atoms import Atoms
from rules.domain.catalogue import default_rule_texts
from rules.domain.columns import Columns, build_segments
from rules.domain.language import check
from rules.domain.masks import Points, mask
from rules.domain.replaying import replay_segment
from rules.domain.rule import ContinuationRule
from rules.domain.scalar import compile_scalar
from rules.domain.settling import NONE, Rule, candidates, codes_of, settle_by_walk
from rules.domain.texts import open_texts
from rules.domain.turns import NO_DEFAULTS, Walk
from rules.domain.walk import replay


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
