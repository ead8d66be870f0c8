"""Mistral (chat-wrappers.md section 10.9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pydantic import Field

from chats.domain.functions import mistral_tools
from chats.domain.history_items import FunctionCall, Functions, HistoryItem, SystemItem, UserItem
from chats.domain.js_json import ABSENT, js_trim, json_dumps
from chats.domain.llama_text import LlamaText, Piece
from chats.domain.wrapper_settings import ChatWrapperSettings
from chats.domain.wrappers.base import ChatWrapper, Frame, Unit, WrapperOptions
from chats.domain.wrappers.grouping import grouped_in_turns, turn_of, write_models, write_systems, write_users
from chats.domain.wrappers.pieces import (
    BOS,
    EOS,
    GAP,
    has_content,
    of_origin,
    special,
    special_json,
    texts,
)

_INST: Final = special("[INST]")
_END_INST: Final = special("[/INST]")
_TOOLS: Final = special("[AVAILABLE_TOOLS]")
_END_TOOLS: Final = special("[/AVAILABLE_TOOLS]")


class MistralOptions(WrapperOptions):
    add_space_before_eos: bool = False
    no_function_name_in_result: bool = Field(default=False, alias="_noFunctionNameInResult")
    stringify_function_call_result: bool = Field(default=False, alias="_stringifyFunctionCallResult")


class MistralChatWrapper(ChatWrapper):
    """The system message and the tools stand at the last user message, wherever they were."""

    wrapper_name = "Mistral"
    options_model = MistralOptions
    stop_triggers = texts(EOS, "</s>")

    @classmethod
    def default_settings(cls, options: Any) -> ChatWrapperSettings:
        return _WITHOUT_NAME if options.no_function_name_in_result else _WITH_NAME

    def add_available_functions_system_message_to_history(
        self, history: Sequence[HistoryItem], functions: Functions | None, document_params: bool = True
    ) -> Sequence[HistoryItem]:
        """Nothing is added: the tools have a place of their own."""
        return history

    def frame(self, history: Sequence[HistoryItem], functions: Functions | None, document_params: bool) -> Frame:
        end_of_systems = 0
        while end_of_systems < len(history) and isinstance(history[end_of_systems], SystemItem):
            end_of_systems += 1
        system: list[Piece] = []
        write_systems(system, history[:end_of_systems])
        items = history[end_of_systems:]
        at = len(items) - 1
        while at > 0 and not isinstance(items[at], UserItem):
            at -= 1
        earlier, last_interaction = (items[:at], items[at:]) if items else (items, items)
        closing = self._closing(last_interaction, system, functions, document_params)
        return Frame(earlier, functions, document_params, (BOS,), closing, complete=True)

    def _closing(
        self,
        interaction: Sequence[HistoryItem],
        system: Sequence[Piece],
        functions: Functions | None,
        document_params: bool,
    ) -> list[Piece]:
        out: list[Piece] = []
        if functions:
            out.extend(self.kept_for("tools", functions, document_params, _tools).values)
        groups = grouped_in_turns(interaction)
        for group in groups:
            is_last = group is groups[-1]
            self._write_group(out, group, system if is_last else (), ends=not is_last)
        return out

    def units(self, items: Sequence[HistoryItem]) -> list[Unit]:
        return grouped_in_turns(items)

    def write_unit(self, out: list[Piece], unit: Unit, first: bool, last: bool, frame: Frame) -> None:
        self._write_group(out, unit, (), ends=True)

    def _write_group(self, out: list[Piece], group: Unit, system: Sequence[Piece], ends: bool) -> None:
        turn = turn_of(group)
        out.append(_INST)
        if has_content(system):
            out.extend(system)
            out.append(GAP)
        content: list[Piece] = []
        write_systems(content, turn.systems)
        user: list[Piece] = []
        write_users(user, turn.users)
        if has_content(content) and has_content(user):
            content.append(GAP)
        out.extend(content)
        out.extend(user)
        out.append(_END_INST)
        write_models(self, out, turn.models)
        if self.options.add_space_before_eos:
            out.append(" ")
        if ends:
            out.append(EOS)

    def result_text(self, call: FunctionCall) -> str:
        if call.result is not ABSENT and self.options.stringify_function_call_result:
            return of_origin(json_dumps(json_dumps(call.result)), call.result_origin)
        return super().result_text(call)

    def generate_initial_chat_history(self, system_prompt: str | None = None) -> list[HistoryItem]:
        """No item at all without a prompt."""
        if system_prompt is None or not js_trim(system_prompt):
            return []
        return super().generate_initial_chat_history(system_prompt)


def _tools(functions: Functions, document_params: bool) -> LlamaText:
    return LlamaText(_TOOLS, mistral_tools(functions, document_params), _END_TOOLS)


def _settings(result_prefix: str) -> ChatWrapperSettings:
    return ChatWrapperSettings.from_json(
        {
            "supportsSystemMessages": True,
            "functions": {
                "call": {
                    "optionalPrefixSpace": True,
                    "prefix": '{"name": "',
                    "paramsPrefix": '", "arguments": ',
                    "suffix": "}",
                    "emptyCallParamsPlaceholder": {},
                },
                "result": {
                    "prefix": [special_json("[TOOL_RESULTS]"), result_prefix],
                    "suffix": ["}", special_json("[/TOOL_RESULTS]")],
                },
                "parallelism": {
                    "call": {
                        "sectionPrefix": [special_json("[TOOL_CALLS]"), "["],
                        "betweenCalls": ", ",
                        "sectionSuffix": ["]", {"type": "specialToken", "value": "EOS"}],
                    }
                },
            },
        }
    )


_WITH_NAME: Final = _settings('{"name": "{{functionName}}", "content": ')
_WITHOUT_NAME: Final = _settings('{"content": ')
