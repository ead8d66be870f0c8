"""Lint of chat templates: what the model will see, found by rendering small chats (chat-templates.md).

`lint` gives facts, which are plain observations about a template, and findings, which are what an author should look
at: a code, its arguments, a severity and, where texts differ, the two side by side. Sentences are made from the codes
in the reader's language. Runs in the worker process: standard library and jinja2 only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from chats.domain import jinja_templates as templates
from chats.domain import template_probes as probes
from chats.domain.jinja_templates import Profile, Rendered, RenderRequest, TemplateCache, TemplateFailure

Severity = Literal["error", "warning", "info"]
Fact = bool | str | None | list[str]
Argument = str | int | list[str]

GENERATION_TAG = re.compile(r"\{%-?\s*generation\s*-?%\}")
# Spellings of control tokens that templates write out; a model's own special tokens come on top.
CONTROL_TOKEN = re.compile(
    r"<\|[^|<>\s]{1,60}\|>|<｜[^｜<>\s]{1,60}｜>|\[/?[A-Z][A-Z_]{2,30}\]"
    r"|</?s>|<(?:bos|eos|pad|unk|sep|cls|mask)>|<(?:start|end)_of_[a-z_]{1,30}>"
)
_HTML_ESCAPE = re.compile(r"&(?:quot|lt|gt|amp|#34|#39);")
_PYTHON_DATA = re.compile(r"\{'\w+': ")
_GLUED = re.compile(rf"(?P<token>{CONTROL_TOKEN.pattern})[ \t]*(?:\r\n?|\n)\s*\{{[%{{](?P<dash>-)")
_MENTIONS_REASONING = re.compile("|".join((*templates.REASONING_FIELDS, "think>", "THINK")))
_CLOCKS = (datetime(2025, 3, 5, 14, 7, 9), datetime(2031, 11, 23, 1, 2, 3))
_MAX_VARIANTS = 8
_MAX_SAMPLE_CHARACTERS = 20_000
# Words outside control tokens that make a text before the first message a prompt, not a role's name.
_FEWEST_PROMPT_WORDS = 4
# What can be said about a template that renders nothing.
_CHECKS_OF_TEXT = frozenset({1, 17, 19})


@dataclass(frozen=True, slots=True)
class Sample:
    """One side of a comparison: which chat (`about`, a code), and its text, or the words of the error it raised."""

    about: str
    text: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about the template that its author should know. `check` is the number of the check, 1 to 20."""

    code: str
    check: int
    severity: Severity
    args: Mapping[str, Argument] = field(default_factory=dict)
    left: Sample | None = None
    right: Sample | None = None


@dataclass(frozen=True, slots=True)
class LintReport:
    """All that was found. `facts` is empty for a template that doesn't compile."""

    facts: Mapping[str, Fact]
    findings: tuple[Finding, ...]


class Evidence:
    """The template, its probes' results, and the renders that single checks still ask for."""

    def __init__(
        self, text: str, tokens: Mapping[str, str], kwargs: Iterable[str], profile: Profile, cache: TemplateCache
    ) -> None:
        self.text = text
        self.tokens = tokens
        self.kwargs = frozenset(kwargs)
        self._profile = profile
        self._cache = cache
        self.outcomes = {name: self.outcome(probe) for name, probe in probes.PROBES.items()}
        self.names = sorted(
            templates.undeclared_names(text, profile) - {*templates.PASSED_NAMES, *templates.SPECIAL_TOKEN_NAMES}
        )
        self.variables = templates.variables(text, profile)
        self.depends_on_clock = "strftime_now" in text and any(
            self.outcome(probe, now=_CLOCKS[1]) != self.outcomes[name] for name, probe in probes.PROBES.items()
        )

    def outcome(
        self, probe: probes.Probe, text: str | None = None, now: datetime = _CLOCKS[0]
    ) -> Rendered | TemplateFailure:
        request = RenderRequest(
            self.text if text is None else text,
            probe.messages,
            tools=probe.tools,
            tokens=self.tokens,
            profile=self._profile,
            add_generation_prompt=probe.add_generation_prompt,
            continue_final_message=probe.continue_final_message,
            keep_nulls=probe.keep_nulls,
            now=now,
        )
        return templates.render_or_explain(request, self._cache)

    def prompt(self, name: str) -> str | None:
        """The text of a probe; None where it raised."""
        outcome = self.outcomes[name]
        return outcome.text if isinstance(outcome, Rendered) else None

    def sample(self, name: str) -> Sample:
        return _sample(name, self.outcomes[name])

    def kept(self, name: str, text: str) -> str:
        prompt = self.prompt(name)
        if prompt is None:
            return "raises"
        return "kept" if text in prompt else "dropped"

    def accepted(self, name: str) -> str:
        return "raises" if self.prompt(name) is None else "ok"

    def continued(self, name: str) -> bool | None:
        """Is the probe's prompt the start of the next turn's? None if one of the two raised."""
        before, after = self.prompt(name), self.prompt("second_turn")
        return None if before is None or after is None else after.startswith(before)


def _sample(about: str, outcome: Rendered | TemplateFailure) -> Sample:
    if isinstance(outcome, Rendered):
        return Sample(about, outcome.text[:_MAX_SAMPLE_CHARACTERS])
    return Sample(about, outcome.message[:_MAX_SAMPLE_CHARACTERS], failed=True)


