"""One chat as a timeline, page by page: messages by turn, the points in it, and what the rules decide at each."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import groupby
from typing import Any

from chats.domain import ROLE_TOOL, CanonicalMessage, ChatRecord, MessageDetails
from chats.models import ChatVersion
from chats.queries.chats import record_of
from rules.domain.context import TurnContext
from rules.domain.deciding import Decision, replay
from rules.domain.language import check
from rules.domain.manifest import Manifest
from rules.domain.points import Point, Walk
from rules.domain.rule_set import RuleSpec, compile_rules
from rules.domain.scalar import TraceNode, trace
from rules.domain.turns import walk

TEXT_SHOWN = 4_000
# A page ends at the first turn after so many messages, and in a long turn after at most this many.
PAGE_MESSAGES = 100
MOST_MESSAGES = 250
FOLDED_FROM = 3
POINTS_LOOKED_AT = 3_000
CONTEXT_FIELDS = tuple(TurnContext.__dataclass_fields__)


@dataclass
class Call:
    name: str
    arguments: str
    result: str | None = None
    status: str = ""

    @property
    def has_failed(self) -> bool:
        return self.status == "error" or (self.status.startswith("exit ") and self.status != "exit 0")


@dataclass
class Item:
    """One message as the timeline shows it. `points` are those right after it."""

    index: int
    kind: str
    role: str
    name: str
    text: str
    cut: bool
    reasoning: str = ""
    finish_reason: str = ""
    nudge: str = ""
    note: str = ""
    calls: list[Call] = field(default_factory=list)
    points: list[Decision] = field(default_factory=list)

    @property
    def marks(self) -> list[str]:
        """What happens at the message's points, each once: recorded, fires, shadowed, capped."""
        outcomes = {rule.outcome for decision in self.points for rule in decision.rules}
        found = ["recorded"] if self.nudge else []
        return found + [mark for mark in ("fires", "shadowed", "capped") if mark in outcomes]

    @property
    def is_quiet_round(self) -> bool:
        """An answer with calls where no rule had anything to say."""
        return bool(self.calls) and not self.text.strip() and not any(_speaks(decision) for decision in self.points)


@dataclass(frozen=True)
class Block:
    """Consecutive messages of a turn. `folded` ones are tool rounds where nothing happened, shown as their number."""

    items: list[Item]
    folded: bool = False

    @property
    def calls(self) -> int:
        return sum(len(item.calls) for item in self.items)

    @property
    def failed(self) -> int:
        return sum(call.has_failed for item in self.items for call in item.calls)


@dataclass
class TimelineTurn:
    """`number` is None for what stands before the first turn. `starts_earlier`: the page begins inside of it."""

    number: int | None
    items: list[Item] = field(default_factory=list)
    no_final: bool = False
    starts_earlier: bool = False

    @property
    def rounds(self) -> int:
        return sum(bool(item.calls) for item in self.items)

    @property
    def blocks(self) -> list[Block]:
        """The messages with long rows of quiet tool rounds folded."""
        blocks: list[Block] = []
        for quiet, items in groupby(self.items, key=lambda item: item.is_quiet_round):
            part = list(items)
            blocks.append(Block(part, quiet and len(part) >= FOLDED_FROM))
        return blocks


@dataclass(frozen=True)
class Timeline:
    """One page of a chat. `decisions` are those of the page; `points` name all points of the chat in order.

    `earlier` and `later` are messages where the neighbouring pages start, None at the ends. `first` and `last` are
    the messages of the page, counted from 0.
    """

    turns: list[TimelineTurn]
    decisions: list[Decision]
    walked: Walk
    points: list[str]
    first: int
    last: int
    earlier: int | None
    later: int | None
    page: int
    pages: int


@dataclass(frozen=True)
class RuleStory:
    """What one rule came to at the chosen point, and the tree of its expression."""

    spec: RuleSpec
    outcome: str
    tree: dict[str, Any] | None
    count: int


