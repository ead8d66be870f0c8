"""What an edit does to the stored points, and the points themselves (rule-engine.md section 6, product.md 5.3).

Values and entry points; the numeric libraries are loaded at the first question. Each call is bounded: text terms that
nobody has asked for yet are searched for about a tenth of a second, and the same call again carries on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Literal

from chats.models import Chat, ChatVersion
from eleanor_site.tenants.models import Tenant
from rules.domain.language.diagnostics import Diagnostic
from rules.domain.rule_set import RuleSpec
from rules.queries.rules import rule_set
from rules.queries.segments import ALL, Scope

if TYPE_CHECKING:
    from rules.domain.corpus_findings import Observed
    from rules.domain.effects import Effect

State = Literal["ready", "empty", "preparing", "broken"]
SETS = ("newly", "gone", "same", "fires", "near", "shadowed", "capped", "matches")
PREVIEW_SECONDS = 0.12
PAGE = 25


@dataclass(frozen=True)
class CorpusFacts:
    """What the numbers are about. `missing` chats have no columns yet and are not counted."""

    name: str
    digest: str
    chats: int
    points: int
    missing: int
    importing: bool
    as_of: datetime | None


@dataclass(frozen=True)
class EffectAnswer:
    """The effect, or why there is none: no chats, columns or text terms in the making, a broken rule in the set.

    `before` counts the same rule in the live release, None where it isn't live. While `preparing`, `prepared` of
    `prepare_total` chats or segments are ready.
    """

    state: State
    corpus: CorpusFacts
    effect: Effect | None = None
    before: dict[str, int] | None = None
    broken_code: str = ""
    prepared: int = 0
    prepare_total: int = 0
    ms: float = 0.0

    def as_json(self) -> dict[str, Any]:
        return {
            "state": self.state,
            "effect": self.effect.as_json() if self.effect else None,
            "before": self.before,
            "corpus": {
                "name": self.corpus.name,
                "digest": self.corpus.digest,
                "chats": self.corpus.chats,
                "points": self.corpus.points,
                "missing": self.corpus.missing,
                "importing": self.corpus.importing,
                "as_of": self.corpus.as_of.isoformat() if self.corpus.as_of else None,
            },
            "broken": self.broken_code or None,
            "prepared": self.prepared,
            "prepare_total": self.prepare_total,
            "ms": round(self.ms, 1),
        }


@dataclass(frozen=True)
class Excerpt:
    """A stretch of a text: pieces, of which the marked ones made a term true; cut at either end or not."""

    field: str
    parts: tuple[TextPart, ...]
    cut_before: bool = False
    cut_after: bool = False


@dataclass(frozen=True)
class TextPart:
    text: str
    marked: bool


@dataclass(frozen=True)
class PointRow:
    """A point as lists show it. `key` names its place in the columns, `point` its place in the chat."""

    key: str
    chat: Chat
    version: ChatVersion
    message: int
    stage: str
    turn: int
    recorded: str | None
    fired: str | None
    fired_before: str | None
    counterfactual: bool
    excerpt: Excerpt

    @property
    def point(self) -> str:
        return f"{self.message}-{self.stage}"

    @property
    def language(self) -> str:
        return self.chat.language

    @property
    def field(self) -> str:
        return self.excerpt.field

    @property
    def parts(self) -> tuple[TextPart, ...]:
        return self.excerpt.parts


@dataclass(frozen=True)
class PointPage:
    """Some points of a set, in the order of the columns; `next_after` is where the next page goes on."""

    state: State
    rows: list[PointRow] = field(default_factory=list)
    next_after: str = ""
    total: int = 0
    exact: bool = True


@dataclass(frozen=True)
class ClauseMisses:
    """An atomic clause of the expression, and how many points it alone keeps from matching."""

    number: int
    start: int
    end: int
    text: str
    missed: int
    matters: bool


@dataclass(frozen=True)
class OrderRow:
    """One rule of a list against the live release."""

    code: str
    before: int
    after: int
    newly: int
    gone: int


@dataclass(frozen=True)
class OrderAnswer:
    state: State
    corpus: CorpusFacts
    rows: list[OrderRow] = field(default_factory=list)
    broken_code: str = ""


@dataclass(frozen=True)
class Day:
    """Firings in chats that began on a day (UTC), under the edited rules and under the live ones."""

    date: date
    fires: int
    before: int


@dataclass(frozen=True)
class Daily:
    """The days asked for, none when no chat began on one of them, and the rule's firings that they lack.

    `undated` ones lie in chats whose time isn't known, `outside` ones in chats that began before or after these days.
    Not `exact`: text terms are being searched for, and the same call again knows more.
    """

    days: list[Day] = field(default_factory=list)
    undated: int = 0
    outside: int = 0
    exact: bool = True


# --- entry points


def edited_rules(
    tenant: Tenant,
    code: str,
    *,
    stage: str,
    max_nudges: int,
    expression: str,
    prompt: str = "",
    position: int | None = None,
) -> list[RuleSpec]:
    """The live rules with this one in its place; at `position`, counted from 1, or at the end when it isn't live."""
    rules = rule_set(tenant, drafts=False)
    at = next((n for n, spec in enumerate(rules) if spec.code == code), None)
    edited = RuleSpec(
        code=code,
        stage="round" if stage == "round" else "final",
        max_nudges=max_nudges,
        expression=expression,
        prompt=prompt,
        version=rules[at].version if at is not None else 0,
        draft=True,
    )
    if at is not None:
        del rules[at]
    place = position - 1 if position is not None else at if at is not None else len(rules)
    rules.insert(min(max(place, 0), len(rules)), edited)
    return rules


