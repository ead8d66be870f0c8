"""Finding out how a chat template writes thoughts (chat-wrappers.md section 12.7)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from chats.domain.js_json import js_trim
from chats.domain.llama_text import LlamaText, SpecialTokensText
from chats.domain.wrapper_settings import OpenedOnStart, ThoughtSegment
from chats.domain.wrappers.jinja.rendering import Placeholders, TemplateRenderer, attempt, first_success

_KNOWN_PAIRS = {
    "<think>": "</think>",
    "<thought>": "</thought>",
    "[THINK]": "[/THINK]",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|begin_of_thought|>": "<|end_of_thought|>",
}

_Message = dict[str, Any]
_Composition = Literal["simple", "reasoning first", "reasoning first without content"]


@dataclass(frozen=True)
class FoundSegments:
    """What was found: the thought's settings, if any, and whether thoughts of earlier answers are left out."""

    thought: ThoughtSegment | None
    keep_only_last_thought: bool


@dataclass(frozen=True)
class _Tags:
    """Texts around a thought; the prefix is None if the template opens the thought itself."""

    prefix: str | None
    suffix: str


def find_segments(
    renderer: TemplateRenderer, placeholders: Placeholders, reasoning: bool, special_tokens: Sequence[str] | None
) -> FoundSegments:
    """By rendering, then by the tags in the template's text, then by the tokens of the vocabulary."""
    probe = _Probe(renderer, placeholders)
    tags = attempt(probe.tags)
    if tags is None or (tags.prefix is not None and not js_trim(tags.prefix)):
        return FoundSegments(_by_text(renderer.template, special_tokens), True)
    keeps_past = bool(attempt(probe.keeps_past_reasoning))
    suffix: str | None = tags.suffix
    if not js_trim(tags.suffix):
        suffix = _KNOWN_PAIRS.get(js_trim(tags.prefix)) if tags.prefix is not None else None
    opens: bool | None = True
    if tags.prefix is not None:
        prefix = tags.prefix
        opens = attempt(lambda: probe.opens_on_response_start(prefix, tags.suffix, reasoning))
    return FoundSegments(_thought(tags, suffix, opens), not keeps_past)


def _thought(tags: _Tags, suffix: str | None, opens: bool | None) -> ThoughtSegment:
    """Absent values are keys that aren't given."""
    given: dict[str, Any] = {
        "prefix": OpenedOnStart(type="openedOnStart") if tags.prefix is None else _special(tags.prefix),
        "reopen_after_function_calls": tags.prefix is None,
    }
    if suffix is not None:
        given["suffix"] = _special(suffix)
    if opens is not None:
        given["open_on_response_start"] = opens
    return ThoughtSegment(**given)


def _special(text: str) -> LlamaText:
    return LlamaText(SpecialTokensText(text))


def _by_text(template: str, special_tokens: Sequence[str] | None) -> ThoughtSegment | None:
    for prefix, suffix in _KNOWN_PAIRS.items():
        for breaks in ("\n\n", "\n"):
            spellings = (breaks.replace("\n", "\\n"), breaks)
            if any(_occur_apart(template, prefix, spelling, suffix) for spelling in spellings):
                return ThoughtSegment(prefix=_special(prefix + breaks), suffix=_special(breaks + suffix))
        if prefix in template and suffix in template:
            return ThoughtSegment(prefix=_special(prefix), suffix=_special(suffix))
    for prefix, suffix in _KNOWN_PAIRS.items():
        if special_tokens is not None and prefix in special_tokens and suffix in special_tokens:
            return ThoughtSegment(prefix=_special(prefix), suffix=_special(suffix))
    return None


def _occur_apart(template: str, prefix: str, breaks: str, suffix: str) -> bool:
    """Whether both tags have the line breaks on their inner side somewhere besides an empty thought."""
    rest = template.replace(prefix + breaks + suffix, "")
    return prefix + breaks in rest and breaks + suffix in rest


