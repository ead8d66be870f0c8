"""Made-up chats as walks and segments: by the corpus generator where it is, and small random ones of our own."""

from __future__ import annotations

import importlib.util
import json
import random
from functools import cache
from types import ModuleType
from typing import Any, get_args

from chats.domain.exchange import from_json
from rules.domain.atoms import Atoms
from rules.domain.columns import Columns, Segment, build_segments
from rules.domain.context import FinishReason, TurnContext
from rules.domain.masks import Points
from rules.domain.points import NO_DEFAULTS, ChatFacts, Defaults, Point, Turn, Walk
from rules.domain.texts import open_texts
from rules.domain.tools import ToolCatalogue
from rules.domain.turns import walk
from tests.rules.domain.language.random_predicates import CODES, TEXTS
from tests.shared_data import SHARED


@cache
def corpus_maker() -> ModuleType:
    """The generator beside the checkout."""
    path = SHARED / "bench" / "make_corpus.py"
    spec = importlib.util.spec_from_file_location("make_corpus", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def corpus_walks(conversations: int = 200, seed: int = 7) -> list[Walk]:
    """The chats of the generator, walked with the built-in catalogue."""
    catalogue = ToolCatalogue()
    made = corpus_maker().generate(conversations, seed)
    return [walk(from_json(json.dumps(chat)), catalogue) for chat, _ in made]


def random_walk(rng: random.Random) -> Walk:
    """A chat whose points are drawn, not derived: any combination of values may occur."""
    points: list[Point] = []
    turns: list[Turn] = []
    facts = ChatFacts(
        step_budget=rng.choice([None, 3, 6, -5, 10**12]),
        require_delivery=rng.choice([None, True, False]),
        audit_mode=rng.choice([None, True, False]),
        tools_known=rng.random() < 0.8,
        tools_available=rng.random() < 0.8,
        verify_available=rng.random() < 0.8,
    )
    for number in range(rng.randint(0, 4)):
        first, user, recorded = len(points), rng.choice(TEXTS), dict[str, int]()
        for step in range(rng.randint(1, 6)):
            nudge = rng.choice(CODES) if rng.random() < 0.4 else None
            values: dict[str, Any] = {
                "seq": len(points), "turn": number, "message": len(points) * 2 + 1,
                "stage": rng.choice(["final", "round"]), "final_text": rng.choice(TEXTS),
                "finish_reason": rng.choice([None, *get_args(FinishReason)]), "user_text": user,
                "tools_available": facts.tools_available, "tool_calls_total": rng.choice([0, 1, 2, 7, 300]),
                "tool_calls_since_user": rng.randrange(3), "mutated": rng.random() < 0.5,
                "verified_after_mutation": rng.random() < 0.5, "verify_failed": rng.random() < 0.5,
                "no_progress_rounds": rng.randrange(4), "read_only_rounds": rng.randrange(9), "responses": step + 1,
                "recorded": dict(recorded), "next_nudge": nudge, "same_results": None,
            }  # fmt: skip
            points.append(Point(**values))
            if nudge is not None:
                recorded[nudge] = recorded.get(nudge, 0) + 1
        turns.append(Turn(number, 0, first, len(points), False))
    return Walk(facts, points, turns, [], [])


def views_of(walks: list[Walk], defaults: Defaults = NO_DEFAULTS, limit: int = 65_536) -> list[Points]:
    """All points of the chats, segment by segment, with nothing cached."""
    return [view_of(segment, defaults) for segment in build_segments(walks, limit)]


def view_of(segment: Segment, defaults: Defaults = NO_DEFAULTS) -> Points:
    columns = Columns(segment.scalars, defaults)
    return Points(columns, Atoms(columns, lambda: open_texts(segment.texts)))


def contexts_of(walks: list[Walk], defaults: Defaults = NO_DEFAULTS) -> list[TurnContext]:
    """The context at each point, with recorded nudges only."""
    return [point.context(w.facts.settled(defaults)) for w in walks for point in w.points]
