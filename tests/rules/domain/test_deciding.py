"""The reference replay: what each rule came to at each point, and how history compares."""

from hypothesis import given
from hypothesis import strategies as st

from rules.domain import ContinuationRule, first_applicable
from rules.domain.deciding import decide, replay
from rules.domain.points import Defaults
from rules.domain.rule import PredicateProblem
from rules.domain.tools import ToolCatalogue
from rules.domain.turns import walk
from tests.rules.domain.chats import answer, calls, chat, nudge, result, user

CATALOGUE = ToolCatalogue()


def rule(code, max_nudges=1, predicate=lambda ctx: True, stage="final"):
    return ContinuationRule(code, max_nudges, predicate, "", stage)


def replayed(messages, rules, **defaults):
    return replay(walk(chat(*messages, tools=["edit_file"]), CATALOGUE), rules, Defaults(**defaults))


def test_each_rule_of_the_stage_is_told():
    def broken(ctx):
        raise KeyError("x")

    rules = [
        rule("off", 0), rule("no", predicate=lambda ctx: False), rule("bad", predicate=broken), rule("yes"),
        rule("late"),
        rule("round", stage="round"),
    ]  # fmt: skip
    [decision] = replayed([user(), answer()], rules)
    assert [(r.code, r.outcome) for r in decision.rules] == [
        ("off", "capped"), ("no", "false"), ("bad", "false"), ("yes", "fires"), ("late", "shadowed"),
    ]  # fmt: skip
    assert decision.rules[2].problem == PredicateProblem("raised", "KeyError: 'x'")
    assert (decision.fired, decision.recorded, decision.status) == ("yes", None, "new")


def test_own_firings_count_from_the_next_point_and_only_in_their_turn():
    messages = [user(), answer(), answer(), answer(), user("again"), answer()]
    assert [d.fired for d in replayed(messages, [rule("A", 2)])] == ["A", "A", None, "A"]
    assert [dict(d.context.nudges) for d in replayed(messages, [rule("A", 2)])] == [{}, {"A": 1}, {"A": 2}, {}]


def test_a_reproduced_nudge_is_counted_once_and_a_different_one_beside():
    messages = [user(), answer(), nudge("A"), answer(), nudge("B"), answer(), nudge("C"), answer()]
    found = replayed(messages, [rule("A", 2)])
    assert [d.status for d in found] == ["reproduced", "different", "recorded_only", None]
    assert dict(found[2].context.nudges) == {"A": 2, "B": 1}


def test_counters_are_shared_by_both_stages():
    messages = [user(), calls("edit_file"), result(1), answer()]
    rules = [rule("A", stage="round"), rule("B", predicate=lambda ctx: "A" in ctx.nudges)]
    assert [d.fired for d in replayed(messages, rules)] == ["A", "B"]


def test_defaults_of_a_replay_reach_the_context():
    [decision] = replayed([user(), answer()], [], step_budget=3, require_delivery=True, audit_mode=True)
    ctx = decision.context
    assert (ctx.budget_low, ctx.require_delivery, ctx.audit_mode) == (True, True, True)


CODES = st.sampled_from(["A", "B", "C"])
RULES = st.lists(
    st.builds(
        lambda code, cap, stage, wanted: rule(code, cap, lambda ctx: wanted in ctx.final_text, stage),
        CODES,
        st.integers(0, 3),
        st.sampled_from(["final", "round"]),
        st.sampled_from(["", "x", "y"]),
    ),
    max_size=4,
    unique_by=lambda r: r.code,
)
MESSAGES = st.lists(
    st.one_of(
        st.builds(user), st.builds(nudge, CODES), st.builds(answer, st.sampled_from(["x", "y", "xy"])),
        st.builds(result),
        st.builds(lambda: calls("edit_file", text="x")),
    ),
    max_size=14,
)  # fmt: skip


@given(MESSAGES, RULES)
def test_the_rule_that_fires_is_the_first_that_applies(messages, rules):
    for decision in replayed([user(), *messages], rules):
        first = first_applicable(rules, decision.context, decision.point.stage)
        assert decision.fired == (first.code if first else None)
        assert decide(rules, decision.context, decision.point.stage) == decision.rules
        assert [r.outcome for r in decision.rules].count("fires") == (decision.fired is not None)


@given(MESSAGES, RULES)
def test_no_rule_fires_above_its_ceiling(messages, rules):
    for decision in replayed([user(), *messages], rules):
        if decision.fired is not None:
            cap = next(r.max_nudges for r in rules if r.code == decision.fired)
            assert decision.context.nudges.get(decision.fired, 0) < cap
