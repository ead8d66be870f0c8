"""Finding out how a chat template writes function calls and results (chat-wrappers.md section 12.6).

Short chats are rendered in which every content is an id; what the template put between the ids is its syntax.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from chats.domain.history_items import FunctionCall, Functions, HistoryItem, ModelItem, SystemItem, UserItem
from chats.domain.js_json import JS_WHITESPACE
from chats.domain.llama_text import LlamaText, Piece, SpecialToken, SpecialTokensText
from chats.domain.wrapper_settings import (
    CallSettings,
    FunctionsSettings,
    ParallelCallSettings,
    ParallelismSettings,
    ParallelResultSettings,
    ResultSettings,
)
from chats.domain.wrappers.jinja.rendering import Placeholders, attempt

PARAMS_KEY = "params"
_FUNCTION_NAME = "{{functionName}}"
_FUNCTION_PARAMS = "{{functionParams}}"


@dataclass(frozen=True)
class ToolName:
    """The `name` of tool messages: `value`, tried first, or only if a render without a name fails."""

    value: bool | str
    only_if_needed: bool = False


@dataclass(frozen=True)
class CallRequest:
    """A chat to render with calls in it, and how they're told to the template."""

    history: Sequence[HistoryItem]
    functions: Functions
    tokens: Mapping[str, str]
    params_as_text: bool
    results_as_text: bool
    calls_share_message: bool
    tool_name: ToolName
    join_texts: bool = True


RenderCalls: TypeAlias = Callable[[CallRequest], str]


@dataclass(frozen=True)
class FoundCalls:
    """The syntax, or None if it can't be told, and what the template expects of calls."""

    settings: FunctionsSettings | None
    params_as_text: bool = False
    results_as_text: bool = False
    calls_share_message: bool = True


class _ContentInSyntax(ValueError):
    """The template wrote a content where only syntax was expected."""


def needs_params_key(render: RenderCalls, placeholders: Placeholders) -> bool:
    """Whether the template shows params only if they're an object, so that other ones are wrapped in `params`."""
    make = placeholders.make
    name, value = make(), make(digits=True)
    tokens = {"bos_token": make(), "eos_token": make(), "eot_token": make()}

    def shows(params: Any, schema: dict[str, Any]) -> bool:
        call = FunctionCall(name, params, make(), starts_new_chunk=True)
        answer = ModelItem((make(), call, make()))
        history: list[HistoryItem] = [SystemItem(LlamaText(make())), UserItem(make()), answer]
        functions = {name: {"description": make(), "params": schema}}
        request = CallRequest(history, functions, tokens, False, False, False, ToolName(True, only_if_needed=True))
        return value in (attempt(lambda: render(request)) or "")

    if shows(value, {"type": "string"}):
        return False
    return shows({PARAMS_KEY: value}, {"type": "object", "properties": {PARAMS_KEY: {"type": "string"}}})


def find_calls(render: RenderCalls, placeholders: Placeholders, examine_non_first: bool = False) -> FoundCalls:
    """The template's syntax for calls. Raises ValueError if the template can't render them or mixes things up."""
    return _Probe(render, placeholders, examine_non_first).found()


