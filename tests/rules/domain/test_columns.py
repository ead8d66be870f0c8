"""Segments: what is packed comes back, however many points and chats there are."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.domain.columns import STRIPES, Columns, DamagedSegment, SegmentBuilder, build_segments
from rules.domain.points import Defaults
from rules.domain.texts import SAME, open_texts
from tests.rules.domain.corpora import corpus_walks, random_walk
from tests.shared_data import needs_shared


def walks_of(seed: int, count: int = 5):
    rng = random.Random(seed)
    return [random_walk(rng) for _ in range(count)]


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 10**9), st.sampled_from([1, 9, 65_536]))
def test_every_column_comes_back(seed, limit):
    walks = walks_of(seed)
    segments = list(build_segments(walks, limit))
    points = [point for walk in walks for point in walk.points]
    views = [(Columns(segment.scalars), open_texts(segment.texts)) for segment in segments]
    assert sum(columns.points for columns, _ in views) == len(points)
    assert sum(columns.chats for columns, _ in views) == len(walks)
    at = 0
    for columns, texts in views:
        for here in range(columns.points):
            point = points[at]
            at += 1
            for name in ("tool_calls_total", "tool_calls_since_user", "no_progress_rounds", "read_only_rounds",
                         "responses", "message", "mutated", "verified_after_mutation", "verify_failed",
                         "tools_available"):  # fmt: skip
                assert columns.field(name)[here] == getattr(point, name)
            assert columns.field("is_round")[here] == (point.stage == "round")
            number = columns.field("next_nudge")[here]
            assert (columns.codes[number - 1] if number else None) == point.next_nudge
            assert {c: columns.recorded(c)[here] for c in columns.codes if columns.recorded(c)[here]} == point.recorded
            assert texts.final[int(texts.final_of[here])].as_py() == point.final_text
            assert texts.user[int(texts.user_of[columns.field("turn")[here]])].as_py() == point.user_text


def test_defaults_fill_the_gaps_of_chats_that_say_nothing():
    walks = walks_of(4, 30)
    [segment] = build_segments(walks)
    defaults = Defaults(5, True, True)
    columns = Columns(segment.scalars, defaults)
    contexts = [p.context(w.facts.settled(defaults)) for w in walks for p in w.points]
    for name in ("budget_low", "require_delivery", "audit_mode"):
        assert list(columns.field(name)) == [getattr(context, name) for context in contexts]
        assert list(columns.field(name)) != list(Columns(segment.scalars).field(name))


def test_equal_chats_give_equal_bytes():
    assert list(build_segments(walks_of(8))) == list(build_segments(walks_of(8)))
    first, second = (next(iter(build_segments(walks_of(seed)))) for seed in (8, 9))
    assert first.digest != second.digest


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**9))
def test_stripes_are_cut_between_chats_and_cover_everything(seed):
    [segment] = build_segments(walks_of(seed, 25))
    columns = Columns(segment.scalars)
    assert len(columns.stripes) == STRIPES
    assert columns.stripes[-1] == columns.points
    assert list(columns.stripes) == sorted(columns.stripes)
    assert set(columns.stripes) <= set(columns.chat_starts.tolist())


@needs_shared
def test_scalars_take_what_the_layout_says():
    [segment] = build_segments(corpus_walks(200))
    recorded = sum(1 for _ in Columns(segment.scalars).codes)
    assert 12 <= (len(segment.scalars) / segment.points) - recorded <= 17


@needs_shared
def test_last_paragraphs_are_stored_where_they_differ():
    [segment] = build_segments(corpus_walks(200))
    texts = open_texts(segment.texts)
    differs = np.flatnonzero(texts.paragraph_of != SAME)
    assert len(texts.paragraph) <= len(differs)
    for at in differs[:20]:
        paragraph = texts.paragraph[int(texts.paragraph_of[at])].as_py()
        assert paragraph != texts.final[int(at)].as_py()


def test_texts_are_mapped_from_a_file(tmp_path):
    [segment] = build_segments(walks_of(3))
    path = tmp_path / "texts"
    path.write_bytes(segment.texts)
    assert open_texts(path).final.equals(open_texts(segment.texts).final)


@pytest.mark.parametrize(
    "spoil", [lambda b: b"", lambda b: b[:40], lambda b: b"ELC2" + b[4:], lambda b: b[: len(b) // 2]]
)
def test_a_damaged_blob_is_told(spoil):
    [segment] = build_segments(walks_of(3))
    with pytest.raises(DamagedSegment):
        Columns(spoil(segment.scalars))


def test_an_empty_segment_has_no_points():
    columns = Columns(SegmentBuilder().build().scalars)
    assert (columns.points, columns.turns, columns.stripes) == (0, 0, (0,) * STRIPES)
