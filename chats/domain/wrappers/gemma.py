"""Gemma and Gemma 4 (chat-wrappers.md sections 10.11 and 10.12)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pydantic import Field

from chats.domain import wording as words
from chats.domain.history_items import (
    FunctionCall,
    Functions,
    HistoryItem,
    ModelItem,
    ResponseEntry,
    Segment,
    SystemItem,
    UserItem,
)
from chats.domain.js_json import js_ordered, json_dumps
from chats.domain.llama_text import LlamaText, Piece
from chats.domain.wrapper_settings import BASE_SETTINGS, ChatWrapperSettings
from chats.domain.wrappers.base import ChatWrapper, Frame, Unit, WrapperOptions
from chats.domain.wrappers.grouping import grouped_in_turns, turn_of, write_models, write_systems, write_users
from chats.domain.wrappers.pieces import (
    BOS,
    EOS,
    EOT,
    has_content,
    special,
    special_json,
    texts,
)

_OPENING: Final = (BOS,)
_USER: Final = special("<start_of_turn>user\n")
_MODEL: Final = special("<start_of_turn>model\n")
_END: Final = special("<end_of_turn>\n")
_RULE = "\n\n---\n\n"


class GemmaChatWrapper(ChatWrapper):
    """No system role: system messages stand at the top of the user's message."""

    wrapper_name = "Gemma"
    stop_triggers = texts(EOS, special("<end_of_turn>\n"), "<end_of_turn>")

    @classmethod
    def default_settings(cls, options: Any) -> ChatWrapperSettings:
        return _GEMMA

    def frame(self, history: Sequence[HistoryItem], functions: Functions | None, document_params: bool) -> Frame:
        items = self.add_available_functions_system_message_to_history(history, functions, document_params)
        return Frame(items, functions, document_params, _OPENING)

    def units(self, items: Sequence[HistoryItem]) -> list[Unit]:
        return grouped_in_turns(items)

    def write_unit(self, out: list[Piece], unit: Unit, first: bool, last: bool, frame: Frame) -> None:
        turn = turn_of(unit)
        user: list[Piece] = []
        write_systems(user, turn.systems)
        has_system = has_content(user)
        own: list[Piece] = []
        write_users(own, turn.users)
        if has_system and has_content(own):
            user.append(_RULE)
        user.extend(own)
        if has_content(user):
            out.append(_USER)
            out.extend(user)
            out.append(_END)
        model: list[Piece] = []
        write_models(self, model, turn.models)
        if last or has_content(model):
            out.append(_MODEL)
            out.extend(model)
            if not last:
                out.append(_END)


class Gemma4Options(WrapperOptions):
    reasoning: bool = True
    keep_only_last_thought: bool = True
    line_break_after_think_indicator: bool = Field(default=True, alias="_lineBreakAfterThinkIndicator")


_TURN_SYSTEM: Final = special("<|turn>system\n")
_TURN_USER: Final = special("<|turn>user\n")
_TURN_MODEL: Final = special("<|turn>model\n")
_END_TURN: Final = special("<turn|>\n")
_THOUGHT: Final = special("<|channel>thought")
_END_THOUGHT: Final = special("<channel|>")


