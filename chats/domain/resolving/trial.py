"""Is a chat template one of the known formats? (chat-wrappers.md sections 13.3 and 13.4)

A template equals a wrapper if both render a handful of chats alike. Wrappers are tried with the options under which
published templates are known to write as they do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from chats.domain.history_items import FunctionCall, HistoryItem, ModelItem, SystemItem, UserItem
from chats.domain.js_json import ABSENT, json_dumps
from chats.domain.llama_text import LlamaText, Piece, SpecialToken, SpecialTokensText
from chats.domain.output_parsing.vocabulary import Vocabulary, described
from chats.domain.resolving.configurations import CONFIGURATIONS, VENDOR_WORDING, Configuration
from chats.domain.resolving.steps import TemplateBroken
from chats.domain.resolving.wrapper_types import WRAPPER_IDS
from chats.domain.text_splitting import Separator, split_text
from chats.domain.wrapper_settings import ChatWrapperSettings, OpenedOnStart
from chats.domain.wrappers import WRAPPERS
from chats.domain.wrappers.base import ChatWrapper, Clock
from chats.domain.wrappers.context_state import ContextState
from chats.domain.wrappers.jinja import JinjaOptions, JinjaTemplateChatWrapper
from chats.domain.wrappers.jinja.histories import SANITY_HISTORIES
from chats.domain.wrappers.jinja.options import CONVERSION_KEY, DEFAULT_FORMAT, MESSAGE
from chats.domain.wrappers.jinja.rendering import OutOfTime, Render


@dataclass(frozen=True)
class _Rendered:
    """A history, and what a template makes of it, with the names and params of calls as plain text."""

    history: Sequence[HistoryItem]
    context: LlamaText
    stops: Sequence[LlamaText]


@dataclass(frozen=True)
class _Sample:
    """A template's renderings under some options."""

    settings: ChatWrapperSettings
    renderings: Sequence[_Rendered]


