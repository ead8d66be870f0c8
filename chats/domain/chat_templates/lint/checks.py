"""What an author should look at: checks over the facts and the evidence (chat-templates.md, lint checks 1 to 20)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from chats.domain.chat_templates import PASSED_NAMES, REASONING_FIELDS, SPECIAL_TOKEN_NAMES, Rendered, template_lines
from chats.domain.chat_templates.lint import probes
from chats.domain.chat_templates.lint.control_tokens import CONTROL_TOKEN, control_tokens
from chats.domain.chat_templates.lint.evidence import CLOCKS, Evidence, prompts_of, sample_of
from chats.domain.chat_templates.lint.facts import HTML_ESCAPE
from chats.domain.chat_templates.lint.report import Fact, Finding, Severity

_PYTHON_DATA = re.compile(r"\{'\w+': ")
_GLUED = re.compile(rf"(?P<token>{CONTROL_TOKEN.pattern})[ \t]*(?:\r\n?|\n)\s*\{{[%{{](?P<dash>-)")
_MENTIONS_REASONING = re.compile("|".join((*REASONING_FIELDS, "think>", "THINK")))
MAX_VARIANTS = 8
"""How many changed templates a check tries at most."""
# Words outside control tokens that make a text before the first message a prompt, not a role's name.
_FEWEST_PROMPT_WORDS = 4


@dataclass(frozen=True, slots=True)
class FactCheck:
    """A finding wherever a fact has a value, with the prompts of two probes as its texts."""

    fact: str
    value: Fact
    code: str
    severity: Severity
    left: str
    right: str | None = None


# By number of the check. What a model may well want is information; what it can't want is an error.
FACT_CHECKS: tuple[tuple[int, FactCheck], ...] = (
    (1, FactCheck("renders_user_turn", False, "user_turn_refused", "error", "user_prompt")),
    (2, FactCheck("generation_prompt", "ignored", "generation_prompt_ignored", "warning", "user", "user_prompt")),
    (
        2,
        FactCheck(
            "generation_prompt",
            "changes earlier text",
            "generation_prompt_changes_text",
            "error",
            "user",
            "user_prompt",
        ),
    ),
    (3, FactCheck("starts_with_bos", True, "starts_with_bos", "info", "user_prompt")),
    (3, FactCheck("double_bos", True, "bos_twice", "error", "user_prompt")),
    (4, FactCheck("system", "dropped", "system_dropped", "error", "user_prompt", "system")),
    (4, FactCheck("system", "raises", "system_refused", "warning", "user_prompt", "system")),
    (4, FactCheck("developer", "dropped", "developer_dropped", "warning", "user_prompt", "developer")),
    (4, FactCheck("developer", "raises", "developer_refused", "info", "user_prompt", "developer")),
    (5, FactCheck("tools", "ignored", "tools_ignored", "warning", "user_prompt", "tools")),
    (5, FactCheck("tools", "raises", "tools_refused", "warning", "user_prompt", "tools")),
    (5, FactCheck("tools", "name missing", "tool_name_missing", "error", "user_prompt", "tools")),
    (5, FactCheck("call_dict", "dropped", "call_dropped", "warning", "call")),
    (5, FactCheck("call_dict", "raises", "call_refused", "warning", "call")),
    (5, FactCheck("tool_result", "dropped", "tool_result_dropped", "warning", "call")),
    (
        6,
        FactCheck(
            "string_arguments_encoded_twice", True, "text_arguments_encoded_twice", "error", "call", "call_as_text"
        ),
    ),
    (
        7,
        FactCheck("null_content_when_not_dropped", "raises", "null_content_refused", "warning", "call_without_content"),
    ),
    (
        7,
        FactCheck(
            "null_content_when_not_dropped", "prints None", "null_content_printed", "error", "call_without_content"
        ),
    ),
    (8, FactCheck("text_parts", "raises", "text_parts_refused", "warning", "text_parts")),
    (8, FactCheck("text_parts", "printed as data", "text_parts_printed", "error", "text_parts")),
    (8, FactCheck("text_parts", "dropped", "text_parts_dropped", "error", "text_parts")),
    (9, FactCheck("two_users", "raises", "two_users_refused", "info", "two_users")),
    (9, FactCheck("assistant_first", "raises", "assistant_first_refused", "info", "assistant_first")),
    (
        10,
        FactCheck(
            "prefix_stable_with_generation_prompt",
            False,
            "unstable_with_generation_prompt",
            "warning",
            "user_prompt",
            "second_turn",
        ),
    ),
    (10, FactCheck("prefix_stable", False, "unstable_without_generation_prompt", "warning", "user", "second_turn")),
    (
        10,
        FactCheck(
            "prefix_stable_closed_turn", False, "unstable_after_closed_turn", "warning", "closed_turn", "second_turn"
        ),
    ),
    (12, FactCheck("trims_content", True, "content_trimmed", "info", "padded")),
    (14, FactCheck("prefill", "refused", "prefill_refused", "warning", "closed_turn", "prefill")),
    (14, FactCheck("prefill", "not at the end", "prefill_not_at_end", "warning", "closed_turn", "prefill")),
    (18, FactCheck("ends_in_blanks", True, "prompt_ends_in_blanks", "warning", "user_prompt")),
    (19, FactCheck("generation_tags", False, "no_generation_tags", "info", "closed_turn")),
)


def _facts_told(e: Evidence, facts: Mapping[str, Fact]) -> Iterator[Finding]:
    for number, check in FACT_CHECKS:
        if facts[check.fact] == check.value:
            right = None if check.right is None else e.sample(check.right)
            yield Finding(check.code, number, check.severity, {}, e.sample(check.left), right)


def _bos_never_written(e: Evidence, facts: Mapping[str, Fact]) -> Iterator[Finding]:
    bos = e.tokens.get("bos_token")
    if bos and not any(bos in prompt for _, prompt in prompts_of(e)):
        yield Finding("bos_never_written", 3, "info", {"token": bos}, e.sample("user_prompt"))


def _late_system(e: Evidence, facts: Mapping[str, Fact]) -> Iterator[Finding]:
    kept = e.kept("late_system", probes.SYSTEM)
    if facts["system"] == "raises" or e.prompt("second_turn") is None or kept == "kept":
        return
    code = "late_system_refused" if kept == "raises" else "late_system_dropped"
    severity: Severity = "info" if kept == "raises" else "warning"
    yield Finding(code, 4, severity, {}, e.sample("second_turn"), e.sample("late_system"))


def _text_arguments(e: Evidence, facts: Mapping[str, Fact]) -> Iterator[Finding]:
    sides = (e.sample("call"), e.sample("call_as_text"))
    if facts["call_string"] == "raises" and facts["call_dict"] != "raises":
        yield Finding("text_arguments_refused", 6, "warning", {}, *sides)
    elif facts["string_and_dict_arguments_agree"] is False and not facts["string_arguments_encoded_twice"]:
        yield Finding("text_arguments_differ", 6, "warning", {}, *sides)


def _reasoning(e: Evidence, facts: Mapping[str, Fact]) -> Iterator[Finding]:
    if not _MENTIONS_REASONING.search(e.text):
        return
    if facts["reasoning_history"] == "dropped":
        yield Finding("reasoning_dropped", 11, "info", {}, e.sample("reasoning"))
    if facts["reasoning_tool_loop"] == "dropped":
        yield Finding("reasoning_dropped_in_tool_loop", 11, "warning", {}, e.sample("reasoning_in_tool_loop"))


def _clock(e: Evidence, facts: Mapping[str, Fact]) -> Iterator[Finding]:
    if not facts["depends_on_clock"]:
        return
    for name, probe in probes.PROBES.items():
        later = e.outcome(probe, now=CLOCKS[1])
        if later != e.outcomes[name]:
            yield Finding("depends_on_clock", 13, "warning", {}, e.sample(name), sample_of(name, later))
            return


def _foreign_text(e: Evidence, facts: Mapping[str, Fact]) -> Iterator[Finding]:
    """Signs that a value was printed the way HTML or Python would, where the model expects its own form."""
    for name, prompt in prompts_of(e):
        escape = HTML_ESCAPE.search(prompt)
        if escape and escape[0] not in e.text:
            yield Finding("html_escapes", 15, "error", {"found": escape[0]}, e.sample(name))
            break
    for name, prompt in prompts_of(e):
        if name != "text_parts" and _PYTHON_DATA.search(prompt):
            yield Finding("python_data", 15, "error", {}, e.sample(name))
            break


def _own_system_prompt(e: Evidence, facts: Mapping[str, Fact]) -> Iterator[Finding]:
    """Words before the first message that don't belong to the opening of a user turn, as a later turn shows it."""
    prompt, later = e.prompt("user"), e.prompt("second_turn")
    if prompt is None or probes.FIRST_QUESTION not in prompt:
        return
    before = prompt[: prompt.index(probes.FIRST_QUESTION)]
    opening = ""
    if later is not None and probes.FIRST_ANSWER in later and probes.SECOND_QUESTION in later:
        opening = later[later.index(probes.FIRST_ANSWER) : later.index(probes.SECOND_QUESTION)]
    shared = 0
    while shared < min(len(before), len(opening)) and before[-1 - shared] == opening[-1 - shared]:
        shared += 1
    own = before[: len(before) - shared]
    if len(re.findall(r"\w+", CONTROL_TOKEN.sub(" ", own))) >= _FEWEST_PROMPT_WORDS:
        yield Finding("own_system_prompt", 16, "info", {"text": own.strip()}, e.sample("user"), e.sample("system"))


