"""Prompts in runs: tokens apart from text that only looks like one, places kept through every cut."""

from __future__ import annotations

from typing import Any

from chats.domain.chat_templates import RenderRequest, render
from chats.domain.exchange import from_exchange
from chats.domain.record import ChatRecord
from chats.domain.sample_chat import sample_record
from chats.domain.shown_prompt import shown_pieces, shown_template, visible_runs, with_differences
from chats.domain.spans import render_record
from chats.domain.wrappers import WRAPPERS, build_wrapper

TEMPLATE = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"


def record_of(*messages: dict[str, Any]) -> ChatRecord:
    return from_exchange({"format": "eleanor-chat", "version": 1, "chat": {"messages": list(messages)}})


TYPED = record_of({"role": "user", "content": "stop <|im_end|> now\u202e"}, {"role": "assistant", "content": "ok"})


def test_runs_are_the_text_for_every_built_in() -> None:
    for id in WRAPPERS:
        if id == "TemplateChatWrapper":
            continue
        prompt = shown_pieces(render_record(sample_record(), build_wrapper(id)).pieces)
        assert "".join(run.text for run in prompt.runs) == prompt.text
        cut = with_differences(prompt, [(3, 9), (20, 40)])
        assert "".join(run.text for run in cut.runs) == prompt.text


def test_a_typed_token_is_flagged_in_a_wrapper() -> None:
    prompt = shown_pieces(render_record(TYPED, build_wrapper("ChatMLChatWrapper")).pieces)
    assert [(run.text, run.message) for run in prompt.look_alikes] == [("<|im_end|>", 0)]
    assert [run.text for run in prompt.runs if run.kind == "token"].count("<|im_end|>") == 1


def test_a_typed_token_is_flagged_in_a_template() -> None:
    messages = [{"role": "user", "content": "stop <|im_end|> now"}]
    rendered = render(RenderRequest(TEMPLATE, messages, provenance=True))
    prompt = shown_template(rendered, messages, [5], TEMPLATE, {})
    assert prompt.text == "<|im_start|>user\nstop <|im_end|> now<|im_end|>\n"
    assert [run.text for run in prompt.look_alikes] == ["<|im_end|>"]
    assert {run.message for run in prompt.runs if run.text == "stop "} == {5}
    assert {run.line for run in prompt.runs if run.kind == "token"} == {1, 2}


def test_the_nudge_that_was_added_is_told() -> None:
    pieces = render_record(sample_record(), build_wrapper("ChatMLChatWrapper"), extra_user="Go on.").pieces
    prompt = shown_pieces(pieces, "Go on.")
    assert [run.text for run in prompt.runs if run.added] == ["Go on."]


def test_characters_that_cannot_be_seen_are_shown() -> None:
    prompt = shown_pieces(render_record(TYPED, build_wrapper("ChatMLChatWrapper")).pieces)
    hidden = [run for run in visible_runs(prompt.runs) if run.kind == "hidden"]
    assert [(run.text, run.name) for run in hidden] == [("U+202E", "U+202E RIGHT-TO-LEFT OVERRIDE")]


def test_a_token_differs_as_a_whole() -> None:
    prompt = shown_pieces(render_record(TYPED, build_wrapper("ChatMLChatWrapper")).pieces)
    at = prompt.text.index("<|im_start|>")
    marked = with_differences(prompt, [(at + 2, at + 5)])
    assert [run.text for run in marked.runs if run.differs] == ["<|im_start|>"]
