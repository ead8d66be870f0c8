"""A chat wrapper made from a chat template (chat-wrappers.md section 12).

The template is rendered with placeholders instead of contents, and the result is cut at them again: contents stay plain
text, and everything the template wrote becomes special text. How the template writes calls and thoughts is found out
by rendering short chats. The dialect is the product's own Jinja (`jinja_templates`); where the original's engine
differs from jinja2, so do the results.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, cast

from pydantic import Field

from chats.domain.history_items import (
    FunctionCall,
    Functions,
    HistoryItem,
    ModelItem,
    ResponseEntry,
    Segment,
    SystemItem,
    UserItem,
    is_thought,
)
from chats.domain.jinja_templates import Profile
from chats.domain.js_json import ABSENT, js_trim, json_dumps, json_string, replace_marker
from chats.domain.llama_text import LlamaText, Piece, SpecialToken, SpecialTokensText
from chats.domain.openai_format import Conversion, Message, to_messages, to_tools
from chats.domain.wording import Wording
from chats.domain.wrapper_settings import (
    BASE_SETTINGS,
    ChatWrapperSettings,
    FunctionsSettings,
    OpenedOnStart,
    SegmentsSettings,
)
from chats.domain.wrappers.base import ChatWrapper, Clock, InvalidWrapper, WrapperOptions, option_to_json
from chats.domain.wrappers.context_state import ContextState
from chats.domain.wrappers.jinja_calls import PARAMS_KEY, CallRequest, find_calls, needs_params_key
from chats.domain.wrappers.jinja_rendering import (
    Placeholders,
    Render,
    TemplateFailed,
    TemplateRenderer,
    first_success,
)
from chats.domain.wrappers.jinja_segments import find_segments
from chats.domain.wrappers.pieces import texts
from chats.domain.wrappers.template import (
    FunctionCallTemplate,
    SegmentTemplates,
    function_call_settings,
    segment_settings,
)

MESSAGE: Final = "{{message}}"
DEFAULT_FORMAT: Final = "### System message\n\n{{message}}\n\n----"
_SAME_CALL_ID = "fc_1_0001"
_ID_ENTRY = r'"(?:tool_call_id|call_id|id)":\s*"' + _SAME_CALL_ID + '"'
_ID_ENTRIES = (re.compile(r",\s*" + _ID_ENTRY), re.compile(_ID_ENTRY + r"\s*,"))
_START_TEXTS = texts(" ", "  ", "   ", "    ", "\t", "\t\t", "\t ", " \t")
_PUNCTUATION = "1234567890!@#$%^&*()_+-=[]{}|\\:;\"',./<>?`~"


class SystemConversion(WrapperOptions):
    """How system messages become user messages for templates that have none."""

    format: str = DEFAULT_FORMAT
    use: Literal["ifNeeded", "always"] = "ifNeeded"


class JinjaOptions(WrapperOptions):
    """Section 12.1. The two internal ones are for comparing templates with wrappers."""

    template: str
    reasoning: bool | None = True
    model_role_name: str = "assistant"
    user_role_name: str = "user"
    system_role_name: str = "system"
    convert_unsupported_system_messages_to_user_messages: bool | Literal["auto"] | SystemConversion = SystemConversion()
    function_call_message_template: Literal["auto", "noJinja"] | FunctionCallTemplate = "auto"
    join_adjacent_messages_of_the_same_type: bool = True
    trim_leading_whitespace_in_responses: bool = True
    keep_only_last_thought: bool | None = None
    additional_render_parameters: dict[str, Any] | None = None
    segments: SegmentTemplates | None = None
    require_calls: bool = Field(default=False, alias="_requireFunctionCallSettingsExtraction")
    examine_non_first: bool = Field(default=False, alias="_functionCallExtractionExamineNonFirst")


@dataclass(frozen=True)
class _Way:
    """One combination of alternatives to render a history with (section 12.2)."""

    format: str | None
    end_with_user: bool
    embedded_tools: bool = False


@dataclass(frozen=True)
class _Made:
    """A rendered history and what was necessary for it."""

    state: ContextState
    way: _Way
    converted: bool


class JinjaTemplateChatWrapper(ChatWrapper):
    """Renders with a chat template. Building one renders some dozens of short chats through `render`.

    Raises InvalidWrapper if the template can't render simple chats, and jinja_rendering.OutOfTime if a bound of the
    renderer was reached.
    """

    wrapper_name = "JinjaTemplate"
    options_model = JinjaOptions
    options: JinjaOptions
    shown_options = (
        "template",
        "reasoning",
        "model_role_name",
        "user_role_name",
        "system_role_name",
        "join_adjacent_messages_of_the_same_type",
        "trim_leading_whitespace_in_responses",
        "additional_render_parameters",
    )

    def __init__(
        self,
        options: JinjaOptions,
        render: Render,
        settings: ChatWrapperSettings | None = None,
        wording: Wording | None = None,
        clock: Clock | None = None,
        special_tokens: Sequence[str] | None = None,
        profile: Profile = "current",
    ) -> None:
        self.conversion = _conversion(options.convert_unsupported_system_messages_to_user_messages)
        self._renderer = TemplateRenderer(options.template, render, options.additional_render_parameters or {}, profile)
        self.using_jinja_function_call_template = False
        self.stringify_function_params = False
        self.stringify_function_result = False
        self.wrap_function_params_inside_map_key: str | None = None
        self.combine_jinja_model_message_and_tool_calls = True
        self.end_jinja_messages_with_user_message = False
        self.keep_only_last_thought = False
        segments = SegmentsSettings.model_validate(segment_settings(options.segments))
        super().__init__(options, BASE_SETTINGS.model_copy(update={"segments": segments}), wording, clock)
        supports_system = self._check_sanity()
        self._find_syntax(segments, supports_system, special_tokens)
        if settings is not None:
            self.settings = settings
        self._prepare()

    def check_options(self) -> None:
        if self.conversion is not None and MESSAGE not in self.conversion.format:
            raise InvalidWrapper('convertUnsupportedSystemMessagesToUserMessages format must include "{{message}}"')

    # Construction

    def _check_sanity(self) -> bool:
        """Whether system messages are supported. Finds out whether chats have to end with a user message."""
        supports_system = True
        try:
            for index, history in enumerate(SANITY_HISTORIES):
                ends = [True] if self.end_jinja_messages_with_user_message else [False, True]
                made = self._make(history, None, True, ends)
                if made.converted:
                    supports_system = False
                if made.way.end_with_user and not self.end_jinja_messages_with_user_message:
                    self.end_jinja_messages_with_user_message = True
                    if index:
                        # The earlier ones must do with it, too.
                        return self._check_sanity()
        except (ValueError, TypeError) as error:
            raise InvalidWrapper(
                f"The provided Jinja template failed the sanity test: {error}. "
                "Inspect the Jinja template to find out what went wrong"
            ) from error
        return supports_system

    def _find_syntax(
        self, segments: SegmentsSettings, supports_system: bool, special_tokens: Sequence[str] | None
    ) -> None:
        options = self.options
        placeholders = Placeholders(self._avoided_texts())
        given = options.function_call_message_template
        functions = BASE_SETTINGS.functions
        if isinstance(given, FunctionCallTemplate):
            functions = FunctionsSettings.model_validate(function_call_settings(given))
        elif given == "auto":
            found = self._find_calls(placeholders)
            if found is None and options.require_calls:
                raise InvalidWrapper("failed to extract function call settings from the Jinja template")
            functions = found or functions
        found_segments = find_segments(self._renderer, placeholders, bool(options.reasoning), special_tokens)
        keeps = options.keep_only_last_thought
        self.template_keeps_only_last_thought = found_segments.keep_only_last_thought
        self.keep_only_last_thought = found_segments.keep_only_last_thought if keeps is None else keeps
        if found_segments.thought is not None:
            segments = segments.model_copy(update={"thought": found_segments.thought})
        self.settings = _aligned(
            ChatWrapperSettings(
                supports_system_messages=supports_system,
                functions=functions,
                segments=segments,
            )
        )

    def _find_calls(self, placeholders: Placeholders) -> FunctionsSettings | None:
        def render(request: CallRequest) -> str:
            return self._render_calls(request, placeholders)

        try:
            if needs_params_key(render, placeholders):
                self.wrap_function_params_inside_map_key = PARAMS_KEY
            found = find_calls(render, placeholders, self.options.examine_non_first)
        except (ValueError, TypeError):
            return None
        if found.settings is None:
            return None
        self.using_jinja_function_call_template = True
        self.stringify_function_params = found.params_as_text
        self.stringify_function_result = found.results_as_text
        self.combine_jinja_model_message_and_tool_calls = found.calls_share_message
        return found.settings

    def _render_calls(self, request: CallRequest, placeholders: Placeholders) -> str:
        """Render a helper chat, in the first way that works (section 12.6)."""
        tool_name = request.tool_name
        names = [False, tool_name.value] if tool_name.only_if_needed else [tool_name.value]
        return first_success(
            [
                lambda form=form, ids=ids, name=name: self._render_call_chat(request, placeholders, form, ids, name)  # type: ignore[misc]
                for form in self._formats()
                for ids in ("removed", "same", "kept")
                for name in names
            ]
        )

    def _render_call_chat(
        self, request: CallRequest, placeholders: Placeholders, form: str | None, ids: str, name: bool | str
    ) -> str:
        history = self._transformed(
            self._with_wrapped_params(request.history), form, None, True, None if request.join_texts else False
        )
        conversion = Conversion(
            calls_share_message=request.calls_share_message,
            params_as_text=request.params_as_text,
            results_as_text=request.results_as_text,
            join_texts=request.join_texts,
            tool_names=name,
        )
        messages = [message.to_json() for message in to_messages(history, self.settings, conversion)]
        for message in messages:
            _change_ids(message, ids)
        erased_after = self._ends_with_user(messages[-1] if messages else None)
        if erased_after is not None:
            messages.append({"role": self.options.user_role_name, "content": placeholders.make()})
        tools = to_tools(request.functions) or None
        text = _cut_after(self._renderer(messages, request.tokens, tools), erased_after)
        return _without_call_ids(text) if ids == "same" else text

    def _avoided_texts(self) -> str:
        options = self.options
        form = self.conversion.format if self.conversion else ""
        return "\n".join(
            [options.template, options.model_role_name, options.user_role_name, options.system_role_name, form]
        )

    def _formats(self) -> list[str | None]:
        if self.conversion is None:
            return [None]
        return [self.conversion.format] if self.conversion.use == "always" else [None, self.conversion.format]

    # Calls and results

    def params_text(self, call: FunctionCall) -> str:
        if not self.stringify_function_params:
            return super().params_text(call)
        text = self._no_params if call.params is ABSENT else json_dumps(call.params)
        return json_string(text) if text else ""

    def result_text(self, call: FunctionCall) -> str:
        text = super().result_text(call)
        return json_string(text) if self.stringify_function_result and call.result is not ABSENT else text

    def write_result(self, out: list[Piece], call: FunctionCall) -> None:
        if not self.stringify_function_params:
            super().write_result(out, call)
            return
        params = "" if call.params is ABSENT else json_string(json_dumps(call.params))

        def filled(text: LlamaText) -> Iterable[Piece]:
            for piece in text.values:
                if isinstance(piece, str):
                    piece = replace_marker(piece, "{{functionName}}", call.name)
                    piece = replace_marker(piece, "{{functionParams}}", params)
                yield piece

        result = self.settings.functions.result
        out.extend(filled(result.prefix))
        out.append(self.result_text(call))
        out.extend(filled(result.suffix))

    # Rendering

    def add_available_functions_system_message_to_history(
        self, history: Sequence[HistoryItem], functions: Functions | None, document_params: bool = True
    ) -> Sequence[HistoryItem]:
        if self.using_jinja_function_call_template:
            return history
        return super().add_available_functions_system_message_to_history(history, functions, document_params)

    def generate_context_state(
        self,
        history: Sequence[HistoryItem],
        functions: Functions | None = None,
        document_function_params: bool = True,
    ) -> ContextState:
        """Render a chat. Raises ValueError with the reason if the template can't."""
        ends = [self.end_jinja_messages_with_user_message]
        return self._make(history, functions, document_function_params, ends).state

    def context_pieces(
        self,
        history: Sequence[HistoryItem],
        functions: Functions | None = None,
        document_function_params: bool = True,
    ) -> list[Piece]:
        return list(self.generate_context_state(history, functions, document_function_params).context_text.values)

    def _make(
        self, history: Sequence[HistoryItem], functions: Functions | None, document_params: bool, ends: Sequence[bool]
    ) -> _Made:
        embedded = [False, True] if self.using_jinja_function_call_template else [False]
        ways = [_Way(form, end, tools) for form in self._formats() for end in ends for tools in embedded]
        return first_success(
            [lambda way=way: self._make_in(way, history, functions, document_params) for way in ways]  # type: ignore[misc]
        )

    def _make_in(
        self, way: _Way, history: Sequence[HistoryItem], functions: Functions | None, document_params: bool
    ) -> _Made:
        with_functions = self.add_available_functions_system_message_to_history(history, functions, document_params)
        converted = way.format is not None and any(isinstance(item, SystemItem) for item in with_functions)
        items = self._transformed(history, way.format, functions, document_params)
        messages, tools = self._messages(items, functions, document_params, way.embedded_tools)
        rendering = _Rendering(self, items, messages, way)
        text, stop = rendering.result(tools)
        state = ContextState(
            text,
            [LlamaText(SpecialToken("EOS")), *([stop] if stop is not None else [])],
            ignore_start_text=_START_TEXTS if self.options.trim_leading_whitespace_in_responses else (),
            extra={"transformedSystemMessagesToUserMessages": converted},
        )
        return _Made(state, way, converted)

    def _transformed(
        self,
        history: Sequence[HistoryItem],
        form: str | None,
        functions: Functions | None,
        document_params: bool,
        join: bool | None = None,
    ) -> list[HistoryItem]:
        """Section 12.4."""
        items = list(self.add_available_functions_system_message_to_history(history, functions, document_params))
        if form is not None:
            items = [_as_user(item, form) if isinstance(item, SystemItem) else item for item in items]
        opened = self._opened_on_start
        if opened is not None:
            after_calls = bool(opened.after_function_calls)
            items = [_with_thoughts(item, after_calls) if isinstance(item, ModelItem) else item for item in items]
        if self.options.join_adjacent_messages_of_the_same_type if join is None else join:
            items = _joined(items)
        return items

    @property
    def _opened_on_start(self) -> OpenedOnStart | None:
        thought = self.settings.segments.thought if self.settings.segments else None
        prefix = thought.prefix if thought else None
        return prefix if isinstance(prefix, OpenedOnStart) else None

    def _with_wrapped_params(self, history: Sequence[HistoryItem]) -> Sequence[HistoryItem]:
        key = self.wrap_function_params_inside_map_key
        if key is None:
            return history

        def wrapped(entry: ResponseEntry) -> ResponseEntry:
            if not isinstance(entry, FunctionCall):
                return entry
            return replace(entry, params={} if entry.params is ABSENT else {key: entry.params})

        return [
            ModelItem(tuple([wrapped(entry) for entry in item.response])) if isinstance(item, ModelItem) else item
            for item in history
        ]

    def _messages(
        self, items: Sequence[HistoryItem], functions: Functions | None, document_params: bool, embedded: bool
    ) -> tuple[list[Message], list[dict[str, Any]] | None]:
        if not self.using_jinja_function_call_template:
            return self._plain_messages(items), None
        tools = to_tools(functions or {}, describe=document_params) or None
        if embedded:
            return self._plain_messages(items), tools
        conversion = Conversion(
            calls_share_message=self.combine_jinja_model_message_and_tool_calls,
            params_as_text=self.stringify_function_params,
            results_as_text=self.stringify_function_result,
        )
        return to_messages(self._with_wrapped_params(items), self.settings, conversion), tools

    def _plain_messages(self, items: Sequence[HistoryItem]) -> list[Message]:
        messages = []
        for index, item in enumerate(items):
            if isinstance(item, SystemItem):
                messages.append(Message("system", item.text))
            elif isinstance(item, UserItem):
                messages.append(Message("user", LlamaText(item.text)))
            else:
                response: Sequence[ResponseEntry] = item.response
                if self.keep_only_last_thought and index < len(items) - 1:
                    response = [entry for entry in response if not is_thought(entry)]
                messages.append(Message("assistant", self.generate_model_response_text(response)))
        return messages

    def _ends_with_user(self, last: Mapping[str, Any] | None) -> str | None:
        """The content of the last message, if a user message has to be added behind it."""
        if not self.end_jinja_messages_with_user_message or last is None:
            return None
        return _open_answer(last, self.options.model_role_name)

    def properties_to_json(self) -> dict[str, Any]:
        shown = super().properties_to_json()
        if self.options.additional_render_parameters is None:
            shown.pop("additionalRenderParameters", None)
        if self.conversion is not None:
            shown[CONVERSION_KEY] = option_to_json(self.conversion)
        return {**shown, "keepOnlyLastThought": self.keep_only_last_thought}