def _names(e: Evidence, facts: Mapping[str, Fact]) -> Iterator[Finding]:
    read = [v.name for v in e.variables]
    for name in sorted(e.kwargs - {*read, *e.names, *PASSED_NAMES, *SPECIAL_TOKEN_NAMES}):
        yield Finding("argument_never_read", 17, "error", {"name": name, "read": read})
    unpassed = [name for name in read if name not in e.kwargs]
    if unpassed:
        yield Finding("variables_not_passed", 17, "info", {"names": unpassed})


def _lost_line_break(e: Evidence, facts: Mapping[str, Fact]) -> Iterator[Finding]:
    if not e.text.endswith(("\n", "\r")):
        return
    kept = e.outcome(probes.PROBES["user_prompt"], e.text + "\n")
    if kept != e.outcomes["user_prompt"]:
        line = len(template_lines(e.text)) - 1
        sides = (e.sample("user_prompt"), sample_of("user_prompt", kept))
        yield Finding("final_line_break_lost", 18, "info", {"line": line}, *sides)


def _glued_tokens(e: Evidence, facts: Mapping[str, Fact]) -> Iterator[Finding]:
    """Control tokens side by side because a `{%-` or `{{-` ate the line break that the text has between them."""
    glued = e.outcomes["second_turn"]
    if not isinstance(glued, Rendered):
        return
    for match in list(_GLUED.finditer(e.text))[:MAX_VARIANTS]:
        side_by_side = re.compile(re.escape(match["token"]) + f"(?:{CONTROL_TOKEN.pattern})")
        count = len(side_by_side.findall(glued.text))
        if not count:
            continue
        apart = e.outcome(probes.PROBES["second_turn"], e.text[: match.start("dash")] + e.text[match.end("dash") :])
        if isinstance(apart, Rendered) and len(side_by_side.findall(apart.text)) < count:
            line = len(template_lines(e.text[: match.start("dash")]))
            sides = (e.sample("second_turn"), sample_of("second_turn", apart))
            yield Finding("tokens_glued", 18, "warning", {"token": match["token"], "line": line}, *sides)


def _control_tokens_pass(e: Evidence, facts: Mapping[str, Fact]) -> Iterator[Finding]:
    for token in control_tokens(e.text, e.tokens):
        typed = f"a {token} b"
        outcome = e.outcome(probes.Probe((probes.user(typed),)))
        if isinstance(outcome, Rendered) and typed in outcome.text:
            yield Finding("control_tokens_pass", 20, "info", {"token": token}, sample_of("typed_token", outcome))
            return


CHECKS: tuple[Callable[[Evidence, Mapping[str, Fact]], Iterator[Finding]], ...] = (
    _facts_told,
    _bos_never_written,
    _late_system,
    _text_arguments,
    _reasoning,
    _clock,
    _foreign_text,
    _own_system_prompt,
    _names,
    _lost_line_break,
    _glued_tokens,
    _control_tokens_pass,
)
