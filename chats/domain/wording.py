"""Wording: the sentences that a wrapper says itself, apart from the format that the model's vendor defined.

A wording is a set of named texts with slots in double braces. The defaults below are this product's own; each of them
can be changed per wrapper. Slots are filled in plain pieces only, each at once, so that a slot's content that looks
like another slot stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from chats.domain.llama_text import LlamaText, Piece, SpecialTokensText

Wording: TypeAlias = Mapping[str, LlamaText]
"""Texts by name; see the names below."""

FUNCTIONS: Final = "functions"
"""The block that introduces the offered functions. Slots: `{{functions}}`, and `{{exampleCall}}` where a wrapper has
an example made with its own call settings."""
SYSTEM_PROMPT: Final = "systemPrompt"
"""The system message of a new chat when none is given."""
FUNCTIONS_NOTE: Final = "functionsNote"
"""Functionary: a second system message after the functions block."""
TOOL_INSTRUCTIONS: Final = "toolInstructions"
"""Llama 3.1: the line under the heading of the tool instructions."""
MODEL_IDENTITY: Final = "modelIdentity"
"""Harmony: who the model is, unless the option says it."""
COMMENTARY_CHANNEL: Final = "commentaryChannel"
"""Harmony: which channel calls go to."""
NO_THINKING: Final = "noThinking"
"""Seed with a thinking budget of 0: a system message."""
NO_THINKING_THOUGHT: Final = "noThinkingThought"
"""Seed with a thinking budget of 0: the thought put into the model's mouth."""
THINKING_BUDGET: Final = "thinkingBudget"
"""Seed with a positive budget: a system message. Slots: `{{budget}}`, `{{interval}}`."""
DEFAULT_SYSTEM: Final = "defaultSystem"
"""Seed, Muse: what the system says when the chat has no system message (Seed: with functions)."""

SLOT_FUNCTIONS: Final = "{{functions}}"
SLOT_EXAMPLE_CALL: Final = "{{exampleCall}}"
SLOT_NAMESPACES: Final = "{{namespaces}}"
SLOT_BUDGET: Final = "{{budget}}"
SLOT_INTERVAL: Final = "{{interval}}"

_SLOT = re.compile(r"(\{\{[A-Za-z]+\}\})")


def filled(text: LlamaText, slots: Mapping[str, Sequence[Piece]]) -> list[Piece]:
    """The pieces with every known slot replaced; unknown ones stay as they are."""
    out: list[Piece] = []
    for piece in text.values:
        if not isinstance(piece, str):
            out.append(piece)
            continue
        for part in _SLOT.split(piece):
            content = slots.get(part)
            if content is None:
                out.append(part)
            else:
                out.extend(content)
    return out


def _special(text: str) -> SpecialTokensText:
    return SpecialTokensText(text)


_ASK_WITH_FUNCTIONS = (
    "Some questions can only be answered with the help of functions. When one would help, call it before answering, "
    "and don't announce the call.\n"
)
_RESULTS_ARE_HIDDEN = (
    "The person you talk to sees neither your calls nor their results: say in your own words what matters in them.\n"
    "Call a function only when it is needed, and never invent a result."
)

DEFAULT_SYSTEM_PROMPT: Final = LlamaText(
    "You are a careful assistant. Answer clearly, and to the point.\n"
    "Say so when you are not sure or when a question rests on a mistake, instead of guessing."
)
BASE_FUNCTIONS: Final = LlamaText(
    _ASK_WITH_FUNCTIONS,
    "These functions exist:\n```typescript\n{{functions}}\n```\n\n"
    "A call is written exactly like this example, its first characters included:\n{{exampleCall}}\n\n",
    _RESULTS_ARE_HIDDEN,
)
LLAMA_3_1_FUNCTIONS: Final = LlamaText(
    "These functions exist:\n\n{{functions}}\n\n\n"
    "To call one, reply with nothing but the call, on one line, as in this example:\n",
    _special("<function="),
    "example_function_name",
    _special(">"),
    '{"example_name": "example_value"}',
    _special("</function>"),
    "\n\nOne call at a time. ",
    _RESULTS_ARE_HIDDEN,
)
LLAMA_3_1_TOOL_INSTRUCTIONS: Final = LlamaText(
    "- For anything recent, use a function that can look it up, if there is one"
)
LLAMA_3_2_FUNCTIONS: Final = LlamaText(
    "These functions exist. To call one, reply with JSON of the form "
    '{"name": the function\'s name, "parameters": an object with its parameters}, with values spelled out.\n\n'
    "{{functions}}\n\n",
    _RESULTS_ARE_HIDDEN,
)
FUNCTIONARY_V2_FUNCTIONS: Final = LlamaText(
    "// Functions that may be called when they are needed.\nnamespace functions {\n\n{{functions}}\n\n"
    "} // namespace functions"
)
FUNCTIONARY_V3_FUNCTIONS: Final = LlamaText(
    "You may call the functions below, when you need to. Ask the person for whatever a call lacks.\n"
    "Write arguments as JSON, and each message as:\n>>>${recipient}\n${content}\n",
    FUNCTIONARY_V2_FUNCTIONS,
)
FUNCTIONARY_NOTE: Final = LlamaText(
    "Call functions with fitting arguments when that helps. End every answer with <|stop|>."
)

