"""From messages to points: the rules of continuation.md sections 2 to 6 that the worked cases do not reach."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.domain.context import TurnContext
from rules.domain.nudges import KnownPrompts
from rules.domain.points import ChatFacts, Defaults, Skipped
from rules.domain.repeats import call_key
from rules.domain.tools import ToolCatalogue, ToolEntry
from rules.domain.turns import walk
from tests.rules.domain.chats import answer, calls, chat, nudge, result, user

BUILT_IN = ToolCatalogue()
TOOLS = ["read_file", "edit_file", "run_tests", "submit", "wait_for"]


def walked(*messages, tools=TOOLS, prompts=None, entries=(), **rest):
    catalogue = ToolCatalogue(entries) if entries else BUILT_IN
    return walk(chat(*messages, tools=tools, **rest), catalogue, prompts or KnownPrompts())


def places(found):
    return [(p.message, p.stage) for p in found.points]


def test_roles_are_those_of_the_chat():
    roles = {"human_role": "customer", "ai_role": "agent", "system_role": "policy"}
    found = walked(
        {"role": "policy", "content": "Be brief."},
        {"role": "customer", "content": "ok"},
        {"role": "user", "content": "a note of another role"},
        {"role": "agent", "content": "Fine."},
        {"role": "assistant", "content": "not the AI here"},
        roles=roles,
    )
    assert places(found) == [(3, "final")]
    assert found.points[0].user_text == "ok"
    assert found.skipped == []


def test_messages_of_other_roles_do_not_stand_between():
    found = walked(
        user(),
        calls("edit_file"),
        {"role": "developer", "content": "x"},
        result(1),
        answer(),
        {"role": "system", "content": "s"},
        nudge(),
    )
    assert [p.next_nudge for p in found.points] == [None, "EAI-GOV-04"]


def test_a_nudge_before_any_response_is_a_human_message():
    found = walked(user("first"), nudge("X", "second"), answer())
    assert [(t.message, t.no_final) for t in found.turns] == [(0, False)]
    assert found.points[0].user_text == "second"
    assert found.nudges == []
    assert walked(nudge("X", "only"), answer()).points[0].user_text == "only"


def test_a_prompt_is_recognised_in_its_turn_only():
    prompts = KnownPrompts.of_texts([("Go\u00a0on  now.", "A")])
    found = walked(
        user(), answer(), user(" Go on\nnow. "), answer(), user("Go on now, please."), answer(), prompts=prompts
    )
    assert [(n.message, n.code, n.point) for n in found.nudges] == [(2, "A", 0)]
    assert [t.message for t in found.turns] == [0, 4]


def test_a_turn_without_a_final_point_is_told():
    found = walked(user(), calls("edit_file"), result(1), user("again"), answer(), user("no answer"))
    assert [(t.number, t.message, t.no_final) for t in found.turns] == [(0, 0, True), (1, 3, False), (2, 5, True)]
    assert [(t.first_point, t.end_point) for t in found.turns] == [(0, 1), (1, 2), (2, 2)]


def test_an_unanswered_batch_at_the_end_of_a_turn_counts_nowhere():
    found = walked(user(), calls("edit_file"), user("stop"), answer())
    assert found.skipped == [Skipped(1, "pending_round")]
    assert [p.tool_calls_total for p in found.points] == [0]
    assert found.points[0].responses == 1


def test_a_nudge_does_not_close_a_round():
    found = walked(user(), calls("read_file", "read_file"), result(1), nudge("A"), result(2), answer())
    first, last = found.points
    assert (first.tool_calls_total, first.tool_calls_since_user, first.recorded) == (2, 0, {"A": 1})
    assert (first.next_nudge, last.tool_calls_since_user) == (None, 0)
    assert [(n.code, n.point) for n in found.nudges] == [("A", None)]


def test_a_nudge_behind_the_last_result_comes_right_after_the_round():
    found = walked(user(), calls("read_file"), result(1), nudge("A"), nudge("B"), answer())
    first, last = found.points
    assert (first.tool_calls_since_user, first.recorded, first.next_nudge) == (1, {}, "A")
    assert last.recorded == {"A": 1, "B": 1}
    assert [(n.code, n.point) for n in found.nudges] == [("A", 0), ("B", None)]


def test_results_without_an_id_go_by_name_then_by_order():
    found = walked(
        user(),
        calls("edit_file", "run_tests"),
        {"role": "tool", "content": "2 failed", "name": "run_tests"},
        {"role": "tool", "content": "ok"},
        {"role": "tool", "content": "too many"},
        answer(),
    )
    assert found.points[0].verify_failed
    assert found.skipped == [Skipped(4, "orphan_result")]


def test_of_two_results_with_one_id_the_later_counts():
    found = walked(user(), calls("run_tests"), result(1, "1 failed"), result(1, "1 passed"), answer())
    assert not found.points[0].verify_failed
    assert found.skipped == []


def test_results_that_fit_no_open_call_are_orphans():
    found = walked(result(9), user(), calls("read_file"), result(2), result(1), answer(), result(1))
    assert found.skipped == [Skipped(0, "orphan_result"), Skipped(3, "orphan_result"), Skipped(6, "orphan_result")]
    assert places(found) == [(2, "round"), (5, "final")]


def test_a_response_with_working_and_finishing_calls_gives_two_points():
    found = walked(
        user(),
        calls("edit_file", ("submit", {"summary": " All set. "}), text="I submit."),
        result(1),
        result(2),
        nudge(),
    )
    assert places(found) == [(1, "round"), (1, "final")]
    assert [p.final_text for p in found.points] == ["I submit.", "All set."]
    assert [p.finish_reason for p in found.points] == ["tool_calls", "tool_calls"]
    assert [p.next_nudge for p in found.points] == [None, "EAI-GOV-04"]
    assert [p.tool_calls_total for p in found.points] == [1, 1]


def test_the_final_point_stands_when_the_other_calls_are_pending():
    found = walked(user(), calls("edit_file", "submit", text="Bye."), result(2))
    assert places(found) == [(1, "final")]
    assert found.skipped == [Skipped(1, "pending_round")]
    assert (found.points[0].final_text, found.points[0].tool_calls_total) == ("Bye.", 0)


def test_a_nudge_between_a_finishing_call_and_its_result_follows_the_answer():
    found = walked(user(), calls("submit"), nudge("A"), result(1), answer())
    assert [(p.next_nudge, dict(p.recorded)) for p in found.points] == [("A", {}), (None, {"A": 1})]
    assert found.skipped == []


def test_two_finals_in_a_row_are_two_points_and_a_stored_reason_is_kept():
    found = walked(
        user(), answer("a", finish_reason="stop"), answer(" b "), calls("read_file", finish_reason="stop"), result(1)
    )
    assert [(p.final_text, p.finish_reason) for p in found.points] == [("a", "stop"), ("b", None), ("", "stop")]


def test_outcomes_of_recorded_nudges():
    found = walked(
        user(), answer(), nudge("A"), calls("edit_file"), result(1), nudge("B"), answer(), nudge("C"),
        calls("submit"), nudge("D"),
        user("next"), answer(),
    )  # fmt: skip
    assert [(n.code, n.outcome) for n in found.nudges] == [
        ("A", "acted"),
        ("B", "ignored"),
        ("C", "finished"),
        ("D", None),
    ]


def test_offered_tools_that_are_unknown_are_those_called():
    silent = walked(user(), answer(), tools=None)
    assert silent.facts == ChatFacts(None, None, None, tools_known=False, tools_available=False, verify_available=False)
    called = walked(user(), calls("run_tests"), result(1), tools=None)
    assert (called.facts.tools_available, called.facts.verify_available) == (True, True)
    assert walked(user(), answer(), tools=["bash"]).facts.verify_available
    assert not walked(user(), answer(), tools=["read_file"]).facts.verify_available


def test_fields_that_are_only_assumed():
    found = walked(user(), answer(), tools=None)
    [point] = found.points
    assert point.unknown(found.facts) == {
        "finish_reason", "tools_available", "budget_low", "mutated", "verified_after_mutation", "verify_failed",
    }  # fmt: skip
    known = walked(user(), answer(finish_reason="stop"), step_budget=9)
    assert known.points[0].unknown(known.facts, known.facts.settled(Defaults())) == frozenset()


def test_the_chat_decides_before_the_replay_and_the_replay_before_the_tenant():
    facts = ChatFacts(5, None, False, tools_known=True, tools_available=True, verify_available=True)
    defaults = Defaults(step_budget=20, require_delivery=True).before(Defaults(30, False, True))
    assert facts.settled(defaults) == Defaults(5, True, False)


@pytest.mark.parametrize(("budget", "low"), [(None, False), (4, False), (3, True), (2, True), (0, True)])
def test_budget_is_low_with_at_most_two_responses_left(budget, low):
    [point] = walked(user(), answer()).points
    assert point.context(Defaults(step_budget=budget)).budget_low is low


def test_own_firings_are_added_to_recorded_ones():
    point = walked(user(), answer(), nudge("A"), answer()).points[1]
    assert point.context(own={"A": 1, "B": 2}).nudges == {"A": 2, "B": 2}
    assert point.recorded == {"A": 1}


def test_a_refused_change_and_an_unknown_check():
    refused = walked(user(), calls("edit_file"), result(1, "Tool call was rejected by the user"), answer())
    assert not refused.points[0].mutated
    failed = walked(user(), calls("edit_file"), result(1, "boom", result_status="error"), answer())
    assert failed.points[0].mutated
    unknown = walked(user(), calls("run_tests"), result(1, "1 failed"), calls("run_tests", first=2), answer())
    assert [p.verify_failed for p in unknown.points] == [True, True, True]


def test_a_later_change_does_not_clear_a_failed_check():
    found = walked(user(), calls("run_tests"), result(1, "1 failed"), calls("edit_file", first=2), result(2), answer())
    assert [(p.verify_failed, p.verified_after_mutation) for p in found.points] == [
        (True, True),
        (True, False),
        (True, False),
    ]


def rounds(*batches, entries=()):
    """Progress counter after each round; a batch is a list of (name, arguments)."""
    messages = [user()]
    for batch in batches:
        messages += [calls(*batch), *(result(n) for n, _ in enumerate(batch, 1))]
    return [p.no_progress_rounds for p in walked(*messages, entries=entries).points]


def test_repeats_are_multisets_of_calls():
    a, b = ("read_file", {"p": 1}), ("read_file", {"p": 2})
    assert rounds([a, b], [b, a], [a, b, a], [a, a, b]) == [0, 1, 0, 1]


def test_repeatable_tools_are_left_out_and_a_round_of_them_is_forgotten():
    wait, read = ("wait_for", {"s": 1}), ("read_file", {"p": 1})
    assert rounds([read, wait], [read], [wait], [read], [read]) == [0, 1, 0, 0, 1]
    assert rounds([read], [read], entries=[ToolEntry("read_file", "read", repeatable=True)]) == [0, 0]


def test_whether_the_results_of_a_repeat_are_the_same():
    again = [calls(("read_file", {"p": 1})), result(1, "a")]
    found = walked(user(), *again, *again, again[0], result(1, "b"), answer())
    assert [p.same_results for p in found.points] == [None, True, False, None]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"a": 1, "b": 2}, {"b": 2.0, "a": 1.0}, True),
        ({"a": "é"}, {"a": "e\u0301"}, True),
        ({"é": 1}, {"e\u0301": 1}, True),
        ({"a": [1, 2]}, {"a": [2, 1]}, False),
        ({"a": "x"}, {"a": "x "}, False),
        ({"a": 1}, {"a": True}, False),
        ({"a": 0}, {"a": False}, False),
        ({"a": None}, {}, False),
        ({"a": {"b": [1]}}, {"a": {"b": [1.0]}}, True),
        ({"a": 1}, {"a": "1"}, False),
    ],
)
def test_arguments_are_compared_as_values(one, other, same):
    keys = [
        call_key(chat(user(), calls(("read_file", arguments))).details[1].tool_calls[0]) for arguments in (one, other)
    ]
    assert (keys[0] == keys[1]) is same


def test_arguments_that_are_no_json_are_compared_as_text():
    raw = [
        answer("", tool_calls=[{"id": "1", "name": "read_file", "arguments_raw": text}])
        for text in ("{é", "{e\u0301", "{e ")
    ]
    found = walked(user(), *itertools.chain.from_iterable([message, result(1)] for message in raw))
    assert [p.no_progress_rounds for p in found.points] == [0, 1, 0]


# --- laws

MESSAGES = st.lists(
    st.one_of(
        st.builds(user, st.sampled_from(["ok", "Fix it", "x"])),
        st.builds(nudge, st.sampled_from(["A", "B"])),
        st.builds(answer, st.sampled_from(["", "Done.", "I will go on."])),
        st.builds(
            lambda names, same: calls(*((name, {}) if same else name for name in names)),
            st.lists(st.sampled_from(TOOLS), min_size=1, max_size=3),
            st.booleans(),
        ),
        st.builds(
            result, st.sampled_from([None, 1, 2, 3]), st.sampled_from(["ok", "1 failed", "request interrupted by user"])
        ),
        st.just({"role": "system", "content": "note"}),
    ),
    max_size=15,
)


@given(MESSAGES)
def test_walking_twice_gives_the_same(messages):
    record = chat(*messages, tools=TOOLS)
    assert walk(record, BUILT_IN) == walk(record, BUILT_IN)


@given(MESSAGES, MESSAGES)
def test_counters_start_afresh_at_each_turn(before, after):
    """A turn gives the same points whatever stood before it, as long as a human message that is one starts it."""
    start = user("a new request")
    alone = walked(start, *after)
    behind = walked(*before, answer(), start, *after) if before else alone
    offset = len(before) + 1 if before else 0
    tail = [p for p in behind.points if p.message >= offset]

    def comparable(points):
        first = points[0] if points else None
        return [
            p._replace(seq=p.seq - first.seq, turn=p.turn - first.turn, message=p.message - first.message)
            for p in points
        ]

    assert comparable(tail) == comparable(alone.points)


@given(MESSAGES)
def test_points_are_named_by_message_and_stage_and_stand_in_order(messages):
    found = walked(*messages)
    named = places(found)
    assert len(set(named)) == len(named)
    assert [p.message for p in found.points] == sorted(p.message for p in found.points)
    assert [p.seq for p in found.points] == list(range(len(found.points)))
    assert [t.first_point for t in found.turns[1:]] == [t.end_point for t in found.turns[:-1]]
    for turn in found.turns:
        assert all(p.turn == turn.number for p in found.points[turn.first_point : turn.end_point])


@given(MESSAGES)
def test_system_messages_change_nothing(messages):
    noisy = [m for message in messages for m in (message, {"role": "system", "content": "note"})]
    plain, with_notes = walked(*messages), walked(*noisy)
    assert [p._replace(message=p.message // 2) for p in with_notes.points] == plain.points


@given(MESSAGES)
def test_every_context_is_made_of_plain_values(messages):
    for point in walked(*messages).points:
        ctx = point.context()
        assert isinstance(ctx, TurnContext)
        assert 0 <= ctx.tool_calls_since_user <= ctx.tool_calls_total
        assert ctx.verified_after_mutation or ctx.mutated