class JinjaTrial:
    """Tries one template out. Implements wrapper_resolution.TemplateTrial.

    `render` should go through the bounded workers, and `jinja.rendering.within` some seconds: a trial takes some
    hundred renders of a text somebody typed.
    """

    def __init__(
        self,
        template: str,
        render: Render,
        options: Mapping[str, Any] | None = None,
        special_tokens: Sequence[str] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._options = {**(options or {}), "template": template}
        self._render = render
        self._special_tokens = special_tokens
        self._vocabulary = Vocabulary(special_tokens) if special_tokens is not None else None
        self._clock = clock
        self._samples: dict[str, list[_Sample]] = {}

    def wrapper(self) -> JinjaTemplateChatWrapper:
        """The template as a wrapper of its own. Raises InvalidWrapper or OutOfTime."""
        return self._jinja_wrapper({})

    def check(self) -> None:
        try:
            self.wrapper()
        except (ValueError, OutOfTime) as error:
            raise TemplateBroken(str(error)) from error

    def equal_wrapper(self, types: Iterable[str]) -> tuple[str, Mapping[str, Any]] | None:
        try:
            for wrapper_type in types:
                for configuration in CONFIGURATIONS.get(wrapper_type, (Configuration(),)):
                    if self._equals(wrapper_type, configuration):
                        return wrapper_type, configuration.used
        except OutOfTime as error:
            raise TemplateBroken(str(error)) from error
        return None

    def _equals(self, wrapper_type: str, configuration: Configuration) -> bool:
        samples = self._samples_with(configuration.jinja)
        if not samples:
            return False
        registered = WRAPPERS[WRAPPER_IDS[wrapper_type]]
        options = registered.options(configuration.tried)
        wording = {
            name: LlamaText(text)
            for name, text in VENDOR_WORDING.get(wrapper_type, {}).items()
            if name in registered.wrapper_class.default_wording(options)
        }
        settings = registered.wrapper_class(options).settings
        wrapper = registered.wrapper_class(options, _with_special_calls(settings), wording, self._clock)
        return any(self._sample_equals(sample, wrapper, settings) for sample in samples)

    def _sample_equals(self, sample: _Sample, wrapper: ChatWrapper, settings: ChatWrapperSettings) -> bool:
        if _thought_start(sample.settings) != _thought_start(settings):
            return False
        try:
            return all(self._rendering_equals(rendered, wrapper) for rendered in sample.renderings)
        except (ValueError, TypeError):
            return False

    def _rendering_equals(self, rendered: _Rendered, wrapper: ChatWrapper) -> bool:
        state = wrapper.generate_context_state(rendered.history)
        if not self._same_context(rendered.context, state.context_text):
            return False
        stops = [*state.stop_generation_triggers, *(state.rerender.triggers if state.rerender else ())]
        return all(self._is_stop(trigger, stops) for trigger in rendered.stops)

    def _same_context(self, first: LlamaText, second: LlamaText) -> bool:
        if self._vocabulary is None:
            return _without_bos(first.trim_end()) == _without_bos(second.trim_end())
        vocabulary = self._vocabulary
        pairs = [(one, other) for one in _both_forms(first) for other in _both_forms(second)]
        return any(one == other or vocabulary.tokenize(one) == vocabulary.tokenize(other) for one, other in pairs)

    def _is_stop(self, trigger: LlamaText, known: Sequence[LlamaText]) -> bool:
        forms = (trigger, trigger.trim_end(), trigger.trim_start(), trigger.trim())
        return any(not form or any(self._includes(form, stop) for stop in known) for form in forms)

    def _includes(self, trigger: LlamaText, stop: LlamaText) -> bool:
        if trigger.includes(stop):
            return True
        if self._vocabulary is None:
            return False
        parts = described(self._vocabulary.tokenize(stop))
        return described(self._vocabulary.tokenize(trigger))[: len(parts)] == parts

    def _samples_with(self, jinja: Mapping[str, Any]) -> list[_Sample]:
        key = json_dumps(jinja)
        if key not in self._samples:
            self._samples[key] = list(self._make_samples(jinja))
        return self._samples[key]

    def _make_samples(self, jinja: Mapping[str, Any]) -> Iterable[_Sample]:
        """The template without converting system messages, then with it, unless the options say what to do."""
        chosen = self._options.get(CONVERSION_KEY)
        free = chosen is None or chosen == "auto"
        sample = self._sample({**jinja, CONVERSION_KEY: False if free else chosen}, converted=False)
        if sample is not None:
            yield sample
        if free:
            always = {"use": "always", "format": DEFAULT_FORMAT}
            converted = self._sample({**jinja, CONVERSION_KEY: always}, converted=True)
            if converted is not None:
                yield converted

    def _sample(self, jinja: Mapping[str, Any], converted: bool) -> _Sample | None:
        try:
            wrapper = self._jinja_wrapper(jinja)
            histories = list(SANITY_HISTORIES)
            if wrapper.using_jinja_function_call_template or self._options.get("functionCallMessageTemplate") == "auto":
                histories += _CALL_HISTORIES
            if converted:
                histories = [_systems_as_users(history) for history in histories]
            renderings = [_rendered(wrapper.generate_context_state(history), history) for history in histories]
        except (ValueError, TypeError):
            return None
        return _Sample(wrapper.settings, renderings)

    def _jinja_wrapper(self, jinja: Mapping[str, Any]) -> JinjaTemplateChatWrapper:
        parameters = {
            **(self._options.get("additionalRenderParameters") or {}),
            **(jinja.get("additionalRenderParameters") or {}),
        }
        options: dict[str, Any] = {**jinja, **self._options}
        if CONVERSION_KEY in jinja:
            options[CONVERSION_KEY] = jinja[CONVERSION_KEY]
        if parameters:
            options["additionalRenderParameters"] = parameters
        return JinjaTemplateChatWrapper(
            JinjaOptions.model_validate(options),
            self._render,
            clock=self._clock,
            special_tokens=self._special_tokens,
        )


def _rendered(state: ContextState, history: Sequence[HistoryItem]) -> _Rendered:
    return _Rendered(history, _with_plain_calls(state.context_text, history), state.stop_generation_triggers)


def _with_plain_calls(text: LlamaText, history: Sequence[HistoryItem]) -> LlamaText:
    """Names and params of calls are what a chat says, so they're plain even where a template wrote them."""
    contents: list[str] = []
    for item in history:
        for entry in item.response if isinstance(item, ModelItem) else ():
            if isinstance(entry, FunctionCall):
                contents.append(entry.name)
                if entry.params is not ABSENT and entry.params != "":
                    contents.append(json_dumps(entry.params))
    if not contents:
        return text
    pieces: list[Piece] = []
    for piece in text.values:
        if not isinstance(piece, SpecialTokensText):
            pieces.append(piece)
            continue
        parts = split_text(piece.value, list(dict.fromkeys(contents)))
        pieces += [part.text if isinstance(part, Separator) else SpecialTokensText(part) for part in parts]
    return LlamaText.of(pieces)


_KEPT_MARKERS: Final = ("{{functionName}}", "{{functionParams}}")


def _with_special_calls(settings: ChatWrapperSettings) -> ChatWrapperSettings:
    """The settings with the plain text around calls and results as special text; markers stay plain."""
    json = settings.to_json()
    functions = json["functions"]
    parallelism = functions.get("parallelism") or {}
    places = [
        *[(functions["call"], key, ()) for key in ("prefix", "paramsPrefix", "suffix")],
        *[(functions["result"], key, _KEPT_MARKERS) for key in ("prefix", "suffix")],
        *[(parallelism.get("call", {}), key, ()) for key in ("sectionPrefix", "betweenCalls", "sectionSuffix")],
        *[(parallelism.get("result", {}), key, ()) for key in ("sectionPrefix", "betweenResults", "sectionSuffix")],
    ]
    for part, key, kept in places:
        if key in part:
            part[key] = _special(LlamaText.from_json(part[key]), kept).to_json()
    return ChatWrapperSettings.from_json(json)


def _special(text: LlamaText, kept: Sequence[str]) -> LlamaText:
    pieces: list[Piece] = []
    for piece in text.values:
        if not isinstance(piece, str):
            pieces.append(piece)
            continue
        parts = split_text(piece, kept)
        pieces += [part.text if isinstance(part, Separator) else SpecialTokensText(part) for part in parts]
    return LlamaText.of(pieces)


def _thought_start(settings: ChatWrapperSettings) -> str | bool:
    """How a thought opens at the start of an answer."""
    thought = settings.segments.thought if settings.segments else None
    if thought is not None and isinstance(thought.prefix, OpenedOnStart):
        return thought.prefix.type
    return bool(thought is not None and thought.open_on_response_start)


def _without_bos(text: LlamaText) -> LlamaText:
    values = text.values
    return LlamaText.of(values[1:]) if values and values[0] == SpecialToken("BOS") else text


def _both_forms(text: LlamaText) -> list[LlamaText]:
    trimmed = text.trim_end()
    bare = _without_bos(trimmed)
    return [trimmed] if bare == trimmed else [trimmed, bare]


def _systems_as_users(history: Sequence[HistoryItem]) -> list[HistoryItem]:
    """As the Jinja wrapper converts systems, but the first one goes into a user item that follows it."""
    items: list[HistoryItem] = []
    for item in history:
        if isinstance(item, SystemItem):
            items.append(UserItem(str(LlamaText.join(item.text, DEFAULT_FORMAT.split(MESSAGE)))))
        elif len(items) == 1 and isinstance(history[0], SystemItem) and isinstance(item, UserItem):
            first = items.pop()
            assert isinstance(first, UserItem)
            items.append(UserItem(f"{first.text}\n\n{item.text}"))
        else:
            items.append(item)
    return items


def _call_histories() -> list[list[HistoryItem]]:
    before, second_user = SANITY_HISTORIES[2][:3], SANITY_HISTORIES[2][3]
    answer, end = SANITY_HISTORIES[3][4], SANITY_HISTORIES[1][2]
    assert isinstance(answer, ModelItem)
    assert isinstance(end, ModelItem)
    last = str(end.response[0]).replace("Result ", "Result3 ")
    calls = [
        FunctionCall(f"func{number}name", {"param1": f"value{number}"}, f"func{number}result") for number in (1, 2)
    ]
    return [[*before, second_user, ModelItem((*answer.response, *calls[:count], last))] for count in (1, 2)]


_CALL_HISTORIES: Final = _call_histories()