class _Probe:
    def __init__(self, render: RenderCalls, placeholders: Placeholders, examine_non_first: bool) -> None:
        make = placeholders.make
        self._render_request = render
        self._bos, self._eos, self._eot = make(), make(), make()
        self._system, self._user, self._text_1, self._text_2 = make(), make(), make(), make()
        self._name_1, self._name_2 = make(), make()
        self._params_1, self._params_2 = make(digits=True), make(digits=True)
        self._result_1, self._result_2 = make(digits=True), make(digits=True)
        self._key = make()
        self._tool_name = make()
        number = {"type": "number"}
        self._one_function = {self._name_1: {"description": make(), "params": number}}
        self._two_functions = {**self._one_function, self._name_2: {"description": make(), "params": number}}
        self._ending: list[HistoryItem] = [UserItem("Hi"), ModelItem(("Hey",))] if examine_non_first else []
        self._params_as_text = self._results_as_text = self._share = True
        self._special: dict[str, Piece] = {
            self._bos: SpecialToken("BOS"),
            self._eos: SpecialToken("EOS"),
            self._eot: SpecialToken("EOT"),
        }
        self._contents = [
            self._system,
            self._user,
            self._text_1,
            self._text_2,
            self._name_1,
            self._name_2,
            self._params_1,
            self._params_2,
            self._result_1,
            self._result_2,
            self._key,
        ]
        self._placeholders = placeholders

    def _history(self, *entries: str | FunctionCall) -> list[HistoryItem]:
        return [SystemItem(LlamaText(self._system)), UserItem(self._user), ModelItem(entries), *self._ending]

    def _call(self, number: int, new_chunk: bool = True) -> FunctionCall:
        name, params, result = (
            (self._name_1, self._params_1, self._result_1)
            if number == 1
            else (self._name_2, self._params_2, self._result_2)
        )
        # Numbers, so that they print without quotes and escapes.
        return FunctionCall(name, int(params), int(result), starts_new_chunk=new_chunk)

    def _render(
        self, history: Sequence[HistoryItem], functions: Functions, tool_name: ToolName | None = None, **changes: Any
    ) -> str:
        tokens = {"bos_token": self._bos, "eos_token": self._eos, "eot_token": self._eot}
        asked: dict[str, Any] = {
            "params_as_text": self._params_as_text,
            "results_as_text": self._results_as_text,
            "calls_share_message": self._share,
            "tool_name": tool_name or ToolName(self._tool_name, only_if_needed=True),
            **changes,
        }
        return self._render_request(CallRequest(history, functions, tokens, **asked))

    def found(self) -> FoundCalls:
        self._find_forms()
        one_call = self._history(self._text_1, self._call(1), self._text_2)
        self._share = self._text_1 in self._render(one_call, self._one_function)
        between_texts = LlamaText() if self._share else attempt(self._between_texts) or LlamaText()
        tool_name = ToolName(self._tool_name, only_if_needed=not self._writes_tool_name(one_call))
        one = self._render(one_call, self._one_function, tool_name)
        only = attempt(lambda: self._render(self._history(self._call(1), self._text_2), self._one_function, tool_name))
        two, new_chunk = self._two_calls(tool_name)
        settings = self._settings(one, only, two, new_chunk, between_texts)
        return FoundCalls(settings, self._params_as_text, self._results_as_text, self._share)

    def _two_calls(self, tool_name: ToolName) -> tuple[str, bool]:
        """A render with two calls, and whether they had to be in chunks of their own."""

        def rendered(new_chunk: bool) -> str:
            history = self._history(self._text_1, self._call(1), self._call(2, new_chunk), self._text_2)
            return self._render(history, self._two_functions, tool_name)

        together = attempt(lambda: rendered(False))
        return (together, False) if together is not None else (rendered(True), True)

    def _find_forms(self) -> None:
        """Are params and results to be objects or JSON texts? (step 1)"""

        def as_text(params: Any, result: Any, key: str) -> bool:
            call = FunctionCall(self._name_1, params, result, starts_new_chunk=True)
            history = self._history(self._text_1, call, self._text_2)[:3]
            rendered = attempt(
                lambda: self._render(
                    history, self._one_function, params_as_text=False, results_as_text=False, calls_share_message=True
                )
            )
            return rendered is None or (f'"{key}":' not in rendered and f"'{key}':" not in rendered)

        other = self._placeholders.make()
        self._contents.append(other)
        params_as_text = as_text({self._key: "test"}, other, self._key)
        self._results_as_text = as_text(self._key, {other: "test"}, other)
        self._params_as_text = params_as_text

    def _between_texts(self) -> LlamaText:
        base = self._history()[:2]
        history = [*base, ModelItem((self._text_1,)), ModelItem((self._text_2,))]
        rendered = self._render(history, {}, params_as_text=False, results_as_text=False, join_texts=False)
        between = _Cuts(rendered).between(self._text_1, self._text_2)
        return self._revived(between or "")

    def _writes_tool_name(self, one_call: Sequence[HistoryItem]) -> bool:
        """Whether the tool message's name shows in the output and nothing else changes (step 3)."""
        without = attempt(lambda: self._render(one_call, self._one_function, ToolName(False)))
        with_name = attempt(lambda: self._render(one_call, self._one_function, ToolName(self._tool_name)))
        return with_name is not None and with_name.replace(self._tool_name, "") == without

    def _settings(
        self, one: str, only: str | None, two: str, new_chunk: bool, between_texts: LlamaText
    ) -> FunctionsSettings | None:
        cuts = _Cuts(two)
        before_call = cuts.between(self._text_1, self._name_1)
        after_text = cuts.at
        params_prefix = cuts.between(self._name_1, self._params_1)
        first_result = two.find(self._result_1, cuts.at)
        second_name = two.find(self._name_2, after_text)
        if before_call is None or params_prefix is None or first_result < 0 or second_name < 0:
            return None
        if first_result < second_name or new_chunk:
            return self._serial(one, between_texts)
        between_calls = cuts.between(self._params_1, self._name_2)
        after_calls = cuts.between(self._params_2, self._result_1)
        between_results = cuts.between(self._result_1, self._result_2)
        after_results = cuts.between(self._result_2, self._text_2)
        if between_calls is None or after_calls is None or between_results is None or after_results is None:
            return None
        parts = _parallel_parts(before_call, between_calls, after_calls, between_results, after_results)
        return self._parallel(parts, params_prefix, one, only, between_texts)

    def _serial(self, one: str, between_texts: LlamaText) -> FunctionsSettings | None:
        cuts = _Cuts(one)
        prefix = cuts.between(self._text_1, self._name_1)
        params_prefix = cuts.between(self._name_1, self._params_1)
        result_prefix = cuts.between(self._params_1, self._result_1)
        result_suffix = cuts.between(self._result_1, self._text_2)
        if not prefix or params_prefix is None or result_prefix is None or result_suffix is None:
            return None
        return FunctionsSettings(
            call=CallSettings(
                optional_prefix_space=True,
                prefix=_without_common_start(self._revived(prefix), between_texts),
                params_prefix=self._revived(params_prefix),
                suffix=LlamaText(),
                empty_call_params_placeholder={},
            ),
            result=self._result_settings(result_prefix, result_suffix),
        )

    def _parallel(
        self, parts: _ParallelParts, params_prefix: str, one: str, only: str | None, between_texts: LlamaText
    ) -> FunctionsSettings:
        call_suffix_text, results_start = self._section_border(parts.between_sections)
        prefix = self._revived(parts.call_prefix)
        section_prefix = _without_common_start(self._revived(parts.section_prefix), between_texts)
        between_calls = self._revived(parts.between_calls)
        if not section_prefix and only is not None:
            optional = self._optional_prefix(prefix, one, only)
            if optional:
                prefix = _without_common_start(prefix, optional)
                between_calls = LlamaText(optional, between_calls)
        space, prefix = _space_apart(prefix)
        section_space, section_rest = _space_apart(LlamaText(section_prefix, space))
        named = {self._name_1: _FUNCTION_NAME}
        call: dict[str, Any] = {
            "section_prefix": LlamaText(section_space, section_rest),
            "between_calls": LlamaText(between_calls, space),
            "section_suffix": self._revived(call_suffix_text),
        }
        if section_space:
            call["section_prefix_alternate_matches"] = (section_rest,)
        return FunctionsSettings(
            call=CallSettings(
                optional_prefix_space=True,
                prefix=prefix,
                params_prefix=self._revived(params_prefix, named),
                suffix=self._revived(parts.call_suffix, named),
                empty_call_params_placeholder={},
            ),
            result=self._result_settings(parts.result_prefix, parts.result_suffix),
            parallelism=ParallelismSettings(
                call=ParallelCallSettings(**call),
                result=ParallelResultSettings(
                    section_prefix=self._revived(results_start),
                    between_results=self._revived(parts.between_results),
                    section_suffix=self._revived(parts.results_suffix),
                ),
            ),
        )

    def _result_settings(self, prefix: str, suffix: str) -> ResultSettings:
        names = {self._name_1: _FUNCTION_NAME, self._params_1: _FUNCTION_PARAMS, self._tool_name: _FUNCTION_NAME}
        return ResultSettings(prefix=self._revived(prefix, names), suffix=self._revived(suffix, names))

    def _section_border(self, text: str) -> tuple[str, str]:
        """Where the section of calls ends: after EOS, else before BOS, else at the end."""
        if (end := text.find(self._eos)) >= 0:
            border = end + len(self._eos)
        elif (start := text.find(self._bos)) >= 0:
            border = start
        else:
            border = len(text)
        return text[:border], text[border:]

    def _optional_prefix(self, prefix: LlamaText, one: str, only: str) -> LlamaText:
        """The part of the prefix that is missing when a call comes first in an answer (step 7)."""
        before_text = _Cuts(one).between(self._user, self._text_1)
        before_call = _Cuts(only).between(self._user, self._name_1)
        if before_text is None or before_call is None:
            return LlamaText()
        alone = self._revived(before_call[_common_start(before_text, before_call) :])
        return _without_common_end(prefix, alone)

    def _revived(self, text: str, parameters: Mapping[str, str] | None = None) -> LlamaText:
        """The template's text as special text; ids of tokens as tokens, those of names and params as markers."""
        pieces: list[Piece] = []
        for index, part in enumerate(self._placeholders.split(text)):
            if index % 2 == 0:
                pieces.append(SpecialTokensText(part))
            elif parameters is not None and part in parameters:
                pieces.append(parameters[part])
            elif part in self._special:
                pieces.append(self._special[part])
            elif part in self._contents:
                raise _ContentInSyntax("a content stands where only syntax was expected")
            else:
                pieces.append(SpecialTokensText(part))
        return LlamaText.of(pieces)


