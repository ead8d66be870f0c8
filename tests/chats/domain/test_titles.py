"""Titles of chats whose source gives none: what the chat is about, not the preamble that a program writes first."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chats.domain import ChatRecord
from chats.domain.exchange import from_json
from chats.domain.titles import KEPT, Preambles, title_of

SWE_AGENT = (
    "We're currently solving the following issue within our repository. Here's the issue text:\nISSUE:\n{}\n"
    "It fails since 2.1.\n\nINSTRUCTIONS:\nNow, you're going to solve this issue on your own."
)
OPENHANDS = (
    "<uploaded_files>\n/workspace/{0}\n</uploaded_files>\nI've uploaded a repository in the directory {0}. Consider "
    "the following issue description:\n\n<issue_description>\n{1}\nDetails.\n</issue_description>\nCan you help me?"
)


def chat(*said: str, title: str | None = None, nudge: str = "") -> ChatRecord:
    messages: list[dict[str, Any]] = []
    for text in said:
        messages += [
            {"role": "user", "content": text},
            {"role": "assistant", "content": "I see.", "finish_reason": "stop"},
        ]
    if nudge:
        messages.insert(0, {"role": "assistant", "content": "Hello."})
        messages.insert(1, {"role": "user", "content": nudge, "nudge_code": "X-1"})
    given = {"format": "eleanor-chat", "version": 1, "title": title, "chat": {"messages": messages}}
    return from_json(json.dumps(given))


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Where is my parcel?", "Where is my parcel?"),
        ("\n  Where is it?\nI ordered on Monday.", "Where is it? I ordered on Monday."),
        (SWE_AGENT.format("TimeDelta serialization precision"), "TimeDelta serialization precision"),
        (OPENHANDS.format("pony", "ponyc segfaults"), "ponyc segfaults"),
        ("You may assume all tools.\n\n# Problem Statement\nSupport dark mode", "Support dark mode"),
        ("# Context from my IDE setup:\n\n## Open tabs:\n- a.py\n\n## My request for Codex:\nMend a.py", "Mend a.py"),
        ("Task:\nDid Ivan Lendl reach a high rank?", "Did Ivan Lendl reach a high rank?"),
        ("Contexte.\n\n**Problème :**\nLe filtre perd la dernière ligne", "Le filtre perd la dernière ligne"),
        ("<task>\n<issue>\n### Crash on start\n</issue>\n</task>", "Crash on start"),
        ("Please look at this.\nTitle: Crash on start\nBody: it crashes", "Crash on start"),
        # Words of a mark in running text announce nothing.
        ("I have a question\nWhere is it?", "I have a question Where is it?"),
        ("The issue is this: it fails.\nAlways.", "The issue is this: it fails. Always."),
        ("See below.\nIssue:", "See below. Issue:"),
        ("x" * 400, "x" * 300),
        ("", ""),
    ],
)
def test_the_title_of_a_chat_by_itself(text: str, title: str) -> None:
    assert title_of(chat(text)) == title


def test_the_source_knows_best_and_nudges_are_nobodys_words() -> None:
    assert title_of(chat("Task:\nx", title="Given\nname")) == "Given name"
    assert title_of(chat("Where is it?", nudge="Go on.")) == "Where is it?"


def test_chats_of_an_import_are_told_apart_by_the_first_line_in_which_they_differ() -> None:
    preamble = "You act like a person.\n1. Think.\n2. Act.\n3. Finish.\nThis is one round.\n"
    batch = [chat(preamble + f"Count the {thing}.\nThank you.") for thing in ("files", "lines", "words")]
    assert Preambles().titles([*batch, chat("Hello!")]) == [
        "Count the files.",
        "Count the lines.",
        "Count the words.",
        "Hello!",
    ]


def test_a_first_message_that_is_all_preamble_is_passed_over() -> None:
    preamble = "You act like a person.\n1. Think.\n2. Act.\n3. Finish.\nThis is one round."
    assert Preambles().titles([chat(preamble, "Count the files."), chat(preamble, "Count the lines.")]) == [
        "Count the files.",
        "Count the lines.",
    ]


def test_runs_of_the_same_question_keep_it() -> None:
    """Not what was said later: the first message says what the chat is about."""
    batch = [chat("Book a flight.", "My name is Mia."), chat("Book a flight.", "I am called Sam.")]
    assert Preambles().titles(batch) == ["Book a flight.", "Book a flight."]


def test_a_mark_counts_for_more_than_a_path_that_differs() -> None:
    batch = [chat(OPENHANDS.format("pony", "It segfaults")), chat(OPENHANDS.format("parser", "It hangs"))]
    assert Preambles().titles(batch) == ["It segfaults", "It hangs"]


def test_a_mark_in_the_preamble_of_all_announces_nothing() -> None:
    text = "<task>\nYou are an agent.\nBe brief.\n{}\n</task>"
    assert Preambles().titles([chat(text.format("Mend a.py")), chat(text.format("Mend b.py"))]) == [
        "Mend a.py",
        "Mend b.py",
    ]


def test_a_preamble_is_remembered_from_batch_to_batch() -> None:
    preambles = Preambles()
    preambles.titles([chat("Be brief.\nOne"), chat("Be brief.\nTwo")])
    assert preambles.titles([chat("Be brief.\nThree")]) == ["Three"]
    for n in range(2 * KEPT):
        preambles.titles([chat(f"Preamble {n}.\nOne"), chat(f"Preamble {n}.\nTwo")])
    assert len(preambles._shared) == KEPT
