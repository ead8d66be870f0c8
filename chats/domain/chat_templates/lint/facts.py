"""Plain observations about a template, by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from chats.domain.chat_templates.lint import probes
from chats.domain.chat_templates.lint.evidence import Evidence, prompts_of
from chats.domain.chat_templates.lint.report import Fact

GENERATION_TAG = re.compile(r"\{%-?\s*generation\s*-?%\}")
HTML_ESCAPE = re.compile(r"&(?:quot|lt|gt|amp|#34|#39);")


def _generation_prompt(e: Evidence) -> str | None:
    without, with_it = e.prompt("user"), e.prompt("user_prompt")
    if without is None or with_it is None:
        return None
    if with_it == without:
        return "ignored"
    return "suffix" if with_it.startswith(without) else "changes earlier text"


def _starts_with(e: Evidence, times: int) -> bool:
    bos = e.tokens.get("bos_token")
    return bool(bos) and (e.prompt("user_prompt") or "").startswith(str(bos) * times)


def _tools(e: Evidence) -> str:
    prompt = e.prompt("tools")
    if prompt is None:
        return "raises"
    if prompt == e.prompt("user_prompt"):
        return "ignored"
    return "kept" if probes.TOOL in prompt else "name missing"


def _arguments_agree(e: Evidence) -> bool | None:
    as_object, as_text = e.prompt("call"), e.prompt("call_as_text")
    if as_object is None or as_text is None or probes.CITY not in as_object:
        return None
    return as_object == as_text


def _null_content(e: Evidence) -> str:
    prompt = e.prompt("call_without_content")
    if prompt is None:
        return "raises"
    return "prints None" if "None" in prompt else "ok"


def _text_parts(e: Evidence) -> str:
    kept = e.kept("text_parts", probes.PART)
    if kept == "kept" and re.search(r"""['"]text['"]""", e.prompt("text_parts") or ""):
        return "printed as data"
    return kept


def _prefill(e: Evidence) -> str:
    prompt = e.prompt("prefill")
    if prompt is None:
        return "refused"
    return "ends with the message" if prompt.endswith(probes.PREFILL) else "not at the end"


FACTS: Mapping[str, Callable[[Evidence], Fact]] = {
    "assistant_first": lambda e: e.accepted("assistant_first"),
    "call_dict": lambda e: e.kept("call", probes.CITY),
    "call_string": lambda e: e.kept("call_as_text", probes.CITY),
    "depends_on_clock": lambda e: e.depends_on_clock,
    "developer": lambda e: e.kept("developer", probes.DEVELOPER),
    "double_bos": lambda e: _starts_with(e, 2),
    "ends_in_blanks": lambda e: (e.prompt("user_prompt") or "").endswith((" ", "\t")),
    "generation_prompt": _generation_prompt,
    "generation_tags": lambda e: GENERATION_TAG.search(e.text) is not None,
    "html_escapes": lambda e: any(HTML_ESCAPE.search(prompt) for _, prompt in prompts_of(e)),
    "inline_think": lambda e: e.kept("inline_reasoning", probes.INLINE_REASONING),
    "null_content_when_not_dropped": _null_content,
    "prefill": _prefill,
    "prefix_stable": lambda e: e.continued("user"),
    "prefix_stable_closed_turn": lambda e: e.continued("closed_turn"),
    "prefix_stable_with_generation_prompt": lambda e: e.continued("user_prompt"),
    "reads_variables": lambda e: e.names,
    "reasoning_history": lambda e: e.kept("reasoning", probes.REASONING),
    "reasoning_tool_loop": lambda e: e.kept("reasoning_in_tool_loop", probes.REASONING),
    "renders_user_turn": lambda e: e.prompt("user_prompt") is not None,
    "starts_with_bos": lambda e: _starts_with(e, 1),
    "string_and_dict_arguments_agree": _arguments_agree,
    "string_arguments_encoded_twice": lambda e: '\\"city\\"' in (e.prompt("call_as_text") or ""),
    "system": lambda e: e.kept("system", probes.SYSTEM),
    "text_parts": _text_parts,
    "tool_result": lambda e: e.kept("call", probes.RESULT),
    "tools": _tools,
    "trims_content": lambda e: e.kept("padded", probes.PADDED) == "dropped",
    "two_users": lambda e: e.accepted("two_users"),
}
