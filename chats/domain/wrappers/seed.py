"""Seed (chat-wrappers.md section 10.16)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from chats.domain import wording as words
from chats.domain.functions import seed_signatures
from chats.domain.history_items import Functions, HistoryItem, ModelItem, SystemItem, UserItem, is_thought
from chats.domain.js_json import js_number
from chats.domain.llama_text import LlamaText, Piece
from chats.domain.wording import filled
from chats.domain.wrapper_settings import ChatWrapperSettings
from chats.domain.wrappers.base import ChatWrapper, Frame, Unit, WrapperOptions
from chats.domain.wrappers.pieces import EOS, has_content, special, special_json, texts

_SYSTEM: Final = special("<seed:bos>system\n")
_ASSISTANT: Final = special("<seed:bos>assistant\n")
_END: Final = special("\n<seed:eos>")
_REFLECT: Final = special("<seed:think>\n<seed:cot_budget_reflect>")
_END_REFLECT: Final = special("</seed:cot_budget_reflect>\n</seed:think>")
_INTERVAL = "1024"


class SeedOptions(WrapperOptions):
    """`thinking_budget` in tokens: 0 means no thinking, None or negative no limit."""

    thinking_budget: int | float | None = None


class SeedChatWrapper(ChatWrapper):
    """Every message between `<seed:bos>ROLE` and `<seed:eos>`; user messages have the system role, too."""

    wrapper_name = "Seed"
    options_model = SeedOptions
    shown_options = ("thinking_budget",)
    stop_triggers = texts(EOS, special("<seed:eos>"), "<seed:eos>")

    @classmethod
    def default_settings(cls, options: Any) -> ChatWrapperSettings:
        return _SETTINGS

    @classmethod
    def default_wording(cls, options: Any) -> dict[str, LlamaText]:
        return {
            **super().default_wording(options),
            words.FUNCTIONS: words.SEED_FUNCTIONS,
            words.DEFAULT_SYSTEM: words.SEED_DEFAULT_SYSTEM,
            words.NO_THINKING: words.SEED_NO_THINKING,
            words.NO_THINKING_THOUGHT: words.SEED_NO_THINKING_THOUGHT,
            words.THINKING_BUDGET: words.SEED_THINKING_BUDGET,
        }

    def functions_documentation(self, functions: Functions, document_params: bool) -> Sequence[Piece]:
        return [seed_signatures(functions, document_params)]

    def frame(self, history: Sequence[HistoryItem], functions: Functions | None, document_params: bool) -> Frame:
        system: Sequence[Piece] = ()
        rest = history
        if history and isinstance(history[0], SystemItem):
            system = history[0].text.values
            rest = history[1:]
        opening: list[Piece] = []
        if functions or has_content(system):
            opening.append(_SYSTEM)
            opening.extend(system if has_content(system) else self.wording[words.DEFAULT_SYSTEM].values)
            if functions:
                block = self.generate_available_functions_system_text(functions, document_params)
                opening.extend(block.values)
            opening.append(_END)
        opening.extend(self._budget_message())
        return Frame(rest, functions, document_params, opening)

    def _budget_message(self) -> list[Piece]:
        budget = self.options.thinking_budget
        if budget is None or budget < 0:
            return []
        if budget == 0:
            return [_SYSTEM, *self.wording[words.NO_THINKING].values, _END]
        slots = {words.SLOT_BUDGET: [js_number(budget)], words.SLOT_INTERVAL: [_INTERVAL]}
        text = filled(self.wording[words.THINKING_BUDGET], slots)
        # The original wraps this message twice.
        return [_SYSTEM, _SYSTEM, *text, _END, _END]

    def write_unit(self, out: list[Piece], unit: Unit, first: bool, last: bool, frame: Frame) -> None:
        item = unit[0]
        if isinstance(item, ModelItem):
            out.append(_ASSISTANT)
            if self.options.thinking_budget == 0 and (last or not any(map(is_thought, item.response))):
                out += [_REFLECT, *self.wording[words.NO_THINKING_THOUGHT].values, _END_REFLECT]
            self.write_response(out, item.response)
        else:
            out.append(_SYSTEM)
            if isinstance(item, UserItem):
                out.append(item.text)
            else:
                out.extend(item.text.values)
        if not last:
            out.append(_END)


_SETTINGS: Final = ChatWrapperSettings.from_json(
    {
        "supportsSystemMessages": True,
        "functions": {
            "call": {
                "optionalPrefixSpace": True,
                "prefix": [special_json("<seed:tool_call>\n"), "<function="],
                "paramsPrefix": [special_json(">")],
                "suffix": [special_json("\n</function>\n</seed:tool_call>\n")],
                "emptyCallParamsPlaceholder": {},
            },
            "result": {
                "prefix": [special_json("<seed:bos>tool\n")],
                "suffix": [special_json("<seed:eos>")],
            },
        },
        "segments": {
            "thought": {
                "prefix": [special_json("<seed:think>")],
                "suffix": [special_json("</seed:think>")],
                "reopenAfterFunctionCalls": True,
            }
        },
    }
)
