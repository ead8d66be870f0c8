"""What endpoints say of an effect: its numbers, and why rules come to what they do at a point."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from eleanor_site.tenants.models import APIKey, KeyScope
from rules.api.live_types import Stage
from rules.queries.effects import EffectAnswer, OrderAnswer
from rules.queries.timeline import RuleStory

Preparedness = Literal["ready", "empty", "preparing", "broken"]


class EffectCorpus(BaseModel):
    """What the numbers are about; `missing` chats aren't counted yet."""

    name: str
    digest: str
    chats: int
    points: int
    missing: int
    importing: bool
    as_of: datetime | None


class OtherRule(BaseModel):
    """A rule that fires more or less often because of the change."""

    code: str
    delta: int


class EffectCounts(BaseModel):
    """Points of the rule's stage. While not `exact` they are estimates from `seen` of them: ask again.

    `low` and `high` bound `fires` then. `zero` says which nought it is when nothing matches.
    """

    fires: int
    matches: int
    shadowed: int
    capped: int
    points: int
    newly: int
    gone: int
    same: int
    others: list[OtherRule]
    exact: bool
    seen: int
    low: int | None
    high: int | None
    zero: Literal["no-data", "not-evaluable", "zero"] | None
    ms: float


class EffectNumbers(BaseModel):
    """The effect, or why there is none: no chats, columns in the making (ask again), a broken rule in the set.

    `before` counts the same rule in the live release, null where it isn't live.
    """

    state: Preparedness
    effect: EffectCounts | None
    before: dict[str, int] | None
    corpus: EffectCorpus
    broken: str | None
    prepared: int
    prepare_total: int
    ms: float

    @classmethod
    def of(cls, answer: EffectAnswer) -> EffectNumbers:
        return cls(**answer.as_json())


class OrderedRule(BaseModel):
    """Firings of one rule in the live release and after the change."""

    code: str
    before: int
    after: int
    newly: int
    gone: int


class OrderEffect(BaseModel):
    state: Preparedness
    broken: str | None
    rules: list[OrderedRule]

    @classmethod
    def of(cls, answer: OrderAnswer) -> OrderEffect:
        rules = [
            OrderedRule(code=row.code, before=row.before, after=row.after, newly=row.newly, gone=row.gone)
            for row in answer.rows
        ]
        return cls(state=answer.state, broken=answer.broken_code or None, rules=rules)


class ContextField(BaseModel):
    """A field of the turn context as text; `unknown` ones are only assumed."""

    name: str
    value: str
    unknown: bool


class RuleAtPoint(BaseModel):
    """What a rule came to at a point. `why` is the tree of its expression: label, value, place, children.

    It is null for a key that may not read rules, and without values of fields for one that may not read chats.
    """

    code: str
    version: int
    outcome: str
    count: int = Field(description="How often it had nudged in the turn.")
    why: dict[str, Any] | None

    @classmethod
    def of(cls, story: RuleStory, key: APIKey) -> RuleAtPoint:
        return cls(
            code=story.spec.code,
            version=story.spec.version,
            outcome=story.outcome,
            count=story.count,
            why=_why(story.tree, key),
        )


def _why(tree: dict[str, Any] | None, key: APIKey) -> dict[str, Any] | None:
    if tree is None or not key.allows(KeyScope.RULES_READ):
        return None
    return tree if key.allows(KeyScope.CHATS_READ) else _without_values(tree)


def _without_values(node: dict[str, Any]) -> dict[str, Any]:
    """Values may be texts of a chat, or parts of them."""
    return {**node, "shown": "", "children": [_without_values(child) for child in node["children"]]}


class PointPlace(BaseModel):
    """A stored point. `point` names it for good: CHAT.VERSION.MESSAGE-STAGE; turns count from 0."""

    point: str
    chat: int
    version: int
    message: int
    stage: Stage
    turn: int