def lint(
    text: str,
    tokens: Mapping[str, str],
    kwargs: Iterable[str] = (),
    profile: Profile = "current",
) -> LintReport:
    """Facts and findings about a template.

    `tokens` are the model's special tokens, `kwargs` the names of the arguments that it will be given. A template
    that doesn't compile has the one finding that says so.
    """
    cache = TemplateCache(_MAX_VARIANTS)
    failure = templates.check(text, profile, cache)
    if failure is not None:
        where = {} if failure.line is None else {"line": failure.line}
        return LintReport({}, (Finding("does_not_compile", 1, "error", where, _sample("template", failure)),))
    evidence = Evidence(text, tokens, kwargs, profile, cache)
    facts = {name: observe(evidence) for name, observe in FACTS.items()}
    findings = tuple(finding for find in CHECKS for finding in find(evidence, facts))
    if not facts["renders_user_turn"]:
        # Every probe failed for the same reason, which is told once.
        findings = tuple(f for f in findings if f.check in _CHECKS_OF_TEXT)
    return LintReport(facts, findings)


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


def _prompts(e: Evidence) -> list[tuple[str, str]]:
    return [(name, outcome.text) for name, outcome in e.outcomes.items() if isinstance(outcome, Rendered)]


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
    "html_escapes": lambda e: any(_HTML_ESCAPE.search(prompt) for _, prompt in _prompts(e)),
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
    if bos and not any(bos in prompt for _, prompt in _prompts(e)):
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
        later = e.outcome(probe, now=_CLOCKS[1])
        if later != e.outcomes[name]:
            yield Finding("depends_on_clock", 13, "warning", {}, e.sample(name), _sample(name, later))
            return


def _foreign_text(e: Evidence, facts: Mapping[str, Fact]) -> Iterator[Finding]:
    """Signs that a value was printed the way HTML or Python would, where the model expects its own form."""
    for name, prompt in _prompts(e):
        escape = _HTML_ESCAPE.search(prompt)
        if escape and escape[0] not in e.text:
            yield Finding("html_escapes", 15, "error", {"found": escape[0]}, e.sample(name))
            break
    for name, prompt in _prompts(e):
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
    for name in sorted(e.kwargs - {*read, *e.names, *templates.PASSED_NAMES, *templates.SPECIAL_TOKEN_NAMES}):
        yield Finding("argument_never_read", 17, "error", {"name": name, "read": read})
    unpassed = [name for name in read if name not in e.kwargs]
    if unpassed:
        yield Finding("variables_not_passed", 17, "info", {"names": unpassed})


def _lost_line_break(e: Evidence, facts: Mapping[str, Fact]) -> Iterator[Finding]:
    if not e.text.endswith(("\n", "\r")):
        return
    kept = e.outcome(probes.PROBES["user_prompt"], e.text + "\n")
    if kept != e.outcomes["user_prompt"]:
        line = len(templates.template_lines(e.text)) - 1
        sides = (e.sample("user_prompt"), _sample("user_prompt", kept))
        yield Finding("final_line_break_lost", 18, "info", {"line": line}, *sides)


def _glued_tokens(e: Evidence, facts: Mapping[str, Fact]) -> Iterator[Finding]:
    """Control tokens side by side because a `{%-` or `{{-` ate the line break that the text has between them."""
    glued = e.outcomes["second_turn"]
    if not isinstance(glued, Rendered):
        return
    for match in list(_GLUED.finditer(e.text))[:_MAX_VARIANTS]:
        side_by_side = re.compile(re.escape(match["token"]) + f"(?:{CONTROL_TOKEN.pattern})")
        count = len(side_by_side.findall(glued.text))
        if not count:
            continue
        apart = e.outcome(probes.PROBES["second_turn"], e.text[: match.start("dash")] + e.text[match.end("dash") :])
        if isinstance(apart, Rendered) and len(side_by_side.findall(apart.text)) < count:
            line = len(templates.template_lines(e.text[: match.start("dash")]))
            sides = (e.sample("second_turn"), _sample("second_turn", apart))
            yield Finding("tokens_glued", 18, "warning", {"token": match["token"], "line": line}, *sides)


def _control_tokens_pass(e: Evidence, facts: Mapping[str, Fact]) -> Iterator[Finding]:
    for token in control_tokens(e.text, e.tokens):
        typed = f"a {token} b"
        outcome = e.outcome(probes.Probe((probes.user(typed),)))
        if isinstance(outcome, Rendered) and typed in outcome.text:
            yield Finding("control_tokens_pass", 20, "info", {"token": token}, _sample("typed_token", outcome))
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


def control_tokens(text: str, tokens: Mapping[str, str]) -> tuple[str, ...]:
    """The model's special tokens and what looks like one in the template, longest first."""
    found = {token for token in tokens.values() if token} | set(CONTROL_TOKEN.findall(text))
    return tuple(sorted(found, key=lambda token: (-len(token), token)))


@dataclass(frozen=True, slots=True)
class TypedToken:
    """A control token inside the text of message `message`: characters `start` to `end` of its `field`."""

    message: int
    field: str
    start: int
    end: int
    token: str


def typed_tokens(
    messages: Iterable[Mapping[str, object]], text: str, tokens: Mapping[str, str]
) -> tuple[TypedToken, ...]:
    """Where messages contain control tokens, which reach the prompt as they are and then mean what they say."""
    known = control_tokens(text, tokens)
    if not known:
        return ()
    pattern = re.compile("|".join(re.escape(token) for token in known))
    return tuple(
        TypedToken(index, name, match.start(), match.end(), match[0])
        for index, message in enumerate(messages)
        for name in ("content", *templates.REASONING_FIELDS)
        if isinstance(value := message.get(name), str)
        for match in pattern.finditer(value)
    )
