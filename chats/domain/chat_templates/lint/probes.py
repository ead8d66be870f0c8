"""Small chats that bring out what a chat template does (chat-templates.md, "Lint checks worth offering").

Each text that a probe looks for again in the prompt stands nowhere else, so that finding it means it was kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

FIRST_QUESTION = "Q-first"
FIRST_ANSWER = "A-first"
SECOND_QUESTION = "Q-second"
SYSTEM = "SYS-rule"
DEVELOPER = "DEV-rule"
CITY = "Bergen-city"
RESULT = "RES-rain"
PART = "PART-text"
REASONING = "THINK-why"
INLINE_REASONING = "INL-why"
PADDED = "  \n pad \n "
PREFILL = "PRE-fill"
MARKUP = "a < b & \"c\" > 'd'"
TOOL = "get_weather"

_Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Probe:
    """A chat and how it is rendered. `keep_nulls`: as a caller that doesn't drop null keys would pass it."""

    messages: tuple[_Message, ...]
    tools: tuple[dict[str, Any], ...] | None = None
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    keep_nulls: bool = False


def user(text: Any) -> _Message:
    return {"role": "user", "content": text}


def assistant(text: str | None, **more: Any) -> _Message:
    return {"role": "assistant", "content": text, **more}


def system(text: str) -> _Message:
    return {"role": "system", "content": text}


_TOOLS: tuple[dict[str, Any], ...] = (
    {
        "type": "function",
        "function": {
            "name": TOOL,
            "description": "Tells the weather",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string", "description": "where"}},
                "required": ["city"],
            },
        },
    },
)

# Nine letters and digits: some templates refuse any other id.
_CALL_ID = "call00001"


def _call(arguments: Any) -> list[dict[str, Any]]:
    return [{"id": _CALL_ID, "type": "function", "function": {"name": TOOL, "arguments": arguments}}]


def _with_call(arguments: Any, content: str | None = "", **more: Any) -> tuple[_Message, ...]:
    return (
        user(FIRST_QUESTION),
        assistant(content, **more, tool_calls=_call(arguments)),
        {"role": "tool", "name": TOOL, "tool_call_id": _CALL_ID, "content": RESULT},
    )


_QUESTION = (user(FIRST_QUESTION),)
_ANSWERED = (*_QUESTION, assistant(FIRST_ANSWER))

PROBES: Mapping[str, Probe] = {
    "user": Probe(_QUESTION, add_generation_prompt=False),
    "user_prompt": Probe(_QUESTION),
    "system": Probe((system(SYSTEM), *_QUESTION)),
    "late_system": Probe((*_ANSWERED, system(SYSTEM), user(SECOND_QUESTION))),
    "developer": Probe(({"role": "developer", "content": DEVELOPER}, *_QUESTION)),
    "closed_turn": Probe(_ANSWERED, add_generation_prompt=False),
    "second_turn": Probe((*_ANSWERED, user(SECOND_QUESTION))),
    "two_users": Probe((user("Q-one-more"), user(SECOND_QUESTION)), add_generation_prompt=False),
    "assistant_first": Probe((assistant(FIRST_ANSWER), user(SECOND_QUESTION)), add_generation_prompt=False),
    "tools": Probe(_QUESTION, _TOOLS),
    "call": Probe(_with_call({"city": CITY}), _TOOLS),
    "call_as_text": Probe(_with_call(f'{{"city": "{CITY}"}}'), _TOOLS),
    "call_without_content": Probe(_with_call({"city": CITY}, None), _TOOLS, keep_nulls=True),
    "text_parts": Probe((user([{"type": "text", "text": PART}]),)),
    "reasoning": Probe((*_QUESTION, assistant(FIRST_ANSWER, reasoning_content=REASONING), user(SECOND_QUESTION))),
    "reasoning_in_tool_loop": Probe(_with_call({"city": "x"}, reasoning_content=REASONING), _TOOLS),
    "inline_reasoning": Probe(
        (*_QUESTION, assistant(f"<think>\n{INLINE_REASONING}\n</think>\n\n{FIRST_ANSWER}"), user(SECOND_QUESTION))
    ),
    "padded": Probe((user(PADDED),)),
    "markup": Probe((user(MARKUP),)),
    "prefill": Probe((*_QUESTION, assistant(PREFILL)), add_generation_prompt=False, continue_final_message=True),
}