CONVERSION_KEY: Final = "convertUnsupportedSystemMessagesToUserMessages"


class _Rendering:
    """One render of a history with placeholders, and putting its contents back (section 12.5)."""

    def __init__(
        self, wrapper: JinjaTemplateChatWrapper, items: Sequence[HistoryItem], messages: Sequence[Message], way: _Way
    ) -> None:
        self._wrapper = wrapper
        self._ends_with_model = bool(items) and isinstance(items[-1], ModelItem)
        options = wrapper.options
        contents = [str(message.content) for message in messages if message.content not in (ABSENT, None)]
        self._placeholders = Placeholders("\n".join([wrapper._avoided_texts(), way.format or "", *contents]))
        self._contents: dict[str, LlamaText] = {}
        self._message_ids: set[str] = set()
        self._model_ids: set[str] = set()
        self._last_model_ids: set[str] = set()
        # The id of a reasoning, and the id of the content it belongs to.
        self._reasonings: dict[str, str] = {}
        self._opened = wrapper._opened_on_start
        self._roles = {
            "system": options.system_role_name,
            "user": options.user_role_name,
            "assistant": options.model_role_name,
        }
        self._shown = self._with_placeholders(messages)
        self._tokens = {}
        for name, role in (("bos_token", "BOS"), ("eos_token", "EOS"), ("eot_token", "EOT")):
            self._tokens[name] = self._placeholders.make()
            self._contents[self._tokens[name]] = LlamaText(SpecialToken(role))
        self._erased_after: str | None = None
        self._finish_messages(way)

    def _with_placeholders(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        shown = []
        may_reason = True
        after_calls = bool(self._opened and self._opened.after_function_calls)
        share = self._wrapper.combine_jinja_model_message_and_tool_calls
        for message in messages:
            json = message.to_json()
            json["role"] = self._roles.get(message.role, message.role)
            shown.append(json)
            if message.content is ABSENT or message.content is None:
                continue
            content_id = self._placeholders.make(digits=message.role == "tool")
            json["content"] = content_id
            self._contents[content_id] = LlamaText(message.content)
            self._message_ids.add(content_id)
            if message.role in ("assistant", "tool"):
                self._model_ids.add(content_id)
                self._last_model_ids.add(content_id)
            elif message.role == "user":
                self._last_model_ids.clear()
            if self._opened and may_reason and message.role == "assistant" and (share or not message.tool_calls):
                reasoning_id = self._placeholders.make()
                json["reasoning_content"] = reasoning_id
                self._reasonings[reasoning_id] = content_id
                may_reason = False
            elif message.role == "user" or (after_calls and message.role == "tool"):
                may_reason = True
        return shown

    def _finish_messages(self, way: _Way) -> None:
        last = self._shown[-1] if self._shown else None
        options = self._wrapper.options
        open_answer = _open_answer(last, options.model_role_name) if last is not None else None
        if way.end_with_user and open_answer is not None:
            self._erased_after = open_answer
            self._shown.append({"role": options.user_role_name, "content": self._placeholders.make()})
            return
        content = last.get("content") if last is not None else None
        if last is not None and self._opened and last["role"] == options.model_role_name and isinstance(content, str):
            last["reasoning_content"] = content
            last["content"] = ""

    def result(self, tools: Sequence[Mapping[str, Any]] | None) -> tuple[LlamaText, LlamaText | None]:
        """The context text and the stop part, if there is one."""
        renderer, reasoning = self._wrapper._renderer, self._wrapper.options.reasoning
        variables = {} if reasoning is None else {"enable_thinking": reasoning}
        text = first_success(
            [
                lambda prompt=prompt: renderer(  # type: ignore[misc]
                    self._shown, self._tokens, tools, add_generation_prompt=prompt, **variables
                )
                for prompt in (False, True)
            ]
        )
        parts = self._placeholders.split(_cut_after(text, self._erased_after))
        end = self._end_of_context(parts) if self._ends_with_model else len(parts)
        context = self._with_contents(parts[:end])
        stop = self._stop_part(parts[end:])
        return context, stop or None

    def _end_of_context(self, parts: Sequence[str]) -> int:
        """Behind the last content, which must be one of the model."""
        for index in range(len(parts) - 2, 0, -2):
            part = parts[index]
            if part in self._model_ids:
                return index + 1
            if part in self._message_ids:
                self._check_all_used(parts)
                raise TemplateFailed("Last message was expected to be a model message, but it was not")
        self._check_all_used(parts)
        raise TemplateFailed("A model message was expected to be the last message, but it was not found")

    def _check_all_used(self, parts: Sequence[str]) -> None:
        if not self._message_ids.issubset(parts[1::2]):
            raise TemplateFailed("Some input messages are not present in the generated Jinja template output")

    def _stop_part(self, parts: Sequence[str]) -> LlamaText:
        pieces: list[Piece] = []
        for part in parts:
            content = self._contents.get(part)
            if content is None:
                pieces.append(SpecialTokensText(part))
            else:
                pieces.extend(content.values)
        return LlamaText.of(pieces)

    def _with_contents(self, parts: Sequence[str]) -> LlamaText:
        self._check_all_used(parts)
        pieces: list[Piece] = []
        empty_thought = self._empty_thought_finder()
        in_last_answer = False
        index = 0
        while index < len(parts):
            part = parts[index]
            index += 1
            if index % 2 == 1:
                if part:
                    pieces.append(SpecialTokensText(part))
            elif part in self._reasonings:
                index = self._behind_reasoning(parts, index, self._reasonings[part])
            elif part in self._contents:
                in_last_answer = in_last_answer or part in self._last_model_ids
                if in_last_answer and pieces and isinstance(pieces[-1], SpecialTokensText):
                    pieces[-1] = SpecialTokensText(empty_thought(pieces[-1].value))
                pieces.extend(self._contents[part].values)
            else:
                pieces.append(SpecialTokensText(part))
        return LlamaText.of(pieces)

    def _behind_reasoning(self, parts: Sequence[str], index: int, content_id: str) -> int:
        """Where to go on behind a reasoning: at its content, if that follows at once and no call begins before it."""
        if index + 1 >= len(parts) or parts[index + 1] != content_id:
            return index
        starts = [text for text in map(_only_text, _call_starts(self._wrapper.settings)) if text is not None]
        return index if any(start in parts[index] for start in starts) else index + 1

    def _empty_thought_finder(self) -> Callable[[str], str]:
        segments = self._wrapper.settings.segments
        thought = segments.thought if segments else None
        prefix = _only_text(thought.printed_prefix) if thought and thought.printed_prefix else None
        suffix = _only_text(thought.suffix) if thought and thought.suffix else None
        if thought is None or prefix is None or suffix is None or thought.open_on_response_start is not True:
            return lambda text: text

        def without_empty_thought(text: str) -> str:
            start = text.find(prefix)
            end = text.find(suffix, start + len(prefix)) if start >= 0 else -1
            if end < 0 or js_trim(text[start + len(prefix) : end]):
                return text
            return text[:start] + text[end + len(suffix) :]

        return without_empty_thought


def _conversion(option: bool | str | SystemConversion) -> SystemConversion | None:
    if isinstance(option, SystemConversion):
        return option
    if option is False:
        return None
    return SystemConversion(use="always" if option is True else "ifNeeded")


def _aligned(settings: ChatWrapperSettings) -> ChatWrapperSettings:
    """A thought that the template opens again after calls isn't part of the results' section (section 12.3, 5)."""
    thought = settings.segments.thought if settings.segments else None
    parallelism = settings.functions.parallelism
    section_suffix = parallelism.result.section_suffix if parallelism and parallelism.result else None
    if thought is None or not isinstance(thought.prefix, OpenedOnStart) or not thought.suffix or not section_suffix:
        return settings
    trimmed = _without_ending(section_suffix, thought.suffix)
    if trimmed is None:
        return settings
    json = settings.to_json()
    json["functions"]["parallelism"]["result"]["sectionSuffix"] = trimmed.to_json()
    json["segments"]["thought"]["prefix"]["afterFunctionCalls"] = True
    return ChatWrapperSettings.from_json(json)


def _without_ending(text: LlamaText, ending: LlamaText) -> LlamaText | None:
    """The text without an ending that it has completely; None if it hasn't."""
    count = len(ending.values)
    if len(text.values) < count or text.values[len(text.values) - count + 1 :] != ending.values[1:]:
        return None
    here, first = text.values[-count], ending.values[0]
    if here == first:
        return LlamaText.of(text.values[:-count])
    if type(here) is not type(first) or isinstance(here, SpecialToken) or not str(here).endswith(str(first)):
        return None
    rest = str(here)[: len(str(here)) - len(str(first))]
    return LlamaText.of([*text.values[:-count], rest if isinstance(here, str) else SpecialTokensText(rest)])


def _call_starts(settings: ChatWrapperSettings) -> list[LlamaText]:
    call, parallelism = settings.functions.call, settings.functions.parallelism
    sections = [LlamaText()]
    if parallelism is not None:
        sections = [parallelism.call.section_prefix, *(parallelism.call.section_prefix_alternate_matches or ())]
    prefixes = [call.prefix, *(call.prefix_alternate_matches or ())]
    return [LlamaText(section, prefix) for section in sections for prefix in prefixes]


def _only_text(text: LlamaText) -> str | None:
    """The text, unless there is a token in it that is known by role only."""
    return None if any(isinstance(piece, SpecialToken) for piece in text.values) else str(text)


def _as_user(item: SystemItem, form: str) -> UserItem:
    return UserItem(str(LlamaText.join(item.text, form.split(MESSAGE))))


def _with_thoughts(item: ModelItem, after_calls: bool) -> ModelItem:
    """The response with empty thoughts where the template opens one."""
    response: list[ResponseEntry] = []
    if not item.response or not is_thought(item.response[0]):
        response.append(Segment("thought", "", True))
    is_open = not response
    for index, entry in enumerate(item.response):
        response.append(entry)
        if isinstance(entry, Segment) and entry.segment_type == "thought":
            is_open = not entry.ended
        elif after_calls and isinstance(entry, FunctionCall):
            following = item.response[index + 1] if index + 1 < len(item.response) else None
            if not isinstance(following, FunctionCall) and not (following is not None and is_thought(following)):
                response.append(Segment("thought", "", not is_open))
    return ModelItem(tuple(response))


def _joined(items: Sequence[HistoryItem]) -> list[HistoryItem]:
    """Neighbours of one type merged, with a blank line between them."""
    groups: list[list[HistoryItem]] = []
    for item in items:
        if groups and type(groups[-1][0]) is type(item):
            groups[-1].append(item)
        else:
            groups.append([item])
    return [_merged(group) if len(group) > 1 else group[0] for group in groups]


def _merged(group: Sequence[HistoryItem]) -> HistoryItem:
    if isinstance(group[0], SystemItem):
        return SystemItem(LlamaText.join("\n\n", [cast(SystemItem, item).text for item in group]))
    if isinstance(group[0], UserItem):
        return UserItem("\n\n".join([cast(UserItem, item).text for item in group]))
    response: list[ResponseEntry] = []
    for index, item in enumerate(group):
        # Texts meet only at the seams; inside an item they stay apart.
        added: list[ResponseEntry] = list(cast(ModelItem, item).response)
        if index:
            added.insert(0, "\n\n")
        while index and added and isinstance(added[0], str) and response and isinstance(response[-1], str):
            response[-1] += cast(str, added.pop(0))
        response += added
    return ModelItem(tuple(response))


def _change_ids(message: dict[str, Any], ids: str) -> None:
    if ids == "kept":
        return
    for part, key in [(message, "tool_call_id"), *[(call, "id") for call in message.get("tool_calls") or ()]]:
        if key in part and ids == "removed":
            del part[key]
        elif key in part:
            part[key] = _SAME_CALL_ID


def _without_call_ids(text: str) -> str:
    """The text without the entries of call ids, and without one comma each."""
    for pattern in _ID_ENTRIES:
        text = pattern.sub("", text)
    return text


def _open_answer(message: Mapping[str, Any], role: str) -> str | None:
    """The content of a message with that role, if it has one and no calls."""
    content = message.get("content")
    if message["role"] != role or message.get("tool_calls") or not isinstance(content, str):
        return None
    return content or None


def _cut_after(text: str, ending: str | None) -> str:
    at = text.rfind(ending) if ending is not None else -1
    return text if ending is None or at < 0 else text[: at + len(ending)]


def _sanity_histories() -> list[list[HistoryItem]]:
    system = SystemItem(LlamaText("System message ~!@#$%^&*()\n*"))
    user, second_user = UserItem(f"Message {_PUNCTUATION}"), UserItem(f"Message2 {_PUNCTUATION}")
    answer, second_answer = ModelItem((f"Result {_PUNCTUATION}",)), ModelItem((f"Result2 {_PUNCTUATION}",))
    nothing = ModelItem(("",))
    return [
        [system, user, nothing],
        [system, user, answer],
        [system, user, answer, second_user, nothing],
        [system, user, answer, second_user, second_answer],
    ]


SANITY_HISTORIES: Final = _sanity_histories()
"""The chats that every template must be able to render."""
