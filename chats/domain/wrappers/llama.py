"""Llama 2, 3, 3.1 and 3.2 lightweight (chat-wrappers.md sections 10.5 to 10.8)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar, Final

from pydantic import Field

from chats.domain import wording as words
from chats.domain.functions import llama_3_1_signatures, llama_3_2_signatures
from chats.domain.history_items import Functions, HistoryItem, ModelItem, SystemItem, UserItem
from chats.domain.llama_text import LlamaText, Piece
from chats.domain.wrapper_settings import ChatWrapperSettings
from chats.domain.wrappers.base import ChatWrapper, Frame, Unit, WrapperOptions
from chats.domain.wrappers.dates import (
    LONG_MONTHS,
    NOW,
    SHORT_MONTHS,
    OptionalDate,
    moment,
)
from chats.domain.wrappers.grouping import (
    grouped_by_role,
    grouped_in_turns,
    turn_of,
    write_group,
    write_models,
    write_systems,
    write_users,
)
from chats.domain.wrappers.pieces import (
    BOS,
    EOS,
    EOT,
    GAP,
    has_content,
    special,
    special_json,
    texts,
)


class Llama2Options(WrapperOptions):
    add_space_before_eos: bool = False


class Llama2ChatWrapper(ChatWrapper):
    """`[INST] … [/INST]`, the system message inside the first turn of each group."""

    wrapper_name = "Llama2Chat"
    options_model = Llama2Options
    stop_triggers = texts(EOS, "</s>")

    def units(self, items: Sequence[HistoryItem]) -> list[Unit]:
        return grouped_in_turns(items)

    def write_unit(self, out: list[Piece], unit: Unit, first: bool, last: bool, frame: Frame) -> None:
        turn = turn_of(unit)
        system: list[Piece] = []
        user: list[Piece] = []
        write_systems(system, turn.systems)
        write_users(user, turn.users)
        out.append(BOS)
        has_system = has_content(system)
        if has_system or has_content(user):
            out.append(_INST)
            if has_system:
                out.append(_SYS)
                out.extend(system)
                out.append(_END_SYS)
            out.extend(user)
            out.append(_END_INST)
        write_models(self, out, turn.models)
        if self.options.add_space_before_eos:
            out.append(" ")
        if not last:
            out.append(EOS)


_INST: Final = special("[INST] ")
_SYS: Final = special("<<SYS>>\n")
_END_SYS: Final = special("\n<</SYS>>\n\n")
_END_INST: Final = special(" [/INST] ")

_EOT_ID = special("<|eot_id|>")
_HEADERS: Final = {
    SystemItem: special("<|start_header_id|>system<|end_header_id|>\n\n"),
    UserItem: special("<|start_header_id|>user<|end_header_id|>\n\n"),
    ModelItem: special("<|start_header_id|>assistant<|end_header_id|>\n\n"),
}
LLAMA_3_STOP: Final = texts(
    EOS, EOT, special("<|eot_id|>"), special("<|end_of_text|>"), "<|eot_id|>", "<|end_of_text|>"
)
_OPENING: Final = (BOS,)


class Llama3Options(WrapperOptions):
    parallel_function_calling: bool = True


class Llama3ChatWrapper(ChatWrapper):
    """Role headers between `<|start_header_id|>` and `<|end_header_id|>`."""

    wrapper_name = "Llama 3"
    options_model: ClassVar[type[WrapperOptions]] = Llama3Options
    stop_triggers = LLAMA_3_STOP

    @classmethod
    def default_settings(cls, options: Any) -> ChatWrapperSettings:
        return _LLAMA_3_PARALLEL if options.parallel_function_calling else _LLAMA_3_SERIAL

    def frame(self, history: Sequence[HistoryItem], functions: Functions | None, document_params: bool) -> Frame:
        items = self.add_available_functions_system_message_to_history(history, functions, document_params)
        return Frame(items, functions, document_params, _OPENING)

    def units(self, items: Sequence[HistoryItem]) -> list[Unit]:
        return grouped_by_role(items)

    def write_unit(self, out: list[Piece], unit: Unit, first: bool, last: bool, frame: Frame) -> None:
        kind = type(unit[0])
        out.append(_HEADERS[kind])
        if first and kind is SystemItem:
            write_systems(out, unit, self.first_separator())
        else:
            write_group(self, out, unit)
        if not (last and kind is ModelItem):
            out.append(_EOT_ID)

    def first_separator(self) -> Piece:
        """What stands between the systems of the first group."""
        return GAP


class Llama31Options(WrapperOptions):
    """`today_date` absent means the current day at each rendering; None leaves a date out."""

    cutting_knowledge_date: OptionalDate = datetime(2023, 12, 1, tzinfo=UTC)
    today_date: OptionalDate = NOW
    no_tool_instructions: bool = False
    special_tokens_text_for_preamble: bool = Field(default=False, alias="_specialTokensTextForPreamble")


class Llama3_1ChatWrapper(Llama3ChatWrapper):
    """Llama 3 with a preamble of dates and tool instructions."""

    wrapper_name = "Llama 3.1"
    options_model = Llama31Options
    shown_options = ("cutting_knowledge_date", "today_date", "no_tool_instructions")

    def _prepare(self) -> None:
        super()._prepare()
        self._kept_preamble: SystemItem | None = None

    @classmethod
    def default_settings(cls, options: Any) -> ChatWrapperSettings:
        return _LLAMA_3_1

    @classmethod
    def default_wording(cls, options: Any) -> dict[str, LlamaText]:
        return {
            **super().default_wording(options),
            words.FUNCTIONS: words.LLAMA_3_1_FUNCTIONS,
            words.TOOL_INSTRUCTIONS: words.LLAMA_3_1_TOOL_INSTRUCTIONS,
        }

    def functions_documentation(self, functions: Functions, document_params: bool) -> Sequence[Piece]:
        return [llama_3_1_signatures(functions, document_params)]

    def frame(self, history: Sequence[HistoryItem], functions: Functions | None, document_params: bool) -> Frame:
        preamble = self._preamble_item()
        items = [preamble, *history] if preamble is not None else history
        items = self.add_available_functions_system_message_to_history(items, functions, document_params)
        return Frame(items, functions, document_params, _OPENING)

    def add_available_functions_system_message_to_history(
        self, history: Sequence[HistoryItem], functions: Functions | None, document_params: bool = True
    ) -> Sequence[HistoryItem]:
        """Behind a first of two leading systems, which is the preamble in a rendering, or else at the start."""
        if not functions:
            return history
        item = self.functions_item(functions, document_params)
        behind_first = len(history) >= 2 and all(isinstance(one, SystemItem) for one in history[:2])
        at = 1 if behind_first else 0
        return [*history[:at], item, *history[at:]]

    def first_separator(self) -> Piece:
        return special(GAP) if self.options.special_tokens_text_for_preamble else GAP

    def tool_instruction_lines(self, has_lines: bool) -> list[Piece]:
        if self.options.no_tool_instructions:
            return []
        heading = "\n# Tool Instructions\n" if has_lines else "# Tool Instructions\n"
        return [heading, *self.wording[words.TOOL_INSTRUCTIONS].values, "\n\n"]

    def _preamble_item(self) -> SystemItem | None:
        text = LlamaText.of(self._preamble())
        if self.options.special_tokens_text_for_preamble:
            text = LlamaText(special(str(text)))
        if not text:
            return None
        if self._kept_preamble is None or self._kept_preamble.text != text:
            self._kept_preamble = SystemItem(text)
        return self._kept_preamble

    def _preamble(self) -> list[Piece]:
        options: Any = self.options
        now = self.clock.now()
        today = moment(options.today_date, self.clock)
        cutoff = moment(options.cutting_knowledge_date, self.clock)
        lines = []
        if cutoff is not None:
            date = cutoff.astimezone(UTC)
            near = (today or now).astimezone(UTC)
            printed = f"{LONG_MONTHS[date.month - 1]} {date.year}"
            if (date.year, date.month) == (near.year, near.month):
                printed = f"{date.day} {SHORT_MONTHS[date.month - 1]} {date.year}"
            lines.append(f"Cutting Knowledge Date: {printed}")
        if today is not None:
            local = self.clock.local(today)
            lines.append(f"Today Date: {local.day} {SHORT_MONTHS[local.month - 1]} {local.year}")
        instructions = self.tool_instruction_lines(bool(lines))
        joint = "\n" if lines and instructions else ""
        return ["\n".join(lines), joint, *instructions]


class Llama3_2LightweightChatWrapper(Llama3_1ChatWrapper):
    """Llama 3.2 with 1B or 3B parameters: calls are plain JSON. `no_tool_instructions` does nothing."""

    wrapper_name = "Llama 3.2 lightweight"

    @classmethod
    def default_settings(cls, options: Any) -> ChatWrapperSettings:
        return _LLAMA_3_2

    @classmethod
    def default_wording(cls, options: Any) -> dict[str, LlamaText]:
        wording = {**super().default_wording(options), words.FUNCTIONS: words.LLAMA_3_2_FUNCTIONS}
        del wording[words.TOOL_INSTRUCTIONS]
        return wording

    def functions_documentation(self, functions: Functions, document_params: bool) -> Sequence[Piece]:
        return [llama_3_2_signatures(functions, document_params)]

    def tool_instruction_lines(self, has_lines: bool) -> list[Piece]:
        return []


_CALL_RESULT = "<|start_header_id|>function_call_result<|end_header_id|>\n\n"
_IPYTHON = "<|start_header_id|>ipython<|end_header_id|>\n\n"
_ASSISTANT = "<|start_header_id|>assistant<|end_header_id|>\n\n"
_LLAMA_3_CALL: Final = {
    "optionalPrefixSpace": True,
    "prefix": "||call: ",
    "paramsPrefix": [special_json("(")],
    "suffix": [special_json(")")],
}
_LLAMA_3_PARALLEL: Final = ChatWrapperSettings.from_json(
    {
        "supportsSystemMessages": True,
        "functions": {
            "call": _LLAMA_3_CALL,
            "result": {"prefix": [special_json(_CALL_RESULT)], "suffix": [special_json("<|eot_id|>")]},
            "parallelism": {
                "call": {"sectionPrefix": "", "betweenCalls": "\n", "sectionSuffix": [special_json("<|eot_id|>")]},
                "result": {"sectionPrefix": "", "betweenResults": "", "sectionSuffix": [special_json(_ASSISTANT)]},
            },
        },
    }
)
_LLAMA_3_SERIAL: Final = ChatWrapperSettings.from_json(
    {
        "supportsSystemMessages": True,
        "functions": {
            "call": _LLAMA_3_CALL,
            "result": {
                "prefix": [special_json(f"<|eot_id|>{_CALL_RESULT}")],
                "suffix": [special_json(f"<|eot_id|>{_ASSISTANT}")],
            },
        },
    }
)
_LLAMA_3_1: Final = ChatWrapperSettings.from_json(
    {
        "supportsSystemMessages": True,
        "functions": {
            "call": {
                "optionalPrefixSpace": True,
                "prefix": [special_json("<function=")],
                "paramsPrefix": [special_json(">")],
                "suffix": [special_json("</function><|eom_id|>")],
            },
            "result": {
                "prefix": [special_json(f"\n{_IPYTHON}")],
                "suffix": [special_json(f"<|eot_id|>{_ASSISTANT}")],
            },
        },
    }
)
_LLAMA_3_2: Final = ChatWrapperSettings.from_json(
    {
        "supportsSystemMessages": True,
        "functions": {
            "call": {
                "optionalPrefixSpace": True,
                "prefix": '{"name": "',
                "paramsPrefix": '", "parameters": ',
                "suffix": ["}", *[special_json("<|eot_id|>")]],
                "emptyCallParamsPlaceholder": {},
            },
            "result": {
                "prefix": [special_json(f"<|eot_id|>{_IPYTHON}")],
                "suffix": [special_json(f"<|eot_id|>{_ASSISTANT}")],
            },
        },
    }
)