class Gemma4ChatWrapper(ChatWrapper):
    """Turns between `<|turn>ROLE` and `<turn|>`, one system message with the functions in it."""

    wrapper_name = "Gemma 4"
    options_model = Gemma4Options
    shown_options = ("reasoning", "keep_only_last_thought")
    stop_triggers = texts(EOS, EOT, special("<turn|>"), special("<turn|>\n"), "<|return|>")

    @classmethod
    def default_settings(cls, options: Any) -> ChatWrapperSettings:
        return _GEMMA_4

    @classmethod
    def default_wording(cls, options: Any) -> dict[str, LlamaText]:
        return {words.SYSTEM_PROMPT: words.DEFAULT_SYSTEM_PROMPT}

    def functions_text(self, functions: Functions, document_params: bool) -> LlamaText:
        out: list[Piece] = []
        for name, definition in js_ordered(functions):
            about: dict[str, Any] = {}
            if definition.get("description"):
                about["description"] = definition["description"]
            if document_params:
                params = definition.get("params")
                about["parameters"] = {} if params is None else params
            out.append(special("<|tool>"))
            out.append(f"declaration:{name}{{{json_dumps(about)}}}")
            out.append(special("<tool|>"))
        return LlamaText.of(out)

    def frame(self, history: Sequence[HistoryItem], functions: Functions | None, document_params: bool) -> Frame:
        system: list[Piece] = []
        rest = history
        if history and isinstance(history[0], SystemItem):
            system.extend(history[0].text.values)
            rest = history[1:]
        if functions:
            system.extend(self.generate_available_functions_system_text(functions, document_params).values)
        options: Any = self.options
        opening: list[Piece] = [BOS]
        if options.reasoning:
            thinks = "<|think|>\n" if options.line_break_after_think_indicator else "<|think|>"
            system.insert(0, special(thinks))
        if has_content(system):
            opening.append(_TURN_SYSTEM)
            opening.extend(system)
            if rest:
                opening.append(_END_TURN)
        return Frame(rest, functions, document_params, opening)

    def write_unit(self, out: list[Piece], unit: Unit, first: bool, last: bool, frame: Frame) -> None:
        item = unit[0]
        if isinstance(item, ModelItem):
            out.append(_TURN_MODEL)
            self._write_entries(out, item.response, True, last, not self.options.keep_only_last_thought or last)
        elif isinstance(item, UserItem):
            out.append(_TURN_USER)
            out.append(item.text)
        else:
            out.append(_TURN_SYSTEM)
            out.extend(item.text.values)
        if not last:
            out.append(_END_TURN)

    def write_response(self, out: list[Piece], response: Sequence[ResponseEntry], use_raw: bool = True) -> None:
        self._write_entries(out, response, use_raw, last_item=False, keeps_thoughts=True)

    def generate_model_response_text(self, response: Sequence[ResponseEntry], use_raw: bool = True) -> LlamaText:
        out: list[Piece] = [_TURN_MODEL]
        self.write_response(out, response, use_raw)
        out.append(_END_TURN)
        return LlamaText.of(out)

    def _write_entries(
        self, out: list[Piece], response: Sequence[ResponseEntry], use_raw: bool, last_item: bool, keeps_thoughts: bool
    ) -> None:
        pending: list[FunctionCall] = []

        def flush() -> None:
            self.write_calls(out, pending, use_raw)
            pending.clear()

        for entry in response:
            if isinstance(entry, str):
                if entry:
                    flush()
                    out.append(entry)
            elif isinstance(entry, Segment):
                flush()
                self._write_segment(out, entry, use_raw, last_item, keeps_thoughts)
            else:
                if entry.starts_new_chunk:
                    flush()
                pending.append(entry)
        flush()

    def _write_segment(
        self, out: list[Piece], segment: Segment, use_raw: bool, last_item: bool, keeps_thoughts: bool
    ) -> None:
        if use_raw and segment.ended and segment.raw is not None:
            out.extend(segment.raw.values)
        elif segment.segment_type == "thought" and keeps_thoughts:
            out.append(_THOUGHT)
            out.append(segment.text)
            if segment.ended or not last_item:
                out.append(_END_THOUGHT)


_GEMMA: Final = ChatWrapperSettings.from_json({**BASE_SETTINGS.to_json(), "supportsSystemMessages": False})
_GEMMA_4: Final = ChatWrapperSettings.from_json(
    {
        "supportsSystemMessages": True,
        "functions": {
            "call": {
                "optionalPrefixSpace": False,
                "prefix": [special_json("<|tool_call>call:")],
                "paramsPrefix": "{",
                "suffix": [special_json("}<tool_call|>")],
            },
            "result": {
                "prefix": [
                    special_json("<tool_response>response:"),
                    "{{functionName}}{",
                ],
                "suffix": [special_json("}</tool_response>")],
            },
        },
        "segments": {
            "reiterateStackAfterFunctionCalls": True,
            "thought": {
                "prefix": [special_json("<|channel>thought\n")],
                "suffix": [special_json("<channel|>")],
            },
        },
    }
)
