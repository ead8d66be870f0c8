"""The base of all chat wrappers (chat-wrappers.md section 7).

Rendering appends pieces to one flat list and normalises it at the end. A wrapper keeps what it made of the last chat,
so that a chat that only grew is rendered from where it grew: items are values, and the same item renders the same.
"""

from __future__ import annotations

import marshal
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any, ClassVar, Final, TypeAlias, cast

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from chats.domain import wording as words
from chats.domain.functions import typescript_signatures
from chats.domain.history_items import (
    FunctionCall,
    Functions,
    HistoryItem,
    ResponseEntry,
    SystemItem,
)
from chats.domain.js_json import ABSENT, json_dumps
from chats.domain.llama_text import LlamaText, Piece, SpecialToken, normalised
from chats.domain.wording import Wording, filled
from chats.domain.wrapper_settings import BASE_SETTINGS, ChatWrapperSettings
from chats.domain.wrappers.context_state import ContextState
from chats.domain.wrappers.filling import Fillable
from chats.domain.wrappers.pieces import of_origin
from chats.domain.wrappers.responses import ResponseWriter, SegmentSyntax, values_of

_EXAMPLE_NAME = "getSomeInfo"
_EXAMPLE_PARAMS = {"someKey": "someValue"}
_NOTHING: Final = LlamaText()


@dataclass(frozen=True)
class Clock:
    """Where wrappers that print today's date read it, and the zone that is local; None means the process's own."""

    fixed: datetime | None = None
    zone: tzinfo | None = None

    def now(self) -> datetime:
        return self.fixed or datetime.now(UTC)

    def local(self, moment: datetime) -> datetime:
        return moment.astimezone(self.zone)


class WrapperOptions(BaseModel):
    """Options of a wrapper; JSON has the original's names (camelCase), unknown keys are refused."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True, arbitrary_types_allowed=True
    )


class InvalidWrapper(ValueError):
    """A wrapper can't be built from these options; the message says why, as the original does."""


Unit: TypeAlias = Sequence[HistoryItem]
"""Items that are rendered together: a group of chat-wrappers.md section 9, or one item."""


@dataclass(frozen=True)
class Frame:
    """What the units of one rendering share: the items, whether there are functions, what stands before them."""

    items: Sequence[HistoryItem]
    functions: Functions | None
    document_params: bool
    opening: Sequence[Piece] = ()
    closing: Sequence[Piece] = ()
    complete: bool = False
    """Whether none of the units is the last one, since `closing` ends the rendering."""


@dataclass
class _Kept:
    """The part of the last rendering that growth can't change: all units but the last."""

    key: tuple[Any, ...]
    items: Sequence[HistoryItem]
    pieces: tuple[Piece, ...]


