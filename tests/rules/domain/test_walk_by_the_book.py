"""The walk, and the choice of rules, against a second reading of continuation.md sections 2 to 9.

The walker goes through a chat once, message by message. The reading below cuts the chat into turns first and works out
each turn by itself, with the results of a response looked up before anything is counted: slower, and near the text.
"""

from __future__ import annotations

import json
import random
import unicodedata
from collections import Counter
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rules.domain.catalogue import default_rules
from rules.domain.context import TurnContext
from rules.domain.deciding import replay
from rules.domain.nudges import KnownPrompts
from rules.domain.points import Defaults, Point
from rules.domain.rule import ContinuationRule
from rules.domain.tools import ToolCatalogue, ToolEntry, outcome
from rules.domain.turns import walk
from tests.rules.domain.chats import Message, chat

CATALOGUE = ToolCatalogue(
    [
        ToolEntry("deploy", "other", success_pattern="deployed"),
        ToolEntry("flaky", "verify", repeatable=True, failure_pattern="boom"),
        ToolEntry("query", "read", "mode", "^ro$"),
    ]
)
PROMPTS = {"Go on now.": "K1", "Continuez é": "K2"}
KNOWN = KnownPrompts.of_texts([("Go  on\nnow.", "K1"), ("Continuez é", "K2")])
RULES = [
    *default_rules(),
    ContinuationRule("ZZ", 1, lambda ctx: ctx.tool_calls_since_user == 0, "z"),
    ContinuationRule("K1", 2, lambda ctx: ctx.read_only_rounds > 0, "k", "round"),
]
TOOLS = ["get_x", "edit", "run_tests", "submit", "wait_for", "deploy", "flaky", "query", "bash", "mcp__s__finish"]
USUAL, OTHER = ("user", "assistant", "system"), ("customer", "bot", "policy")
ARGUMENTS: list[dict[str, Any]] = [
    {}, {"a": 1}, {"a": 1.0}, {"a": True}, {"b": 2, "a": [1, "é"]}, {"a": [1, "e\u0301"], "b": 2.0}, {"mode": "ro"},
    {"command": "ls"}, {"command": "pytest"}, {"command": "rm x"}, {"result": "  final "}, {"summary": 5, "text": "T"},
]  # fmt: skip
ANSWERS = ["result", "message", "answer", "final_answer", "final_thought", "summary", "text", "output"]
WAITING: list[dict[str, Any]] = [{"name": "wait_for"}]
REFUSAL = "The user doesn't want to proceed with this."


# --- chats that hold every oddity


