"""The options under which published templates are known to write as a wrapper does (chat-wrappers.md section 13.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from chats.domain import wording as words

_NO_JINJA: Final = {"functionCallMessageTemplate": "noJinja"}
_CALLS_NEEDED: Final = {"_requireFunctionCallSettingsExtraction": True}
_LATER_CALLS: Final = {**_CALLS_NEEDED, "_functionCallExtractionExamineNonFirst": True}
_THINKING: Final = {"additionalRenderParameters": {"enable_thinking": True}}
_DATED: Final = {"additionalRenderParameters": {"date_string": "26 Jul 2024"}, **_NO_JINJA}
_MUSE_DATES: Final = {
    "additionalRenderParameters": {"current_date": "2026-08-11", "knowledge_cutoff": "2026-01-04"},
}
# What the makers of these models wrote into their templates; the product's own sentences differ.
_GPT_OSS_IDENTITY: Final = "You are ChatGPT, a large language model trained by OpenAI."
VENDOR_WORDING: Final[Mapping[str, Mapping[str, str]]] = {
    "harmony": {
        words.MODEL_IDENTITY: _GPT_OSS_IDENTITY,
        words.COMMENTARY_CHANNEL: "Calls to these tools must go to the commentary channel: 'functions'.",
    }
}
_GPT_OSS_PARAMETERS: Final = {
    "additionalRenderParameters": {"model_identity": _GPT_OSS_IDENTITY, "reasoning_effort": "medium"},
}


@dataclass(frozen=True)
class Configuration:
    """Options to try a wrapper with, those to use it with then, and further options of the Jinja wrapper."""

    tried: Mapping[str, Any] = field(default_factory=dict)
    used: Mapping[str, Any] = field(default_factory=dict)
    jinja: Mapping[str, Any] = field(default_factory=dict)


def _same(*options: Mapping[str, Any]) -> list[Configuration]:
    return [Configuration(chosen, chosen) for chosen in options]


def _mistral() -> list[Configuration]:
    internal = (
        {"_noFunctionNameInResult": True, "_stringifyFunctionCallResult": True},
        {"_noFunctionNameInResult": True},
    )
    return [
        Configuration({"addSpaceBeforeEos": space, **options}, {"addSpaceBeforeEos": space}, _NO_JINJA)
        for options in (*internal, {})
        for space in (False, True)
    ]


def _qwen() -> list[Configuration]:
    breaks = {"_lineBreakBeforeFunctionCallPrefix": True}
    ensured = {"_ensureModelThoughtBeforeTextOnLastResponse": True}
    discouraged = {"thoughts": "discourage"}
    qwen_3 = [
        Configuration({**flat, **options}, {}, _CALLS_NEEDED)
        for flat in ({}, {"_flatFunctionResultString": True})
        for options in ({}, breaks, discouraged, {**discouraged, **breaks})
    ]
    for thoughts in ({}, {"thoughts": "modelInitiated"}):
        used = {"variation": "3.5", **thoughts}
        qwen_3 += [
            Configuration({**used, **options}, used, _LATER_CALLS)
            for options in ({}, breaks, {**ensured, **breaks}, ensured)
        ]
    return qwen_3


def _deepseek() -> list[Configuration]:
    syntaxes: Sequence[Mapping[str, Any]] = (
        {},
        {"functionCallingSyntax": "simplified"},
        {"functionCallingSyntax": "original"},
    )
    return [
        Configuration({}, {**syntax, **thought}, _NO_JINJA)
        for syntax in syntaxes
        for thought in ({}, {"keepOnlyLastThought": True})
    ]


def _llama_3_1() -> list[Configuration]:
    no_today, no_cutoff, no_tools = {"todayDate": None}, {"cuttingKnowledgeDate": None}, {"noToolInstructions": True}
    # Local time, as the template prints the date it is given.
    dated = {"todayDate": datetime(2024, 7, 26), **no_tools}
    cutoff = {"cuttingKnowledgeDate": "2023-12-01T00:00:00.000Z"}
    undated: Sequence[Mapping[str, Any]] = (
        {},
        no_today,
        no_cutoff,
        no_tools,
        {**no_today, **no_cutoff},
        {**no_today, **no_cutoff, **no_tools},
    )
    return [
        *[Configuration(options, {}, _NO_JINJA) for options in (*undated, {**dated, **no_cutoff})],
        Configuration({**dated, **cutoff}, cutoff, _DATED),
        Configuration({**dated, **cutoff, "_specialTokensTextForPreamble": True}, cutoff, _DATED),
    ]


def _harmony() -> list[Configuration]:
    def flags(*names: str, **others: Any) -> dict[str, Any]:
        return {"_jinjaFlags": {**dict.fromkeys(names, True), **others}}

    last, special = "emptyLastModelResponseIsFinalMessage", "useSpecialTokensForFullSystemMessage"
    non_final, none_final = "useNonFinalFinalMessage", "noFinalMessages"
    ends = "disableNonFinalFinalMessages"
    flagged: Sequence[Mapping[str, Any]] = (
        {},
        flags(last),
        flags(special),
        flags(last, special),
        flags(last, special, ends),
        flags(last, special, ends, non_final),
        flags(last, special, non_final),
        flags(last, special, non_final, none_final),
        flags(last, special, non_final, none_final, formatting=1),
    )
    no_today, no_cutoff, no_effort = {"todayDate": None}, {"cuttingKnowledgeDate": None}, {"reasoningEffort": None}
    undated = (no_today, no_cutoff, no_effort, {**no_today, **no_cutoff}, {**no_today, **no_cutoff, **no_effort})
    return [
        *[Configuration(options) for options in ({}, flags(last))],
        *[Configuration(options, {}, _GPT_OSS_PARAMETERS) for options in flagged],
        *[Configuration(options) for options in undated],
    ]


def _muse() -> list[Configuration]:
    # Local time, too.
    dated = {"todayDate": datetime(2026, 8, 11)}
    return [
        configuration
        for special in ({"_systemMessageInSpecialTokensText": False}, {"_systemMessageInSpecialTokensText": True})
        for configuration in (Configuration(special), Configuration({**dated, **special}, {}, _MUSE_DATES))
    ]


_TITLES = _same({}, {"allowSpecialTokensInTitles": True})
_LINE_BREAK: Final = {"_lineBreakAfterThinkIndicator": False}
CONFIGURATIONS: Final[Mapping[str, Sequence[Configuration]]] = {
    "general": _TITLES,
    "alpacaChat": _TITLES,
    "falconChat": _TITLES,
    "llama2Chat": _same({"addSpaceBeforeEos": False}, {"addSpaceBeforeEos": True}),
    "functionary": _same({"variation": "v3"}, {"variation": "v2.llama3"}, {"variation": "v2"}),
    "mistral": _mistral(),
    "gemma4": [
        Configuration(),
        Configuration({"reasoning": False}),
        Configuration(jinja=_THINKING),
        Configuration(_LINE_BREAK),
        Configuration(_LINE_BREAK, {}, _THINKING),
    ],
    "deepSeek": _deepseek(),
    "qwen": _qwen(),
    "llama3.1": _llama_3_1(),
    "llama3.2-lightweight": _llama_3_1(),
    "harmony": _harmony(),
    "muse": _muse(),
}
"""What to try for each type (section 13.3); the others are tried without options."""
