"""One stored point under a rule set: its context, why each rule came to what it did, and where its texts matched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from chats.domain import ROLE_TOOL, ChatRecord
from chats.models import Chat, ChatVersion
from chats.queries.chats import record_of
from eleanor_site.tenants.models import Tenant
from rules.domain.deciding import Decision, replay
from rules.domain.language import check
from rules.domain.rule_set import RuleSpec, compile_rules
from rules.domain.scalar import Mark, trace
from rules.domain.turns import walk
from rules.queries.manifests import manifest_of
from rules.queries.timeline import RuleStory, context_rows, stories

_TEXTS = ("final_text", "user_text")
_SHOWN = 3_000


@dataclass(frozen=True)
class PointName:
    """A point as addresses name it for good: CHAT.VERSION.MESSAGE-STAGE."""

    chat: int
    version: int
    message: int
    stage: str

    @classmethod
    def parse(cls, text: str) -> PointName | None:
        """None for a text that names no point."""
        place, _dash, stage = text.partition("-")
        parts = place.split(".")
        if stage not in ("final", "round") or len(parts) != 3:
            return None
        if not all(part.isascii() and part.isdecimal() and len(part) < 18 for part in parts):
            return None
        return cls(int(parts[0]), int(parts[1]), int(parts[2]), stage)

    def __str__(self) -> str:
        return f"{self.chat}.{self.version}.{self.message}-{self.stage}"

    def find(self) -> ChatVersion | None:
        """The stored chat version, with its content."""
        versions = ChatVersion.objects.select_related("chat")
        return versions.filter(chat=self.chat, number=self.version).first()


@dataclass(frozen=True)
class MarkedText:
    """A text of the context in pieces; those that made a term of the rule true are marked."""

    field: str
    parts: list[tuple[str, bool]]
    cut: bool


@dataclass(frozen=True)
class PointStory:
    """`mine` is the story of the rule in question, None when it isn't evaluated at this stage; `before` the rules
    that were asked first."""

    name: PointName
    chat: Chat
    version: ChatVersion
    record: ChatRecord
    decision: Decision
    mine: RuleStory | None
    before: list[RuleStory]
    texts: list[MarkedText]
    fields: list[dict[str, Any]]


def point_story(tenant: Tenant, name: PointName, specs: Sequence[RuleSpec], code: str) -> PointStory | None:
    """What this rule set decides there; None when there is no such point. Raises BrokenRule."""
    version = name.find()
    if version is None:
        return None
    record = record_of(version)
    manifest = manifest_of(tenant, specs, [version.pk])
    walked = walk(record, manifest.tool_catalogue(), manifest.prompts())
    point = next((p for p in walked.points if (p.message, p.stage) == (name.message, name.stage)), None)
    if point is None:
        return None
    # Counters begin anew at each turn, so the points of this turn decide.
    turn = replace(walked, points=[p for p in walked.points if p.turn == point.turn])
    decision = next(d for d in replay(turn, compile_rules(specs), manifest.defaults) if d.point == point)
    told = stories(decision, manifest)
    at = next((n for n, story in enumerate(told) if story.spec.code == code), None)
    mine = told[at] if at is not None else None
    return PointStory(
        name=name,
        chat=version.chat,
        version=version,
        record=record,
        decision=decision,
        mine=mine,
        before=told if at is None else told[:at],
        texts=_marked_texts(decision, mine),
        fields=context_rows(decision, walked, manifest),
    )


def turn_of(tenant: Tenant, version: ChatVersion, message: int, stage: str) -> int | None:
    """The turn of a point, counted from 0; None where the chat has no such point."""
    manifest = manifest_of(tenant, [], [version.pk])
    walked = walk(record_of(version), manifest.tool_catalogue(), manifest.prompts())
    return next((p.turn for p in walked.points if (p.message, p.stage) == (message, stage)), None)


def last_message(record: ChatRecord, message: int) -> int:
    """The message after which a nudge would stand: the response itself, or the last result of its round."""
    messages = record.chat.messages
    end = message
    while end + 1 < len(messages) and messages[end + 1].role == ROLE_TOOL:
        end += 1
    return end


def _marked_texts(decision: Decision, mine: RuleStory | None) -> list[MarkedText]:
    marks: list[Mark] = []
    if mine is not None:
        tree = check(mine.spec.expression, stage=mine.spec.stage).tree
        if tree is not None:
            marks = [mark for node in trace(tree, decision.context).walk() for mark in node.marks]
    found = []
    for field in _TEXTS:
        text = str(getattr(decision.context, field))
        spans = sorted({(m.start, m.end) for m in marks if m.field == field})
        if text:
            found.append(MarkedText(field, _parts(text[:_SHOWN], spans), len(text) > _SHOWN))
    return found


def _parts(text: str, spans: Sequence[tuple[int, int]]) -> list[tuple[str, bool]]:
    """The text cut at the spans; spans that overlap are joined."""
    parts: list[tuple[str, bool]] = []
    at = 0
    for start, end in spans:
        start, end = max(start, at), min(end, len(text))
        if start >= end:
            continue
        if start > at:
            parts.append((text[at:start], False))
        parts.append((text[start:end], True))
        at = end
    if at < len(text):
        parts.append((text[at:], False))
    return parts