def timeline(record: ChatRecord, manifest: Manifest, *, around: int = 0) -> Timeline:
    """The page of the chat that holds the message `around`, with what this manifest's rules decide there.

    Rules are evaluated in the turns of the page only; their counters begin anew with each turn, so that nothing is
    lost by it.
    """
    walked = walk(record, manifest.tool_catalogue(), manifest.prompts())
    starts = _page_starts(record, walked)
    page = max(0, bisect_right(starts, around) - 1)
    first = starts[page]
    end = starts[page + 1] if page + 1 < len(starts) else len(record.chat.messages)
    decisions = [d for d in _decisions(walked, manifest, first, end) if first <= d.point.message < end]
    return Timeline(
        turns=_turns(record, walked, decisions, first, end),
        decisions=decisions,
        walked=walked,
        points=[name_of(point) for point in walked.points],
        first=first,
        last=end - 1,
        earlier=starts[page - 1] if page else None,
        later=end if end < len(record.chat.messages) else None,
        page=page + 1,
        pages=len(starts),
    )


def record_of_version(version: ChatVersion) -> ChatRecord:
    """The stored chat. The last two are kept, since a person goes from point to point of one; versions never change."""
    return _kept_record(version.pk, version.content_hash)


@lru_cache(maxsize=2)
def _kept_record(version_id: int, content_hash: str) -> ChatRecord:
    return record_of(ChatVersion.objects.select_related("chat").get(pk=version_id, content_hash=content_hash))


def name_of(point: Point) -> str:
    """The point's name in addresses, `MESSAGE-STAGE`."""
    return f"{point.message}-{point.stage}"


def first_message_of_turn(record: ChatRecord, manifest: Manifest, turn: int) -> int:
    """Where a turn, counted from 1, begins; the first message when there is no such turn."""
    walked = walk(record, manifest.tool_catalogue(), manifest.prompts())
    return walked.turns[turn - 1].message if 1 <= turn <= len(walked.turns) else 0


def next_nudge(shown: Timeline, manifest: Manifest, after: int) -> str:
    """The first point behind the message `after` where a rule fires or a nudge is recorded; empty when none is near.

    Looks at up to 3,000 points that aren't on the page.
    """
    for decision in shown.decisions:
        if decision.point.message > after and decision.status is not None:
            return name_of(decision.point)
    behind = max(shown.last, after)
    turns = sorted({p.turn for p in shown.walked.points if p.message > behind})
    looked_at = 0
    for turn in turns:
        here = shown.walked.turns[turn]
        points = shown.walked.points[here.first_point : here.end_point]
        for decision in replay(replace(shown.walked, points=points), compile_rules(manifest.rules), manifest.defaults):
            if decision.point.message > behind and decision.status is not None:
                return name_of(decision.point)
        looked_at += len(points)
        if looked_at > POINTS_LOOKED_AT:
            break
    return ""


def _page_starts(record: ChatRecord, walked: Walk) -> list[int]:
    """Messages where pages begin: at turns if there are enough messages before, in long turns at an answer."""
    turns = {turn.message for turn in walked.turns}
    starts = [0]
    for index, message in enumerate(record.chat.messages):
        size = index - starts[-1]
        if (size >= PAGE_MESSAGES and index in turns) or (
            size >= MOST_MESSAGES and message.role == record.chat.ai_role
        ):
            starts.append(index)
    return starts


def _decisions(walked: Walk, manifest: Manifest, first: int, end: int) -> list[Decision]:
    """Of all points in turns that the page touches, so that counters are right in a turn that begins earlier."""
    touched = {point.turn for point in walked.points if first <= point.message < end}
    points = [point for point in walked.points if point.turn in touched and point.message < end]
    return replay(replace(walked, points=points), compile_rules(manifest.rules), manifest.defaults)


def _turns(record: ChatRecord, walked: Walk, decisions: Sequence[Decision], first: int, end: int) -> list[TimelineTurn]:
    nudges = {n.message: n.code for n in walked.nudges}
    skipped = {s.message: s.reason for s in walked.skipped}
    starts = {t.message: t for t in walked.turns}
    by_message: dict[int, list[Decision]] = {}
    for decision in decisions:
        by_message.setdefault(decision.point.message, []).append(decision)
    running = next((t for t in reversed(walked.turns) if t.message < first), None)
    turns = [TimelineTurn(running.number if running else None, starts_earlier=running is not None)]
    open_calls: dict[str, Call] = {}
    for index in range(first, end):
        message, details = record.chat.messages[index], record.details[index]
        if index in starts:
            turns.append(TimelineTurn(starts[index].number, no_final=starts[index].no_final))
            open_calls = {}
        if _joins_call(message, details, open_calls):
            continue
        item = _item(record, index, message, details)
        item.nudge, item.note = nudges.get(index, ""), skipped.get(index, "")
        if item.nudge:
            item.kind = "nudge"
        item.points = by_message.get(index, [])
        open_calls.update({call.id: shown for call, shown in zip(details.tool_calls, item.calls, strict=True)})
        turns[-1].items.append(item)
    return [turn for turn in turns if turn.items]


