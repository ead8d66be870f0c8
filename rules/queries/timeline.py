"""One chat as a timeline: messages by turn, the points in it, and what the rules decide at each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from chats.domain import ROLE_TOOL, CanonicalMessage, ChatRecord, MessageDetails
from rules.domain.context import TurnContext
from rules.domain.language import check
from rules.domain.manifest import Manifest
from rules.domain.rule_set import RuleSpec, compile_rules
from rules.domain.scalar import TraceNode, trace
from rules.domain.turns import Walk, walk
from rules.domain.walk import Decision, replay

TEXT_SHOWN = 4_000
CONTEXT_FIELDS = tuple(TurnContext.__dataclass_fields__)


@dataclass
class Call:
    name: str
    arguments: str
    result: str | None = None
    status: str = ""


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


@dataclass
class TimelineTurn:
    """`number` is None for what stands before the first turn."""

    number: int | None
    items: list[Item] = field(default_factory=list)
    no_final: bool = False


@dataclass(frozen=True)
class Timeline:
    turns: list[TimelineTurn]
    decisions: list[Decision]
    walked: Walk


@dataclass(frozen=True)
class RuleStory:
    """What one rule came to at the chosen point, and the tree of its expression."""

    spec: RuleSpec
    outcome: str
    tree: dict[str, Any] | None
    count: int


def timeline(record: ChatRecord, manifest: Manifest) -> Timeline:
    """The chat with the decisions that this manifest's rules come to."""
    walked = walk(record, manifest.tool_catalogue(), manifest.prompts())
    decisions = replay(walked, compile_rules(manifest.rules), manifest.defaults)
    nudges = {n.message: n.code for n in walked.nudges}
    skipped = {s.message: s.reason for s in walked.skipped}
    starts = {t.message: t for t in walked.turns}
    by_message: dict[int, list[Decision]] = {}
    for decision in decisions:
        by_message.setdefault(decision.point.message, []).append(decision)
    turns = [TimelineTurn(None)]
    open_calls: dict[str, Call] = {}
    for index, (message, details) in enumerate(zip(record.chat.messages, record.details, strict=True)):
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
    return Timeline([t for t in turns if t.items], decisions, walked)


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
    if not message.isdigit():
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
