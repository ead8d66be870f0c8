"""The made-up corpus through the engine over columns."""

from __future__ import annotations

from rules.domain.replaying import replay_segment
from tests.golden._columns import column_cases, engine_rules
from tests.golden.corpus import COUNTED, KNOWN_FIRINGS, USER_RULE
from tests.rules.domain.corpora import corpus_walks, views_of
from tests.shared_data import needs_shared


@needs_shared
def test_columns_agree_with_the_replay_of_single_points():
    cases = list(column_cases(corpus_walks(200), engine_rules(USER_RULE)))
    assert [name for name, equal in cases if not equal] == []
    assert len(cases) == 212


@needs_shared
def test_known_firings_come_out():
    rules = engine_rules(USER_RULE)
    counts = [replay_segment(view, rules).counts["rules"] for view in views_of(corpus_walks(200), limit=1000)]
    assert tuple(sum(c[code]["fires"] for c in counts) for code in COUNTED) == KNOWN_FIRINGS[200]