def _speaks(decision: Decision) -> bool:
    return decision.status is not None or any(rule.outcome != "false" for rule in decision.rules)


def _joins_call(message: CanonicalMessage, details: MessageDetails, open_calls: dict[str, Call]) -> bool:
    """Put a tool result under the call that it answers; False for one that answers none."""
    if message.role != ROLE_TOOL or not message.tool_call_id:
        return False
    call = open_calls.get(message.tool_call_id)
    if call is None:
        return False
    call.result = message.content[:TEXT_SHOWN]
    call.status = details.result_status or ("" if details.exit_code is None else f"exit {details.exit_code}")
    return True


def _item(record: ChatRecord, index: int, message: CanonicalMessage, details: MessageDetails) -> Item:
    chat = record.chat
    kinds = {chat.system_role: "system", chat.human_role: "human", chat.ai_role: "assistant", ROLE_TOOL: "tool"}
    return Item(
        index=index,
        kind=kinds.get(message.role, "system"),
        role=message.role,
        name=message.name or "",
        text=message.content[:TEXT_SHOWN],
        cut=len(message.content) > TEXT_SHOWN,
        reasoning=(details.reasoning or "")[:TEXT_SHOWN],
        finish_reason=details.finish_reason or details.finish_reason_raw or "",
        calls=[Call(call.name, _arguments(call.arguments, call.arguments_raw)) for call in details.tool_calls],
    )


def _arguments(arguments: dict[str, Any] | None, raw: str | None) -> str:
    text = raw or "" if arguments is None else json.dumps(arguments, ensure_ascii=False, indent=2)
    return text[:TEXT_SHOWN]


def find_decision(decisions: Sequence[Decision], name: str) -> Decision | None:
    """The decision at the point that `MESSAGE-STAGE` names."""
    message, _dash, stage = name.partition("-")
    if not message.isdecimal() or len(message) > 9:
        return None
    return next((d for d in decisions if d.point.message == int(message) and d.point.stage == stage), None)


def stories(decision: Decision, manifest: Manifest) -> list[RuleStory]:
    """Each rule of the point's stage in order, with the value of every part of its expression."""
    specs = {spec.code: spec for spec in manifest.rules}
    found = []
    for rule in decision.rules:
        spec = specs[rule.code]
        tree = check(spec.expression, stage=spec.stage).tree
        traced = trace(tree, decision.context) if tree is not None else None
        count = decision.context.nudges.get(rule.code, 0)
        shown = shown_node(traced, spec.expression) if traced else None
        found.append(RuleStory(spec, rule.outcome, shown, count))
    return found


def shown_node(node: TraceNode, source: str) -> dict[str, Any]:
    """A traced part as the why component takes it."""
    start, end = node.node.span
    leaf = node.node.kind in ("bool", "int", "string", "null", "list")
    children = [child for child in node.children if child.node.kind not in ("bool", "int", "string", "null", "list")]
    return {
        "label": source[start:end],
        "value": "skipped" if node.state == "not-evaluated" else node.state,
        "shown": "" if leaf or node.state in ("true", "false", "not-evaluated") else _value(node.result),
        "start": start,
        "end": end,
        "children": [shown_node(child, source) for child in children],
    }


def _value(value: Any) -> str:
    if value is None:
        return "null"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 120 else text[:117] + "…"


def context_rows(decision: Decision, walked: Walk, manifest: Manifest) -> list[dict[str, Any]]:
    """The fifteen fields of the turn context with their values; `unknown` marks values that are only assumed."""
    unknown = decision.point.unknown(walked.facts, walked.facts.settled(manifest.defaults))
    return [
        {"name": name, "value": _context_value(getattr(decision.context, name)), "unknown": name in unknown}
        for name in CONTEXT_FIELDS
    ]


def _context_value(value: Any) -> str:
    if isinstance(value, str):
        return value if len(value) <= 600 else value[:597] + "…"
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "null"
    if isinstance(value, int):
        return str(value)
    return ", ".join(f"{code}: {n}" for code, n in value.items()) or "{}"
