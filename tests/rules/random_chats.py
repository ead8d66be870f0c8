"""Seeded small chats in the exchange form: tools of each kind, repeats, nudges, cut turns, two languages."""

from __future__ import annotations

import json
import random
from typing import Any

from tests.factories import exchange_chat

TEXTS = (
    "",
    "ok",
    "Vas-y.",
    "I will now run the test suite.",
    "Next steps: add a test.\n\nI cannot go on. Shall I?",
    "Il reste à traiter l'écran. Prochaines étapes : livrer.",
    "😀 All done.",
    "Je vais lancer la suite.\n\nDites-moi si cela convient.",
    "I am unable to open that file.",
)
TOOLS = ("read_file", "write_file", "run_tests", "get_rows", "submit")
CODES = ("A", "B", "C", "EAI-GOV-07")
REASONS = ("stop", "length", None)


def random_chat(rng: random.Random, name: str) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You help."}] if rng.random() < 0.3 else []
    for _turn in range(rng.randint(1, 4)):
        messages.append({"role": "user", "content": rng.choice(TEXTS) or "Go."})
        for _step in range(rng.randint(0, 5)):
            messages += _step_of(rng, len(messages))
            if rng.random() < 0.35:
                messages.append({"role": "user", "content": "Go on.", "nudge_code": rng.choice(CODES)})
    settings: dict[str, Any] = {"external_id": name}
    if rng.random() < 0.5:
        settings["tools"] = [{"name": tool} for tool in TOOLS]
    if rng.random() < 0.4:
        settings["step_budget"] = rng.randint(2, 8)
    if rng.random() < 0.3:
        settings["require_delivery"] = rng.random() < 0.5
    if rng.random() < 0.3:
        settings["audit_mode"] = True
    return exchange_chat(*messages, **settings)


def _step_of(rng: random.Random, number: int) -> list[dict[str, Any]]:
    if rng.random() < 0.45:
        answer: dict[str, Any] = {"role": "assistant", "content": rng.choice(TEXTS)}
        reason = rng.choice(REASONS)
        if reason:
            answer["finish_reason"] = reason
        return [answer]
    calls = [
        {"id": f"c{number}-{n}", "name": rng.choice(TOOLS), "arguments": {"path": rng.choice("ab")}}
        for n in range(rng.randint(1, 2))
    ]
    messages: list[dict[str, Any]] = [{"role": "assistant", "content": rng.choice(TEXTS), "tool_calls": calls}]
    for call in calls:
        if rng.random() < 0.85:
            status = rng.choice(["ok", "ok", "error"])
            result = {"role": "tool", "content": "done", "tool_call_id": call["id"], "result_status": status}
            messages.append(result)
    return messages


def random_lines(seed: int, count: int) -> str:
    """So many chats as JSON lines; the same seed gives the same ones."""
    rng = random.Random(seed)
    return "\n".join(json.dumps(random_chat(rng, f"chat-{seed}-{n}")) for n in range(count))