def effect(
    tenant: Tenant,
    rules: Sequence[RuleSpec],
    code: str,
    *,
    scope: Scope = ALL,
    seconds: float | None = PREVIEW_SECONDS,
) -> EffectAnswer:
    """What this rule list does instead of the live one, seen from the rule `code`, which is in it or in the live one.

    Raises ValueError when `code` is in neither list.
    """
    from rules.queries import point_sets

    return point_sets.effect(tenant, rules, code, scope, seconds)


def point_page(
    tenant: Tenant,
    rules: Sequence[RuleSpec],
    code: str,
    set_name: str,
    *,
    scope: Scope = ALL,
    clause: int | None = None,
    after: str = "",
    size: int = PAGE,
) -> PointPage:
    """A page of one of the sets. `clause` narrows near misses to those of one clause."""
    from rules.queries import point_sets

    return point_sets.point_page(tenant, rules, code, set_name, scope, clause, after, size)


def near_misses(tenant: Tenant, rules: Sequence[RuleSpec], code: str, *, scope: Scope = ALL) -> list[ClauseMisses]:
    """The clauses of the rule's expression with their near misses; empty while text terms are being found."""
    from rules.queries import point_sets

    return point_sets.near_misses(tenant, rules, code, scope)


def corpus_warnings(tenant: Tenant, rules: Sequence[RuleSpec], code: str, *, scope: Scope = ALL) -> list[Diagnostic]:
    """Warnings that need the points: field never seen, one value only, clause without effect, one language."""
    from rules.queries import point_sets

    return point_sets.corpus_warnings(tenant, rules, code, scope)


def observed(tenant: Tenant, stage: str, *, scope: Scope = ALL) -> dict[str, tuple[Observed, ...]]:
    """The commonest values of each field at the points of a stage, for completion."""
    from rules.queries import point_sets

    return point_sets.observed(tenant, stage, scope)


def order_effect(tenant: Tenant, rules: Sequence[RuleSpec], *, scope: Scope = ALL) -> OrderAnswer:
    """A whole rule list against the live one: firings of each rule before and after."""
    from rules.queries import point_sets

    return point_sets.order_effect(tenant, rules, scope)


def live_counts(tenant: Tenant, *, scope: Scope = ALL) -> dict[str, dict[str, int]]:
    """What each live rule does: points, matches, fires, shadowed, capped, reproduced, different, new; {} unprepared."""
    from rules.queries import point_sets

    return point_sets.live_counts(tenant, scope)


def daily(
    tenant: Tenant, rules: Sequence[RuleSpec], code: str, *, until: date, days: int = 28, scope: Scope = ALL
) -> Daily:
    """Firings by the day on which the chat began."""
    from rules.queries import point_sets

    return point_sets.daily(tenant, rules, code, until, days, scope)