class ChatWrapper:
    """A chat format: what a model gets to read for a chat history, and how its answer is told apart.

    Subclasses say how the items are cut into units (`units`) and how one is written (`write_unit`). `settings` are
    read wherever calls, results and segments are written, so overridden ones count.
    """

    wrapper_name: ClassVar[str]
    options_model: ClassVar[type[WrapperOptions]] = WrapperOptions
    stop_triggers: ClassVar[Sequence[LlamaText]] = ()
    shown_options: ClassVar[Sequence[str]] = ()
    inserts_names: ClassVar[bool] = False
    """Whether the name is inserted where `{{functionName}}` stands, instead of replacing it with its `$` rule."""
    options: Any

    def __init__(
        self,
        options: WrapperOptions | None = None,
        settings: ChatWrapperSettings | None = None,
        wording: Wording | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.options = options if options is not None else self.options_model()
        self.check_options()
        self.settings = settings if settings is not None else self.default_settings(self.options)
        self.wording: dict[str, LlamaText] = {**self.default_wording(self.options), **(wording or {})}
        self.clock = clock or Clock()
        self._kept: _Kept | None = None
        self._functions_texts: dict[tuple[str, bytes, bool], LlamaText] = {}
        self._functions_items: dict[int, SystemItem] = {}
        self._prepare()

    def _prepare(self) -> None:
        call = self.settings.functions.call
        result = self.settings.functions.result
        self._call_prefix = call.prefix.values
        self._call_params_prefix = Fillable(call.params_prefix, self.inserts_names)
        self._call_suffix = Fillable(call.suffix, self.inserts_names)
        self._result_prefix = Fillable(result.prefix, self.inserts_names)
        self._result_suffix = Fillable(result.suffix, self.inserts_names)
        placeholder = call.empty_call_params_placeholder
        self._no_params = "" if placeholder is ABSENT or placeholder == "" else json_dumps(placeholder)
        self._segment_syntax = SegmentSyntax.of_settings(self.settings.segments)

    # What subclasses say

    def check_options(self) -> None:
        """Raise InvalidWrapper for options that don't go together."""

    @classmethod
    def default_settings(cls, options: Any) -> ChatWrapperSettings:
        """The settings that this format has with these options."""
        return BASE_SETTINGS

    @classmethod
    def default_wording(cls, options: Any) -> dict[str, LlamaText]:
        """The product's own wording for this format; every name that can be changed is in it."""
        return {words.FUNCTIONS: words.BASE_FUNCTIONS, words.SYSTEM_PROMPT: words.DEFAULT_SYSTEM_PROMPT}

    def frame(self, history: Sequence[HistoryItem], functions: Functions | None, document_params: bool) -> Frame:
        """The items to write, with the functions in them, and what stands before them."""
        items = self.add_available_functions_system_message_to_history(history, functions, document_params)
        return Frame(items, functions, document_params)

    def units(self, items: Sequence[HistoryItem]) -> list[Unit]:
        """The items cut into units; a cut doesn't depend on items before or more than one unit after it."""
        return [(item,) for item in items]

    def write_unit(self, out: list[Piece], unit: Unit, first: bool, last: bool, frame: Frame) -> None:
        """Append what the unit looks like."""
        raise NotImplementedError

    def state(self, context_text: LlamaText, frame: Frame) -> ContextState:
        """What is returned for the rendered text."""
        return ContextState(context_text, self.stop_triggers)

    # Rendering

    def generate_context_state(
        self,
        history: Sequence[HistoryItem],
        functions: Functions | None = None,
        document_function_params: bool = True,
    ) -> ContextState:
        """Render a chat (chat-wrappers.md section 7.1). The history and the functions are never modified."""
        frame = self.frame(history, functions or None, document_function_params)
        return self.state(self._context_text(frame), frame)

    def context_pieces(
        self,
        history: Sequence[HistoryItem],
        functions: Functions | None = None,
        document_function_params: bool = True,
    ) -> list[Piece]:
        """The pieces of the context text before gluing, in which OriginText pieces are still told apart."""
        frame = self.frame(history, functions or None, document_function_params)
        out = list(frame.opening)
        self._write_units(out, self.units(frame.items), True, frame)
        out.extend(frame.closing)
        return out

    def _context_text(self, frame: Frame) -> LlamaText:
        items = frame.items
        functions_key = self._functions_key(frame.functions, frame.document_params)
        key = (functions_key, tuple(frame.opening))
        kept = self._kept
        done: tuple[Piece, ...] = ()
        start = 0
        if kept is not None and functions_key is not None and _is_beginning(kept.items, items) and kept.key == key:
            done = kept.pieces
            start = len(kept.items)
        first = start == 0
        out: list[Piece] = list(frame.opening) if first else []
        units = self.units(items[start:] if start else items)
        if len(units) > 1:
            self._write_units(out, units[:-1], first, frame, has_more=True)
            done = _seamed(done, normalised(out))
            written = len(items) - len(units[-1])
            if functions_key is not None:
                self._kept = _Kept(key, items[:written], done)
            out = []
            first = False
        self._write_units(out, units[-1:], first, frame)
        out.extend(frame.closing)
        made = LlamaText.__new__(LlamaText)
        made.values = _seamed(done, normalised(out))
        return made

    def _write_units(
        self, out: list[Piece], units: Sequence[Unit], first: bool, frame: Frame, has_more: bool = False
    ) -> None:
        last_index = -1 if has_more or frame.complete else len(units) - 1
        for index, unit in enumerate(units):
            self.write_unit(out, unit, first and index == 0, index == last_index, frame)

    # Functions in the history

    def add_available_functions_system_message_to_history(
        self, history: Sequence[HistoryItem], functions: Functions | None, document_params: bool = True
    ) -> Sequence[HistoryItem]:
        """The history with the functions block in it (section 7.2); the given list stays as it is."""
        if not functions:
            return history
        return with_functions_item(history, self.functions_item(functions, document_params))

    def functions_item(self, functions: Functions, document_params: bool) -> SystemItem:
        """A system item with the functions block; the same object for the same block."""
        return self.kept_item(self.generate_available_functions_system_text(functions, document_params))

    def kept_item(self, text: LlamaText) -> SystemItem:
        """A system item that stays the same object as long as the same text object is asked for."""
        item = self._functions_items.get(id(text))
        if item is None or item.text is not text:
            if len(self._functions_items) > 16:
                self._functions_items.clear()
            item = self._functions_items[id(text)] = SystemItem(text)
        return item

    def generate_available_functions_system_text(self, functions: Functions, document_params: bool = True) -> LlamaText:
        """The functions block; empty without functions. Kept for a set of functions with the same content."""
        return self.kept_for("block", functions, document_params, self.functions_text)

    def kept_for(
        self, what: str, functions: Functions, document_params: bool, make: Callable[[Functions, bool], LlamaText]
    ) -> LlamaText:
        """What `make` gives for these functions: the same object as long as their content stays the same."""
        functions_key = self._functions_key(functions, document_params)
        if functions_key is None:
            return make(functions, document_params)
        key = (what, *functions_key)
        text = self._functions_texts.get(key)
        if text is None:
            if len(self._functions_texts) > 16:
                self._functions_texts.clear()
            text = self._functions_texts[key] = make(functions, document_params)
        return text

    @staticmethod
    def _functions_key(functions: Functions | None, document_params: bool) -> tuple[bytes, bool] | None:
        """The content of the set as bytes, order and number types included; None if it isn't plain JSON."""
        try:
            return marshal.dumps(cast(Any, functions), 2), document_params
        except ValueError:
            return None

    def functions_text(self, functions: Functions, document_params: bool) -> LlamaText:
        """Make the functions block."""
        if not functions:
            return _NOTHING
        slots = {
            words.SLOT_FUNCTIONS: self.functions_documentation(functions, document_params),
            words.SLOT_EXAMPLE_CALL: self.example_call(),
        }
        return LlamaText.of(filled(self.wording[words.FUNCTIONS], slots))

    def functions_documentation(self, functions: Functions, document_params: bool) -> Sequence[Piece]:
        """What goes into the slot `{{functions}}`."""
        return [typescript_signatures(functions, document_params)]

    def example_call(self) -> Sequence[Piece]:
        """What goes into the slot `{{exampleCall}}`: a call with this wrapper's settings."""
        out: list[Piece] = []
        self.write_call(out, FunctionCall(_EXAMPLE_NAME, _EXAMPLE_PARAMS))
        return out

    # Calls and results

    def generate_function_call(self, name: str, params: Any = ABSENT) -> LlamaText:
        """One call (section 7.3)."""
        out: list[Piece] = []
        self.write_call(out, FunctionCall(name, params))
        return LlamaText.of(out)

    def generate_function_call_result(self, name: str, params: Any = ABSENT, result: Any = ABSENT) -> LlamaText:
        """One result (section 7.4)."""
        out: list[Piece] = []
        self.write_result(out, FunctionCall(name, params, result))
        return LlamaText.of(out)

    def generate_function_calls_and_results(self, calls: Sequence[FunctionCall], use_raw: bool = True) -> LlamaText:
        """Calls with their results (section 7.5)."""
        out: list[Piece] = []
        self.write_calls(out, calls, use_raw)
        return LlamaText.of(out)

    def write_call(self, out: list[Piece], call: FunctionCall) -> None:
        out.extend(self._call_prefix)
        name = of_origin(call.name, call.origin)
        out.append(name)
        out.extend(self._call_params_prefix.with_name(call.name))
        out.append(self.params_text(call))
        out.extend(self._call_suffix.with_name(call.name))

    def params_text(self, call: FunctionCall) -> str:
        if call.params is ABSENT:
            return self._no_params
        return of_origin(json_dumps(call.params), call.origin)

    def write_result(self, out: list[Piece], call: FunctionCall) -> None:
        out.extend(self._result_prefix.with_call(call))
        out.append(self.result_text(call))
        out.extend(self._result_suffix.with_call(call))

    def result_text(self, call: FunctionCall) -> str:
        if call.result is ABSENT:
            return "void"
        return of_origin(json_dumps(call.result), call.result_origin)

    def write_call_or_raw(self, out: list[Piece], call: FunctionCall, use_raw: bool) -> None:
        if use_raw and call.raw_call is not None:
            out.extend(call.raw_call.values)
        else:
            self.write_call(out, call)

    def write_calls(self, out: list[Piece], calls: Sequence[FunctionCall], use_raw: bool) -> None:
        if not calls:
            return
        parallelism = self.settings.functions.parallelism
        if parallelism is None:
            for call in calls:
                self.write_call_or_raw(out, call, use_raw)
                self.write_result(out, call)
            return
        around = parallelism.call
        out.extend(around.section_prefix.values)
        for index, call in enumerate(calls):
            if index and around.between_calls is not None:
                out.extend(around.between_calls.values)
            self.write_call_or_raw(out, call, use_raw)
        out.extend(values_of(around.section_suffix))
        results = parallelism.result
        out.extend(values_of(results.section_prefix if results else None))
        for index, call in enumerate(calls):
            if index and results is not None and results.between_results is not None:
                out.extend(results.between_results.values)
            self.write_result(out, call)
        out.extend(values_of(results.section_suffix if results else None))

    # Model responses

    def generate_model_response_text(self, response: Sequence[ResponseEntry], use_raw: bool = True) -> LlamaText:
        """A model response (section 7.6)."""
        out: list[Piece] = []
        self.write_response(out, response, use_raw)
        return LlamaText.of(out)

    def write_response(self, out: list[Piece], response: Sequence[ResponseEntry], use_raw: bool = True) -> None:
        if len(response) == 1 and isinstance(response[0], str):
            out.append(response[0])
            return
        ResponseWriter(self._segment_syntax, self.write_calls, out, use_raw).write(response)

    # New chats

    def generate_initial_chat_history(self, system_prompt: str | None = None) -> list[HistoryItem]:
        """The history of a new chat (section 7.7): the prompt, or the default one."""
        if system_prompt is None:
            return [SystemItem(self.wording[words.SYSTEM_PROMPT])]
        return [SystemItem(LlamaText(system_prompt))]

    # What the original shows as properties

    def properties_to_json(self) -> dict[str, Any]:
        """The options that the original shows as properties of a wrapper; absent ones and functions have no key."""
        out = {}
        for name in self.shown_options:
            value = getattr(self.options, name)
            if value is ABSENT or callable(value):
                continue
            alias = type(self.options).model_fields[name].alias or name
            out[alias] = option_to_json(value)
        return out


def option_to_json(value: Any) -> Any:
    """Dates as ISO strings in UTC with milliseconds, models as objects."""
    if isinstance(value, datetime):
        moment = value.astimezone(UTC)
        return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"
    if isinstance(value, BaseModel):
        return value.model_dump(by_alias=True)
    return value


def with_functions_item(history: Sequence[HistoryItem], *added: HistoryItem) -> list[HistoryItem]:
    """The history with items put before the first one that isn't a system item, or else at the start (7.2)."""
    items = list(history)
    at = next((index for index, item in enumerate(items) if not isinstance(item, SystemItem)), 0)
    items[at:at] = added
    return items


def _is_beginning(beginning: Sequence[HistoryItem], items: Sequence[HistoryItem]) -> bool:
    """Whether `items` begins with the very same objects, and has more."""
    return len(beginning) < len(items) and all(map(operator.is_, beginning, items))


def _seamed(first: tuple[Piece, ...], second: tuple[Piece, ...]) -> tuple[Piece, ...]:
    """Two normalised lists as one."""
    if not first or not second:
        return first or second
    if type(first[-1]) is type(second[0]) and not isinstance(second[0], SpecialToken):
        return (*first[:-1], *normalised((first[-1], second[0])), *second[1:])
    return first + second


# Grouping strategies (section 9)
