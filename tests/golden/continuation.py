"""Check the continuation engine against a file of worked cases: helpers, tool kinds, outcomes, choices, scenarios."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from chats.domain.exchange import from_exchange
from rules.domain import ContinuationRule, TurnContext, default_rules, first_applicable, phrases
from rules.domain.deciding import replay
from rules.domain.nudges import KnownPrompts
from rules.domain.tools import ToolCatalogue, outcome
from rules.domain.turns import walk

Case = dict[str, Any]
CHAT_KEYS = ("ai_name", "ai_role", "human_role", "system_role")


def check_helper(case: Case) -> str | None:
    found = getattr(phrases, case["function"])(case["input"])
    return None if found == case["expected"] else f"{case['function']}({case['input']!r}) gives {found!r}"


def check_tool_kind(case: Case) -> str | None:
    found = ToolCatalogue().entry_for(case["name"], case["arguments"]).kind
    return None if found == case["expected"] else f"{case['name']} {case['arguments']} is {found}"


def check_outcome(case: Case) -> str | None:
    found = outcome(case["content"], case.get("result_status"), case.get("exit_code"))
    return None if found == case["expected"] else f"{case['content']!r} is {found}"


def check_choice(case: Case, rules: list[ContinuationRule]) -> str | None:
    rule = first_applicable(rules, TurnContext(**case["ctx"]), case["stage"])
    found = rule.code if rule is not None else None
    return None if found == case["expected"] else f"{found}, not {case['expected']}"


def check_scenario(case: Case, rules: list[ContinuationRule]) -> str | None:
    chat = dict(case["chat"])
    prompts = KnownPrompts.of_texts(chat.pop("prompts", {}).items())
    row = {"format": "eleanor-chat", "version": 1, **chat}
    row["chat"] = {key: row.pop(key) for key in ("messages", *CHAT_KEYS) if key in row}
    walked = walk(from_exchange(row, []), ToolCatalogue(), prompts)
    decisions = replay(walked, rules)
    skipped = [{"message": s.message, "reason": s.reason} for s in walked.skipped]
    if skipped != case["skipped"]:
        return f"skipped {skipped}, not {case['skipped']}"
    places = [(d.point.message, d.point.stage) for d in decisions]
    expected_places = [(e["message"], e["stage"]) for e in case["expect"]]
    if places != expected_places:
        return f"points {places}, not {expected_places}"
    for decision, expected in zip(decisions, case["expect"], strict=True):
        found = {
            "fired": decision.fired,
            "recorded": decision.recorded,
            "status": decision.status,
            **{name: getattr(decision.context, name) for name in expected["ctx"]},
        }
        wanted = {name: expected[name] for name in ("fired", "recorded", "status")} | expected["ctx"]
        if found != wanted:
            wrong = {name: (found[name], wanted[name]) for name in wanted if found[name] != wanted[name]}
            return f"at message {expected['message']}, {expected['stage']}: found and expected {wrong}"
    return None


def failures(cases: dict[str, Any]) -> Iterator[tuple[str, str | None]]:
    """The id of each case, and what is wrong with it or None."""
    rules = default_rules()
    checks: dict[str, Callable[[Case], str | None]] = {
        "helpers": check_helper,
        "tool_kinds": check_tool_kind,
        "verify_outcomes": check_outcome,
        "first_applicable": lambda case: check_choice(case, rules),
        "scenarios": lambda case: check_scenario(case, rules),
    }
    for part, check in checks.items():
        for case in cases.get(part, []):
            yield case["id"], check(case)


def run(argv: list[str]) -> int:
    """`continuation PATH`: a file in the form of continuation-examples.json."""
    if len(argv) != 1:
        print("usage: python -m tests.golden continuation PATH", file=sys.stderr)
        return 2
    results = list(failures(json.loads(Path(argv[0]).read_text(encoding="utf-8"))))
    wrong = [(name, told) for name, told in results if told is not None]
    for name, told in wrong:
        print(f"{name}: {told}")
    print(f"{len(results) - len(wrong)} of {len(results)}")
    return 1 if wrong else 0
