"""TemplateChatWrapper: a format given as templates with markers (chat-wrappers.md section 11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from chats.domain.history_items import Functions, HistoryItem
from chats.domain.llama_text import LlamaText, Piece
from chats.domain.text_splitting import Separator, split_text
from chats.domain.wrapper_settings import BASE_SETTINGS, ChatWrapperSettings
from chats.domain.wrappers.base import ChatWrapper, Frame, InvalidWrapper, Unit, WrapperOptions
from chats.domain.wrappers.context_state import ContextState
from chats.domain.wrappers.grouping import grouped_in_turns, turn_of, write_models, write_systems, write_users
from chats.domain.wrappers.pieces import EOS, has_content, special, texts

_SYSTEM_PROMPT: Final = "{{systemPrompt}}"
_HISTORY: Final = "{{history}}"
_COMPLETION: Final = "{{completion}}"
_MESSAGE: Final = "{{message}}"
_NAME: Final = "{{functionName}}"
_PARAMS: Final = "{{functionParams}}"
_RESULT: Final = "{{functionCallResult}}"
_CONTENT: Final = "{{content}}"


class HistoryTemplate(WrapperOptions):
    """One template a role; each has the marker `{{message}}`."""

    system: str | None = None
    user: str | None = None
    model: str | None = None


class FunctionCallTemplate(WrapperOptions):
    """`call` has `{{functionName}}` and `{{functionParams}}`, `result` has `{{functionCallResult}}`."""

    call: str
    result: str


class SegmentTemplates(WrapperOptions):
    """`thought_template` has the marker `{{content}}`."""

    thought_template: str | None = None
    reopen_thought_after_function_calls: bool | None = None
    close_all_segments_template: str | None = None
    reiterate_stack_after_function_calls: bool | None = None


class TemplateOptions(WrapperOptions):
    template: str
    history_template: HistoryTemplate
    function_call_message_template: FunctionCallTemplate | None = None
    join_adjacent_messages_of_the_same_type: bool = True
    segments: SegmentTemplates | None = None


@dataclass(frozen=True)
class Around:
    """The text directly before and after a marker."""

    prefix: str
    suffix: str


def cut_at_markers(template: str, markers: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Around]:
    """What stands around each marker, which must occur in this order (section 11.1). Raises InvalidWrapper.

    Optional markers that don't occur are missing in the result.
    """
    parts = split_text(template, markers)
    found: dict[str, Around] = {}
    position = 0
    for index, part in enumerate(parts):
        if isinstance(part, str) or position == len(markers):
            continue
        while markers[position] != part.text:
            if markers[position] not in optional:
                raise _missing(markers, position, found, optional)
            position += 1
            if position == len(markers):
                break
        else:
            found[part.text] = Around(_text_at(parts, index - 1), _text_at(parts, index + 1))
            position += 1
    for at in range(position, len(markers)):
        if markers[at] not in optional:
            raise _missing(markers, at, found, optional)
    return found


def _text_at(parts: Sequence[str | Separator], index: int) -> str:
    part = parts[index] if 0 <= index < len(parts) else ""
    return part if isinstance(part, str) else ""


def _missing(
    markers: Sequence[str], position: int, found: dict[str, Around], optional: Sequence[str]
) -> InvalidWrapper:
    earlier = [marker for marker in markers[:position] if marker in found or marker not in optional]
    where = f'after "{earlier[-1]}"' if earlier else "at the beginning"
    return InvalidWrapper(f'Template must contain "{markers[position]}" {where}')


def function_call_settings(template: FunctionCallTemplate) -> dict[str, Any]:
    """`functions` of the settings, from a template. Raises InvalidWrapper."""
    call = cut_at_markers(template.call, (_NAME, _PARAMS))
    result = cut_at_markers(template.result, (_RESULT,))
    if not call[_NAME].prefix:
        raise InvalidWrapper(f'Function call template must have text before "{_NAME}"')
    if not call[_PARAMS].suffix:
        raise InvalidWrapper(f'Function call template must have text after "{_PARAMS}"')
    if not result[_RESULT].prefix:
        raise InvalidWrapper(f'Function call result template must have text before "{_RESULT}"')
    if not result[_RESULT].suffix:
        raise InvalidWrapper(f'Function call result template must have text after "{_RESULT}"')
    return {
        "call": {
            "optionalPrefixSpace": True,
            "prefix": call[_NAME].prefix,
            "paramsPrefix": call[_NAME].suffix,
            "suffix": call[_PARAMS].suffix,
        },
        "result": {"prefix": result[_RESULT].prefix, "suffix": result[_RESULT].suffix},
    }


def segment_settings(templates: SegmentTemplates | None) -> dict[str, Any]:
    """`segments` of the settings, from templates: only the keys that were given. Raises InvalidWrapper."""
    out: dict[str, Any] = {}
    if templates is None:
        return out
    if templates.close_all_segments_template:
        out["closeAllSegments"] = templates.close_all_segments_template
    if templates.reiterate_stack_after_function_calls is not None:
        out["reiterateStackAfterFunctionCalls"] = templates.reiterate_stack_after_function_calls
    if templates.thought_template is not None:
        around = cut_at_markers(templates.thought_template, (_CONTENT,))[_CONTENT]
        if not around.prefix:
            raise InvalidWrapper(f'Thought template must have text before "{_CONTENT}"')
        thought: dict[str, Any] = {"prefix": around.prefix}
        if around.suffix:
            thought["suffix"] = around.suffix
        if templates.reopen_thought_after_function_calls is not None:
            thought["reopenAfterFunctionCalls"] = templates.reopen_thought_after_function_calls
        out["thought"] = thought
    return out


class TemplateChatWrapper(ChatWrapper):
    """All text of the templates is special; a chat's contents are plain."""

    wrapper_name = "Template"
    options_model = TemplateOptions
    shown_options = ("template", "history_template", "join_adjacent_messages_of_the_same_type")

    def check_options(self) -> None:
        options: TemplateOptions = self.options
        roles = (options.history_template.system, options.history_template.user, options.history_template.model)
        if any(role is None for role in roles):
            raise InvalidWrapper("Template chat wrapper historyTemplate must have system, user, and model templates.")
        around = cut_at_markers(options.template, (_SYSTEM_PROMPT, _HISTORY, _COMPLETION), (_SYSTEM_PROMPT,))
        if not around[_COMPLETION].suffix:
            raise InvalidWrapper(f'Chat template must have text after "{_COMPLETION}"')
        self._has_system_prompt = _SYSTEM_PROMPT in around
        self._before_system = around[_SYSTEM_PROMPT].prefix if self._has_system_prompt else ""
        self._before_history = around[_HISTORY].prefix
        self._before_completion = special(around[_COMPLETION].prefix)
        self._system, self._user, self._model = [cut_at_markers(role or "", (_MESSAGE,))[_MESSAGE] for role in roles]
        end = around[_COMPLETION].suffix
        self._stop = texts(EOS, end, special(end))

    @classmethod
    def default_settings(cls, options: Any) -> ChatWrapperSettings:
        settings = BASE_SETTINGS.to_json()
        if options.function_call_message_template is not None:
            settings["functions"] = function_call_settings(options.function_call_message_template)
        settings["segments"] = segment_settings(options.segments)
        return ChatWrapperSettings.from_json(settings)

    def units(self, items: Sequence[HistoryItem]) -> list[Unit]:
        if not self.options.join_adjacent_messages_of_the_same_type:
            return [(item,) for item in items]
        return grouped_in_turns(items)

    def frame(self, history: Sequence[HistoryItem], functions: Functions | None, document_params: bool) -> Frame:
        items = self.add_available_functions_system_message_to_history(history, functions, document_params)
        return Frame(items, functions, document_params)

    def write_unit(self, out: list[Piece], unit: Unit, first: bool, last: bool, frame: Frame) -> None:
        turn = turn_of(unit)
        system: list[Piece] = []
        write_systems(system, turn.systems)
        if first:
            self._write_first_system(out, system)
        else:
            _write_item(out, self._system, system)
        user: list[Piece] = []
        write_users(user, turn.users)
        _write_item(out, self._user, user)
        model: list[Piece] = []
        write_models(self, model, turn.models)
        if last and has_content(model):
            out.append(self._before_completion)
            out.extend(model)
        else:
            _write_item(out, self._model, model)

    def _write_first_system(self, out: list[Piece], system: Sequence[Piece]) -> None:
        if not has_content(system):
            out.append(special(self._before_system + self._before_history))
        elif self._has_system_prompt:
            out.append(special(self._before_system))
            out.extend(system)
            out.append(special(self._before_history))
        else:
            out.append(special(self._before_history))
            _write_item(out, self._system, system)

    def state(self, context_text: LlamaText, frame: Frame) -> ContextState:
        return ContextState(context_text, self._stop)


def _write_item(out: list[Piece], around: Around, content: Sequence[Piece]) -> None:
    """A message in the template of its role; nothing if it's empty."""
    if has_content(content):
        out.append(special(around.prefix))
        out.extend(content)
        out.append(special(around.suffix))
