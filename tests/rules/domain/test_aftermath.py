"""What came after new firings, and where a rule can't see."""

from __future__ import annotations

import pytest

from rules.domain.aftermath import Aftermath, merged
from rules.domain.deciding import replay
from rules.domain.rule_set import RuleSpec, compile_rules
from rules.domain.tools import ToolCatalogue
from rules.domain.turns import walk
from tests.rules.domain.aftermath_loop import aftermath
from tests.rules.domain.chats import Message, answer, calls, chat, nudge, result, user

FINAL = RuleSpec(code="F", stage="final", max_nudges=2, expression='ctx.final_text == "I will."', prompt="Do it.")
ROUND = RuleSpec(code="R", stage="round", max_nudges=1, expression="ctx.no_progress_rounds >= 1", prompt="Stop.")


def after(*messages: Message, rule: RuleSpec = FINAL, tools: list[str] | None = None) -> Aftermath:
    walked = walk(chat(*messages, tools=tools), ToolCatalogue([]))
    fields = {"F": frozenset({"final_text", "finish_reason"}), "R": frozenset({"no_progress_rounds", "budget_low"})}
    decisions = replay(walked, compile_rules([rule]))
    return aftermath(walked, decisions, {rule.code: (rule.stage, fields[rule.code])})[rule.code]


def same_call(n: int) -> tuple[Message, Message]:
    return calls(("read", {"path": "a"}), first=n), result(n)


@pytest.mark.parametrize(
    ("following", "did", "asked"),
    [
        ((), "next_none", 0),
        ((user("ok, go ahead"), calls("edit"), result()), "next_acted", 1),
        ((user("Something else"), calls("edit"), result()), "next_acted", 0),
        ((user("fix  IT"), answer("Sure.")), "next_talked", 1),
        ((user("yes"), calls("finish"), result()), "next_finished", 1),
    ],
)
def test_what_the_next_turn_did(following: tuple[Message, ...], did: str, asked: int) -> None:
    found = after(user("Fix it"), answer("I will."), *following)
    assert (found.new_final, found.asked_again) == (1, asked)
    names = ("next_acted", "next_finished", "next_talked", "next_none")
    assert {name: getattr(found, name) for name in names} == dict.fromkeys(names, 0) | {did: 1}


def test_a_firing_that_the_history_holds_is_not_new() -> None:
    assert after(user(), answer("I will."), nudge("F"), answer("Done.")).new_final == 0


@pytest.mark.parametrize(
    ("following", "expected"),
    [
        ((answer("Done."),), (1, 0, 0)),
        ((*same_call(3), answer("Done.")), (1, 0, 0)),
        ((*same_call(3), calls("edit", first=4), result(4)), (1, 0, 0)),
        ((*same_call(3), *same_call(4), answer("Done.")), (0, 1, 0)),
        ((*same_call(3),), (0, 0, 1)),
        ((user("Next"), answer("Done.")), (0, 0, 1)),
    ],
)
def test_whether_a_row_of_rounds_ended_by_itself(
    following: tuple[Message, ...], expected: tuple[int, int, int]
) -> None:
    found = after(user(), *same_call(1), *same_call(2), *following, rule=ROUND)
    assert found.new_round == 1
    assert (found.ended_by_itself, found.went_on, found.ended_unknown) == expected
    assert (found.repeats_same, found.repeats_changing) == (1, 0)


def test_turns_at_the_ceiling_count_once() -> None:
    found = after(user(), *(part for n in range(1, 6) for part in same_call(n)), rule=ROUND)
    assert (found.fires, found.ceiling_turns) == (1, 1)


def test_a_rule_is_blind_where_a_field_is_unknown_at_every_point() -> None:
    unknown = after(user(), answer("a"), user(), answer("b"))
    assert (unknown.blind, dict(unknown.blind_chats)) == (1, {"finish_reason": 1})
    known_once = after(user(), answer("a", finish_reason="stop"), user(), answer("b"))
    assert (known_once.blind, known_once.blind_fields) == (0, [])
    assert dict(after(user(), *same_call(1), rule=ROUND).blind_chats) == {"budget_low": 1}


def test_chats_add_up() -> None:
    one = {"F": after(user(), answer("I will."))}
    both = merged([one, one])["F"]
    assert (both.chats, both.turns, both.fires, both.blind_chats["finish_reason"]) == (2, 2, 2, 2)
