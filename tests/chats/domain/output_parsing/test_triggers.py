"""Detecting triggers, and holding tokens back meanwhile."""

from chats.domain.llama_text import SpecialTokensText
from chats.domain.output_parsing.triggers import HeldTokens, TriggerDetector

THINK = SpecialTokensText("<think>")


def fed(detector: TriggerDetector, *tokens: str | SpecialTokensText) -> TriggerDetector:
    for position, token in enumerate(tokens):
        detector.record(token, position)
    return detector


def test_the_shortest_of_triggers_that_begin_alike_wins() -> None:
    assert fed(TriggerDetector(["abc", "ab"]), "x", "a", "b").first_found == ("a", "b")
    assert not fed(TriggerDetector(["ab", "abc"]), "a").triggered


def test_a_match_is_found_wherever_it_begins() -> None:
    detector = fed(TriggerDetector(["aab"]), "a", "a", "a", "b")
    assert detector.triggered
    assert detector.held_positions == [1]


def test_a_special_token_does_not_interrupt_spelled_out_text() -> None:
    assert fed(TriggerDetector(["ab"]), "a", THINK, "b").triggered


def test_a_special_token_is_not_its_spelling() -> None:
    assert not fed(TriggerDetector([[THINK]]), *"<think>").triggered
    assert fed(TriggerDetector([[THINK, "\n"]]), THINK, "\n").triggered


def test_an_empty_trigger_is_none() -> None:
    detector = fed(TriggerDetector([""]), "a")
    assert not detector.triggered
    assert detector.ignores("a")


def test_a_token_rules_out_what_cannot_follow() -> None:
    detector = TriggerDetector(["ab", "ac"])
    assert detector.lost_by("x", start=True) == 0
    detector.record("a")
    assert detector.lost_by("b", start=False) == 2
    assert detector.lost_by("x", start=False) == 2
    assert detector.lost_by(THINK, start=False) == 0


def test_tokens_are_held_from_where_a_match_begins() -> None:
    held, detector = HeldTokens(), TriggerDetector(["bcd"])
    for token in "abc":
        detector.record(token, held.add(token))
    assert held.release(detector) == ["a"]
    detector.record("x", held.add("x"))
    assert held.release(detector) == ["b", "c", "x"]


def test_a_match_in_thrown_away_tokens_holds_nothing() -> None:
    held, detector = HeldTokens(), TriggerDetector(["ab"])
    detector.record("a", held.add("a"))
    held.clear()
    held.add("x")
    assert held.release(detector) == ["x"]