class Writer:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.human, self.ai, self.system = rng.choice([USUAL, USUAL, OTHER])
        self.ids: list[str] = []
        self.calls = WAITING

    def chat(self) -> list[Message]:
        kinds = [self.of_human, self.of_system, self.of_nobody, self.of_ai, self.of_tool]
        return [kind() for kind in self.rng.choices(kinds, (16, 5, 3, 40, 36), k=self.rng.randint(1, 24))]

    def maybe_example(self, message: Message) -> Message:
        return {**message, "fewshot_example": True, "name": "x"} if self.rng.random() < 0.04 else message

    def of_human(self) -> Message:
        texts = ["do it", "ok", "Go on now.", " Go   on\nnow. ", "Continuez e\u0301", "Go on now. Please", ""]
        message = {"role": self.human, "content": self.rng.choice(texts)}
        if self.rng.random() < 0.3:
            message["nudge_code"] = self.rng.choice(["EAI-GOV-04", "EAI-GOV-07", "ZZ"])
        return self.maybe_example(message)

    def of_system(self) -> Message:
        return {"role": self.system, "content": self.rng.choice(["Be brief.", 'ELEANOR_SYSTEM {"source": "ST"}'])}

    def of_nobody(self) -> Message:
        strange = OTHER if self.human == "user" else USUAL
        return {"role": self.rng.choice(["critic", "developer", *strange]), "content": "Go on now."}

    def of_ai(self) -> Message:
        texts = ["", " \n", "I will run it.", "  Done. "]
        message: Message = {"role": self.ai, "content": self.rng.choice(texts)}
        if self.rng.random() < 0.4:
            message["finish_reason"] = self.rng.choice(["stop", "length", "tool_calls", "error"])
        if self.rng.random() < 0.75:
            count = self.rng.randint(1, 3)
            first = self.rng.randint(0, len(self.ids) // 2 + 1)  # ids may come again in the chat
            message["tool_calls"] = [self.call(f"c{first + n}") for n in range(count)]
            if self.rng.random() < 0.4:
                self.calls = self.rng.choice([WAITING, message["tool_calls"]])
            if self.rng.random() < 0.6:  # the same once more, under other ids
                message["tool_calls"] = [{**call, "id": f"c{first + n}"} for n, call in enumerate(self.calls)]
        return self.maybe_example(message)

    def call(self, call_id: str) -> dict[str, Any]:
        self.ids.append(call_id)
        call: dict[str, Any] = {"id": call_id, "name": self.rng.choice(TOOLS)}
        kind = self.rng.random()
        if kind < 0.6:
            call["arguments"] = self.rng.choice(ARGUMENTS)
        elif kind < 0.75:
            call["arguments_raw"] = self.rng.choice(['{"a": 1', '{"a": 1}', "x"])
        return call

    def of_tool(self) -> Message:
        texts = ["ok", "1 failed", "deployed", "boom", '{"ok": true}', REFUSAL, ""]
        message: Message = {"role": "tool", "content": self.rng.choice(texts)}
        if self.ids and self.rng.random() < 0.75:
            message["tool_call_id"] = self.rng.choice(self.ids[-3:])
        elif self.rng.random() < 0.2:
            message["tool_call_id"] = self.rng.choice(["nobody's", ""])
        if self.rng.random() < 0.4:
            message["name"] = self.rng.choice(TOOLS)
        if self.rng.random() < 0.2:
            message |= self.rng.choice([{"result_status": "ok"}, {"result_status": "not_run"}, {"exit_code": 1}])
        return self.maybe_example(message)


# --- the second reading


class Reading:
    """All points as dicts, what is skipped and why, and the turns, of a chat."""

    def __init__(self, messages: list[Message], roles: tuple[str, str, str], tools: list[str] | None) -> None:
        called = {call["name"] for message in messages for call in message.get("tool_calls", [])}
        names = called if tools is None else tools
        self.tools_available = bool(names)
        self.verify_available = any(CATALOGUE.can_verify(name) for name in names)
        self.points: list[dict[str, Any]] = []
        self.skipped: list[tuple[int, str]] = []
        self.turns: list[tuple[int, int, int, int, bool]] = []
        for turn in self.cut(messages, *roles):
            first = len(self.points)
            self.read(turn)
            finals = [point for point in self.points[first:] if point["stage"] == "final"]
            self.turns.append((len(self.turns), turn[0][0], first, len(self.points), not finals))
        self.skipped.sort()

    def cut(self, messages: list[Message], human: str, ai: str, system: str) -> list[list[tuple[int, str, Message]]]:
        """Section 2: turns of (index, kind, message)."""
        turns: list[list[tuple[int, str, Message]]] = []
        for index, message in enumerate(messages):
            role = message["role"]
            if role not in (human, ai, "tool") or role == system or message.get("fewshot_example"):
                continue
            kind = {human: "human", ai: "response", "tool": "result"}[role]
            if kind != "human":
                if turns:
                    turns[-1].append((index, kind, message))
                else:
                    self.skipped.append((index, "preamble" if kind == "response" else "orphan_result"))
                continue
            responded = turns and any(kind_before == "response" for _, kind_before, _ in turns[-1])
            if turns and not responded:
                turns[-1].append((index, "human", message))
            elif turns and code_of(message):
                turns[-1].append((index, "nudge", message))
            else:
                turns.append([(index, "human", message)])
        return turns

    def read(self, turn: list[tuple[int, str, Message]]) -> None:
        """Sections 3 to 6 for one turn: each response with all that stands before the next one."""
        self.state = {
            "turn": len(self.turns), "user_text": "", "tool_calls_total": 0, "tool_calls_since_user": 0,
            "mutated": False, "verified_after_mutation": True, "verify_failed": False, "no_progress_rounds": 0,
            "read_only_rounds": 0, "responses": 0, "tools_available": self.tools_available,
        }  # fmt: skip
        self.recorded: Counter[str] = Counter()
        self.round_before: list[str] | None = None
        starts = [at for at, (_, kind, _) in enumerate(turn) if kind == "response"]
        for index, kind, message in turn[: starts[0] if starts else len(turn)]:
            if kind == "human":
                self.state["user_text"] = message["content"]
            else:
                self.skipped.append((index, "orphan_result"))
        for start, end in pairwise([*starts, len(turn)]):
            self.state["responses"] += 1
            self.point_before: dict[str, Any] | None = None
            index, _, message = turn[start]
            self.read_response(index, message, turn[start + 1 : end], followed=end < len(turn))

    def read_response(
        self, index: int, message: Message, rest: list[tuple[int, str, Message]], *, followed: bool
    ) -> None:
        calls = message.get("tool_calls", [])
        entries = [CATALOGUE.entry_for(call["name"], call.get("arguments")) for call in calls]
        working = [at for at, entry in enumerate(entries) if entry.kind != "finish"]
        results: dict[int, Message] = {}
        last_result = -1
        for place, (result_index, kind, result) in enumerate(rest):
            if kind != "result":
                continue
            at = answered_by(result, calls, results)
            if at is None:
                self.skipped.append((result_index, "orphan_result"))
                continue
            results[at] = result
            last_result = place if at in working else last_result
        nudges = [(place, code_of(other) or "") for place, (_, kind, other) in enumerate(rest) if kind == "nudge"]
        between = [code for place, code in nudges if place < last_result]
        for code in between:
            self.walk_over(code)
        if working and (followed or any(at in results for at in working)):
            self.count_round([(calls[at], entries[at], results.get(at)) for at in working], since_user=not between)
            reason = message.get("finish_reason") or "tool_calls"
            self.add_point(index, "round", message["content"], reason)
        elif working:
            self.skipped.append((index, "pending_round"))
        if not calls:
            self.add_point(index, "final", message["content"], message.get("finish_reason"))
        elif len(working) < len(calls):
            finishing = [call for call, entry in zip(calls, entries, strict=True) if entry.kind == "finish"]
            given = [(call.get("arguments") or {}).get(name) for call in finishing for name in ANSWERS]
            text = next((value for value in given if isinstance(value, str)), message["content"])
            self.add_point(index, "final", text, "tool_calls")
        for place, code in nudges:
            if place > last_result:
                self.walk_over(code)

    def count_round(self, calls: list[tuple[Any, ToolEntry, Message | None]], *, since_user: bool) -> None:
        state = self.state
        state["tool_calls_total"] += len(calls)
        state["tool_calls_since_user"] += len(calls) if since_user else 0
        for _, entry, result in calls:
            told = result and outcome(result["content"], result.get("result_status"), result.get("exit_code"), entry)
            if entry.kind == "other" and self.verify_available and told != "not_run":
                state |= {"mutated": True, "verified_after_mutation": False}
            elif entry.kind == "verify" and told == "ok":
                state |= {"verified_after_mutation": True, "verify_failed": False}
            elif entry.kind == "verify" and told == "failed":
                state["verify_failed"] = True
        reads = all(entry.kind == "read" for _, entry, _ in calls)
        state["read_only_rounds"] = state["read_only_rounds"] + 1 if reads else 0
        keys = sorted(key_of(call) for call, entry, _ in calls if not entry.repeatable)
        repeats = bool(keys) and keys == self.round_before
        state["no_progress_rounds"] = state["no_progress_rounds"] + 1 if repeats else 0
        self.round_before = keys or None

    def walk_over(self, code: str) -> None:
        if self.point_before is not None:
            self.point_before["next_nudge"] = code
        self.point_before = None
        self.recorded[code] += 1
        self.state["tool_calls_since_user"] = 0

    def add_point(self, message: int, stage: str, text: str, reason: str | None) -> None:
        own = {"message": message, "stage": stage, "final_text": text.strip(), "finish_reason": reason}
        self.point_before = {**self.state, **own, "recorded": dict(self.recorded), "next_nudge": None}
        self.points.append(self.point_before)


def code_of(message: Message) -> str | None:
    text = " ".join(unicodedata.normalize("NFC", message["content"]).split())
    return message.get("nudge_code") or PROMPTS.get(text)


def answered_by(result: Message, calls: list[Any], results: dict[int, Message]) -> int | None:
    call_id = result.get("tool_call_id")
    if call_id:
        return next((at for at, call in enumerate(calls) if call["id"] == call_id), None)
    unanswered = [at for at in range(len(calls)) if at not in results]
    same_name = [at for at in unanswered if calls[at]["name"] == result.get("name")]
    return next(iter(same_name + unanswered), None)


def key_of(call: dict[str, Any]) -> str:
    arguments = call.get("arguments")
    if arguments is None and "arguments_raw" in call:
        try:
            arguments = json.loads(call["arguments_raw"])
        except ValueError:
            return f"{call['name']} raw {call['arguments_raw']}"
    return f"{call['name']} {json.dumps(plain(arguments or {}), sort_keys=True)}"


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {unicodedata.normalize("NFC", name): plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    return value if isinstance(value, bool) or value is None else float(value)


def choices(
    points: list[dict[str, Any]], budget: int | None, delivery: bool, audit: bool
) -> list[tuple[str | None, str | None]]:
    """Sections 8 and 9: the code that fires at each point, and how the history compares."""
    found = []
    own: Counter[tuple[int, str]] = Counter()
    for point in points:
        nudges = Counter(point["recorded"])
        for (turn, code), count in own.items():
            nudges[code] += count if turn == point["turn"] else 0
        fields = {name: value for name, value in point.items() if name in TurnContext.__dataclass_fields__}
        low = budget is not None and budget - point["responses"] <= 2
        ctx = TurnContext(**fields, budget_low=low, require_delivery=delivery, audit_mode=audit, nudges=dict(+nudges))
        fitting = (rule for rule in RULES if rule.stage == point["stage"] and nudges[rule.code] < rule.max_nudges)
        fired = next((rule.code for rule in fitting if rule.predicate(ctx)), None)
        recorded = point["next_nudge"]
        if fired is None:
            status = None if recorded is None else "recorded_only"
        elif recorded is None:
            status = "new"
        else:
            status = "reproduced" if fired == recorded else "different"
        found.append((fired, status))
        if fired is not None and fired != recorded:
            own[point["turn"], fired] += 1
    return found


@settings(max_examples=400)
@given(st.integers(0, 10**9))
def test_one_pass_gives_what_a_second_reading_gives(seed: int) -> None:
    rng = random.Random(seed)
    writer = Writer(rng)
    messages = writer.chat()
    tools = rng.choice([None, None, [], TOOLS[:3], TOOLS, ["get_x", "submit"], ["bash"], ["edit"]])
    roles = {"human_role": writer.human, "ai_role": writer.ai, "system_role": writer.system}
    budget, delivery, audit = rng.choice([None, 0, 3, 6]), rng.choice([None, True, False]), rng.choice([None, True])
    facts = {"step_budget": budget, "require_delivery": delivery, "audit_mode": audit}
    walked = walk(chat(*messages, tools=tools, roles=roles, **facts), CATALOGUE, KNOWN)
    read = Reading(messages, (writer.human, writer.ai, writer.system), tools)

    names = set(Point._fields) - {"seq", "same_results"}
    assert [{name: getattr(point, name) for name in names} for point in walked.points] == read.points
    assert list(map(tuple, walked.skipped)) == read.skipped
    assert list(map(tuple, walked.turns)) == read.turns

    decisions = replay(walked, RULES, Defaults(4, True, True))
    assert [(decision.fired, decision.status) for decision in decisions] == choices(
        read.points, 4 if budget is None else budget, delivery is not False, True
    )
