"""A chat wrapper made from a chat template (chat-wrappers.md section 12).

The template is rendered with placeholders instead of contents, and the result is cut at them again: contents stay plain
text, and everything the template wrote becomes special text. How the template writes calls and thoughts is found out
by rendering short chats. The dialect is the product's own Jinja (`chat_templates`); where the original's engine
differs from jinja2, so do the results.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from chats.domain.chat_templates import Profile
from chats.domain.history_items import (
    FunctionCall,
    Functions,
    HistoryItem,
    ModelItem,
    ResponseEntry,
    SystemItem,
    UserItem,
    is_thought,
)
from chats.domain.js_json import ABSENT, json_dumps, json_string, replace_marker
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
from chats.domain.wrappers.base import ChatWrapper, Clock, InvalidWrapper, option_to_json
from chats.domain.wrappers.context_state import ContextState
from chats.domain.wrappers.jinja.calls import PARAMS_KEY, CallRequest, find_calls, needs_params_key
from chats.domain.wrappers.jinja.contents import ContentRendering, Way, cut_after, open_answer_of
from chats.domain.wrappers.jinja.histories import SANITY_HISTORIES, as_user, joined, with_thoughts
from chats.domain.wrappers.jinja.options import CONVERSION_KEY, MESSAGE, JinjaOptions, conversion_of
from chats.domain.wrappers.jinja.rendering import Placeholders, Render, TemplateRenderer, first_success
from chats.domain.wrappers.jinja.segments import find_segments
from chats.domain.wrappers.pieces import texts
from chats.domain.wrappers.template import FunctionCallTemplate, function_call_settings, segment_settings

_SAME_CALL_ID = "fc_1_0001"
_ID_ENTRY = r'"(?:tool_call_id|call_id|id)":\s*"' + _SAME_CALL_ID + '"'
_ID_ENTRIES = (re.compile(r",\s*" + _ID_ENTRY), re.compile(_ID_ENTRY + r"\s*,"))
_START_TEXTS = texts(" ", "  ", "   ", "    ", "\t", "\t\t", "\t ", " \t")


@dataclass(frozen=True)
class _Made:
    """A rendered history and what was necessary for it."""

    state: ContextState
    way: Way
    converted: bool


class JinjaTemplateChatWrapper(ChatWrapper):
    """Renders with a chat template. Building one renders some dozens of short chats through `render`.

    Raises InvalidWrapper if the template can't render simple chats, and rendering.OutOfTime if a bound of the
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
        self.conversion = conversion_of(options.convert_unsupported_system_messages_to_user_messages)
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
        text = cut_after(self._renderer(messages, request.tokens, tools), erased_after)
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
        ways = [Way(form, end, tools) for form in self._formats() for end in ends for tools in embedded]
        return first_success(
            [lambda way=way: self._make_in(way, history, functions, document_params) for way in ways]  # type: ignore[misc]
        )

    def _make_in(
        self, way: Way, history: Sequence[HistoryItem], functions: Functions | None, document_params: bool
    ) -> _Made:
        with_functions = self.add_available_functions_system_message_to_history(history, functions, document_params)
        converted = way.format is not None and any(isinstance(item, SystemItem) for item in with_functions)
        items = self._transformed(history, way.format, functions, document_params)
        messages, tools = self._messages(items, functions, document_params, way.embedded_tools)
        rendering = ContentRendering(
            items,
            messages,
            way,
            options=self.options,
            settings=self.settings,
            renderer=self._renderer,
            opened=self._opened_on_start,
            calls_share_message=self.combine_jinja_model_message_and_tool_calls,
            avoided=self._avoided_texts(),
        )
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
            items = [as_user(item, form) if isinstance(item, SystemItem) else item for item in items]
        opened = self._opened_on_start
        if opened is not None:
            after_calls = bool(opened.after_function_calls)
            items = [with_thoughts(item, after_calls) if isinstance(item, ModelItem) else item for item in items]
        if self.options.join_adjacent_messages_of_the_same_type if join is None else join:
            items = joined(items)
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
        return open_answer_of(last, self.options.model_role_name)

    def properties_to_json(self) -> dict[str, Any]:
        shown = super().properties_to_json()
        if self.options.additional_render_parameters is None:
            shown.pop("additionalRenderParameters", None)
        if self.conversion is not None:
            shown[CONVERSION_KEY] = option_to_json(self.conversion)
        return {**shown, "keepOnlyLastThought": self.keep_only_last_thought}


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