class _Cuts:
    """Cuts texts between ids out of a rendering, going on from the last one found."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.at = 0

    def between(self, start: str, end: str) -> str | None:
        """The text after the next `start` up to the next `end`, where the following search begins; None if missing."""
        start_at = self._text.find(start, max(self.at, 0))
        end_at = self._text.find(end, start_at + len(start)) if start_at >= 0 else -1
        self.at = end_at
        return None if end_at < 0 else self._text[start_at + len(start) : end_at]


@dataclass(frozen=True)
class _ParallelParts:
    call_prefix: str
    section_prefix: str
    call_suffix: str
    between_calls: str
    between_sections: str
    result_prefix: str
    result_suffix: str
    between_results: str
    results_suffix: str


def _parallel_parts(
    before_call: str, between_calls: str, after_calls: str, between_results: str, after_results: str
) -> _ParallelParts:
    """Tell the parts of a section apart by what its repetitions have in common (step 6)."""
    prefix_length = _common_end(before_call, between_calls)
    before_next = between_calls[: len(between_calls) - prefix_length]
    call_suffix = before_next[: _common_start(before_next, after_calls)]
    rest = after_calls[len(call_suffix) :]
    result_prefix_length = _common_end(rest, between_results)
    before_result = between_results[: len(between_results) - result_prefix_length]
    result_suffix = before_result[: _common_start(before_result, after_results)]
    return _ParallelParts(
        call_prefix=between_calls[len(before_next) :],
        section_prefix=before_call[: len(before_call) - prefix_length],
        call_suffix=call_suffix,
        between_calls=before_next[len(call_suffix) :],
        between_sections=rest[: len(rest) - result_prefix_length],
        result_prefix=rest[len(rest) - result_prefix_length :],
        result_suffix=result_suffix,
        between_results=before_result[len(result_suffix) :],
        results_suffix=after_results[len(result_suffix) :],
    )


def _common_start(first: str, second: str) -> int:
    """How many characters two texts begin with in common."""
    shorter = min(len(first), len(second))
    return next((index for index in range(shorter) if first[index] != second[index]), shorter)


def _common_end(first: str, second: str) -> int:
    return _common_start(first[::-1], second[::-1])


def _without_common_start(text: LlamaText, other: LlamaText) -> LlamaText:
    """The text without what it begins with in common with another one."""
    values = text.values
    for index, (here, there) in enumerate(zip(values, other.values, strict=False)):
        if here == there:
            continue
        rest: list[Piece] = list(values[index:])
        if isinstance(here, SpecialTokensText) and isinstance(there, SpecialTokensText):
            common = _common_start(here.value, there.value)
            rest[0] = SpecialTokensText(here.value[common:])
        return LlamaText.of(rest)
    return LlamaText.of(values[len(other.values) :])


def _without_common_end(text: LlamaText, other: LlamaText) -> LlamaText:
    """The text without what it ends with in common with another one."""
    values = text.values
    for index, (here, there) in enumerate(zip(reversed(values), reversed(other.values), strict=False)):
        if here == there:
            continue
        rest: list[Piece] = list(values[: len(values) - index])
        if isinstance(here, SpecialTokensText) and isinstance(there, SpecialTokensText):
            rest[-1] = SpecialTokensText(here.value[: len(here.value) - _common_end(here.value, there.value)])
        return LlamaText.of(rest)
    return LlamaText.of(values[: max(0, len(values) - len(other.values))])


def _space_apart(text: LlamaText) -> tuple[LlamaText, LlamaText]:
    """The white space at the start, and the rest."""
    rest = text.trim_start()
    if not rest:
        return text, rest
    skipped = len(text.values) - len(rest.values)
    space: list[Piece] = list(text.values[:skipped])
    first = text.values[skipped]
    if not isinstance(first, SpecialToken):
        value = str(first)
        blank = value[: len(value) - len(value.lstrip(JS_WHITESPACE))]
        space.append(blank if isinstance(first, str) else SpecialTokensText(blank))
    return LlamaText.of(space), rest
