"""What tells formats apart that look alike: several keep messages of role and content."""

from __future__ import annotations

import re
from typing import Any, Final

from chats.domain.formats.parts import plain_text
from chats.domain.formats.text_protocols import fenced_command
from chats.domain.formats.values import mapping, mappings, sequence

_RETURN_CODE: Final = re.compile(r"<returncode>\s*(-?\d+)\s*</returncode>")
_SUBMIT: Final = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
_FENCE: Final = "```mswea_bash_command"


def is_mini_swe_run(messages: list[Any]) -> bool:
    """Whether messages are a run of mini-swe-agent: its own fence, or return codes after fenced commands."""
    known = mappings(messages)
    answers = [plain_text(m.get("content")) for m in known if m.get("role") == "assistant"]
    if not answers or known[0].get("role") != "system":
        return False
    if sum(_FENCE in a for a in answers) * 2 > len(answers):
        return True
    told = [plain_text(m.get("content")) for m in known if m.get("role") in ("user", "system")]
    has_marks = any(_RETURN_CODE.match(t.lstrip()) or _SUBMIT in t for t in told)
    return has_marks and sum(fenced_command(a) is not None for a in answers) * 2 > len(answers)


def is_run_of_another(row: dict[str, Any]) -> bool:
    """Whether an object with messages is a run that a benchmark or a tracer recorded in a form of its own."""
    if row.keys() & {"termination_reason", "reward_info", "extra_metadata", "dotted_order", "run_type", "done"}:
        return True
    if {"epoch", "target"} <= row.keys() or "trajectory_format" in row:
        return True
    return isinstance(row.get("info"), dict) and is_mini_swe_run(sequence(row.get("messages")))


def is_ollama_response(value: Any) -> bool:
    """An answer of Ollama's native API, or the list of its chunks."""
    if isinstance(value, list):
        return bool(value) and all(is_ollama_response(v) for v in value)
    known = mapping(value)
    return isinstance(known.get("done"), bool) and bool(known.keys() & {"message", "response"})


def is_bare_trace(row: dict[str, Any]) -> bool:
    """Messages alone whose arguments are objects: Invariant traces; elsewhere arguments are JSON text."""
    if row.keys() - {"messages", "annotations", "metadata"}:
        return False
    calls = [c for m in sequence(row.get("messages")) for c in sequence(mapping(m).get("tool_calls"))]
    return any(isinstance(mapping(mapping(c).get("function")).get("arguments"), dict) for c in calls)


def is_anthropic_request(row: dict[str, Any]) -> bool:
    """A request body with the system text beside the messages, as only Anthropic's has it."""
    if not isinstance(row.get("system"), (str, list)):
        return False
    return "max_tokens" in row or str(row.get("model", "")).startswith("claude")