_DEEPSEEK_END = (
    "Functions are for you alone: don't mention them, and don't explain a call. ",
    _RESULTS_ARE_HIDDEN,
)
DEEPSEEK_R1_FUNCTIONS: Final = LlamaText(
    _ASK_WITH_FUNCTIONS,
    "Call again if an earlier result may be out of date.\nThese functions exist:\n{{functions}}\n\n"
    "A call is written exactly like this example:\n{{exampleCall}}\n\n",
    *_DEEPSEEK_END,
)


def deepseek_functions(call: Sequence[Piece], parallel_calls: Sequence[Piece] | None) -> LlamaText:
    """The block for the model's own call syntax, with a call and, if they are possible, parallel calls spelled out."""
    parts: list[Piece] = [
        "These functions exist:\n{{functions}}\n\nA call is written like this, with the function's name and a JSON "
        "object of its arguments:\n",
        *call,
        "\n\n",
    ]
    if parallel_calls is not None:
        parts += ["Several calls at once are written like this; their results follow in the same order:\n"]
        parts += [*parallel_calls, "\n\n"]
    else:
        parts.append("One call at a time. ")
    parts += [
        *_DEEPSEEK_END,
        "\nWhen the results are there, finish thinking with ",
        _special("</think>"),
        " and answer.",
    ]
    return LlamaText.of(parts)


QWEN_3_FUNCTIONS: Final = LlamaText(
    "# Tools\n\nYou may call one or more functions. Their signatures stand between ",
    _special("<tools></tools>"),
    ":\n",
    _special("<tools>"),
    "\n{{functions}}\n",
    _special("</tools>"),
    "\n\nWrite each call as a JSON object with the function's name and arguments between ",
    _special("<tool_call></tool_call>"),
    ":\n",
    _special("<tool_call>"),
    '\n{"name": <function-name>, "arguments": <args-json-object>}\n',
    _special("</tool_call>"),
)
QWEN_3_5_FUNCTIONS: Final = LlamaText(
    "# Tools\n\nThese functions exist:\n\n",
    _special("<tools>"),
    "\n{{functions}}\n",
    _special("</tools>"),
    "\n\nTo call one, end your reply with the call, in this form:\n\n",
    _special("<tool_call>"),
    "\n",
    _special("<function="),
    "example_function_name",
    _special(">"),
    "\n",
    _special("<parameter="),
    "example_parameter",
    _special(">"),
    "\na value, which may have\nseveral lines\n",
    _special("</parameter>"),
    "\n",
    _special("</function>"),
    "\n",
    _special("</tool_call>"),
    "\n\nGive every required parameter. Reasons for a call go before it, never after it. "
    "If no function helps, answer from what you know and don't mention functions.",
)
HARMONY_IDENTITY: Final = LlamaText("You are gpt-oss, an open-weight language model made by OpenAI.")
HARMONY_COMMENTARY: Final = LlamaText("Calls to functions go to the channel commentary: 'functions'.")

SEED_DEFAULT_SYSTEM: Final = LlamaText("You are a helpful assistant. Functions are there to help you with requests.")
SEED_FUNCTIONS: Final = LlamaText(
    "\nTool List:\nThese tools may be used; they are described in JSON Schema. Decide before you answer whether "
    "and how to call them.\n{{functions}}\nA call has exactly this form:\n",
    _special(
        '<seed:tool_call>\n<function=example_function_name>\n{"example_parameter": "value"}</function>\n'
        "</seed:tool_call>"
    ),
)
SEED_NO_THINKING: Final = LlamaText("Your thinking budget is 0: answer at once, without thinking first.")
SEED_NO_THINKING_THOUGHT: Final = LlamaText("My thinking budget is 0, so I answer at once.")
SEED_THINKING_BUDGET: Final = LlamaText(
    "Your thinking budget is {{budget}} tokens: finish thinking within {{budget}} tokens, then answer. "
    "Every {{interval}} tokens, note how many are used and how many are left."
)

MUSE_DEFAULT_SYSTEM: Final = LlamaText("You are a helpful assistant.")
MUSE_FUNCTIONS: Final = LlamaText(
    "You can use tools to answer. A call is a ",
    _special('"<atem:function_calls>"'),
    " block of this form:\n",
    _special("<atem:function_calls>"),
    "\n",
    _special('<atem:invoke name="$FUNCTION_NAME">'),
    "\n",
    _special('<atem:parameter name="$PARAMETER_NAME">$PARAMETER_VALUE</atem:parameter>'),
    "\n...\n",
    _special("</atem:invoke>"),
    "\n",
    _special("</atem:function_calls>"),
    "\n\nText and plain values are written as they are, spaces included; lists and objects as JSON.\n"
    "// Tool metadata\n{{namespaces}}\n// Function schemas\n{{functions}}\n"
    "A tool without a namespace is called by its name alone.",
)