class _Probe:
    """Renders the same chats with and without a reasoning."""

    def __init__(self, renderer: TemplateRenderer, placeholders: Placeholders) -> None:
        self._renderer = renderer
        make = placeholders.make
        self._tokens = {"bos_token": make(), "eos_token": make(), "eot_token": make()}
        self._user, self._answer, self._reasoning = make(), make(), make()
        self._first_answer, self._later_answer, self._later_reasoning = make(), make(), make()
        self._second_user = {"role": "user", "content": make()}
        self._base: list[_Message] = [
            {"role": "system", "content": make()},
            {"role": "user", "content": self._user},
        ]
        self._long_base = [*self._base, _assistant(self._first_answer), self._second_user]

    def _render(self, messages: Sequence[_Message], **variables: Any) -> str:
        return first_success(
            [
                lambda: self._renderer(messages, self._tokens, **variables),
                lambda: self._renderer(messages[1:], self._tokens, **variables),
            ]
        )

    def tags(self) -> _Tags | None:
        plain, long, short = first_success(
            [
                lambda make=make, variables=variables: make(variables)  # type: ignore[misc]
                for variables in ({"enable_thinking": True}, {})
                for make in self._comparisons()
            ]
        )
        answer_at = plain.find(self._first_answer)
        if plain == long or answer_at < 0:
            return None
        opened = plain[:answer_at] != short[:answer_at]
        reasoning_at = short.find(self._reasoning, 0 if opened else answer_at)
        if reasoning_at < 0 or (opened and plain[:reasoning_at] != short[:reasoning_at]):
            return None
        reasoning_end = reasoning_at + len(self._reasoning)
        next_answer = short.find(self._answer, reasoning_end)
        if next_answer < 0:
            return None
        return _Tags(None if opened else short[answer_at:reasoning_at], short[reasoning_end:next_answer])

    def _comparisons(self) -> Iterator[Callable[[dict[str, Any]], tuple[str, str, str]]]:
        """Ways to attach a reasoning: each renders a long chat without, and a long and a short one with it."""
        alone = {"role": "assistant", "reasoning_content": self._reasoning}
        answer = _assistant(self._answer)
        with_reasoning = {**answer, "reasoning_content": self._reasoning}
        empty = _assistant("")
        ways: list[tuple[list[_Message], list[_Message]]] = [
            ([answer], [with_reasoning]),
            ([answer, empty], [answer, {**alone, "content": ""}]),
            ([answer, empty], [answer, alone]),
            ([answer], [{**alone, "content": ""}, answer]),
            ([answer], [alone, answer]),
        ]
        for without, with_it in ways:

            def compare(
                variables: dict[str, Any],
                without: list[_Message] = without,
                with_it: list[_Message] = with_it,
            ) -> tuple[str, str, str]:
                return (
                    self._render([*self._long_base, *without], **variables),
                    self._render([*self._long_base, *with_it], **variables),
                    self._render([*self._base, *with_it], **variables),
                )

            yield compare

    def keeps_past_reasoning(self) -> bool:
        """Whether both reasonings of two turns show."""
        compositions: tuple[_Composition, ...] = ("simple", "reasoning first", "reasoning first without content")
        rendered = first_success(
            [
                lambda composition=composition, variables=variables: self._render(  # type: ignore[misc]
                    [
                        *self._base,
                        *_reasoned(self._answer, self._reasoning, composition),
                        self._second_user,
                        *_reasoned(self._later_answer, self._later_reasoning, composition),
                    ],
                    **variables,
                )
                for variables in ({"enable_thinking": True}, {})
                for composition in compositions
            ]
        )
        return self._reasoning in rendered and self._later_reasoning in rendered

    def opens_on_response_start(self, prefix: str, suffix: str, reasoning: bool) -> bool:
        """Whether the generation prompt opens a thought, and not just an empty one."""
        if not reasoning:
            return False
        plain, prompted = first_success(
            [
                lambda variables=variables: (  # type: ignore[misc]
                    self._render(self._base, **variables),
                    self._render(self._base, add_generation_prompt=True, **variables),
                )
                for variables in ({"enable_thinking": True}, {})
            ]
        )
        user_at, prompted_user_at = plain.find(self._user), prompted.find(self._user)
        if plain == prompted or user_at < 0 or prompted_user_at < 0:
            return False
        prefix_at = prompted.find(prefix, prompted_user_at)
        if plain.find(prefix, user_at) >= 0 or prefix_at < 0:
            return False
        suffix_at = prompted.find(suffix, prefix_at)
        return suffix_at < 0 or bool(js_trim(prompted[prefix_at + len(prefix) : suffix_at]))


def _assistant(content: str) -> _Message:
    return {"role": "assistant", "content": content}


def _reasoned(answer: str, reasoning: str, composition: _Composition) -> list[_Message]:
    if composition == "simple":
        return [{**_assistant(answer), "reasoning_content": reasoning}]
    alone: _Message = {"role": "assistant", "reasoning_content": reasoning}
    if composition == "reasoning first":
        alone = {"role": "assistant", "content": "", "reasoning_content": reasoning}
    return [alone, _assistant(answer)]
