"""DeepSeek (chat-wrappers.md section 10.13). The bars in its tokens are U+FF5C, the spaces U+2581."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

from chats.domain import wording as words
from chats.domain.functions import llama_3_2_signatures
from chats.domain.history_items import (
    Functions,
    HistoryItem,
    ModelItem,
    SystemItem,
    UserItem,
    without_thoughts,
)
from chats.domain.llama_text import LlamaText, Piece
from chats.domain.wrapper_settings import ChatWrapperSettings
from chats.domain.wrappers.base import ChatWrapper, Frame, InvalidWrapper, Unit, WrapperOptions
from chats.domain.wrappers.grouping import write_systems
from chats.domain.wrappers.pieces import BOS, EOS, EOT, special, special_json, texts

_USER: Final = special("<｜User｜>")
_ASSISTANT: Final = special("<｜Assistant｜>")
_END: Final = special("<｜end▁of▁sentence｜>")


class DeepSeekOptions(WrapperOptions):
    keep_only_last_thought: bool = True
    function_calling_syntax: Literal["r1-workaround", "simplified", "original"] = "r1-workaround"
    parallel_function_calling: bool = False


class DeepSeekChatWrapper(ChatWrapper):
    """All system messages first; function calls in the model's own syntax or one that works better with R1."""

    wrapper_name = "DeepSeek"
    options_model = DeepSeekOptions
    shown_options = ("keep_only_last_thought", "function_calling_syntax", "parallel_function_calling")
    stop_triggers = texts(EOS, EOT, _END, _USER)

    def check_options(self) -> None:
        if self.options.function_calling_syntax == "r1-workaround" and self.options.parallel_function_calling:
            raise InvalidWrapper('parallel function calling is not supported with "r1-workaround" syntax')

    @classmethod
    def default_settings(cls, options: Any) -> ChatWrapperSettings:
        return _SETTINGS[options.function_calling_syntax, options.parallel_function_calling]

    @classmethod
    def default_wording(cls, options: Any) -> dict[str, LlamaText]:
        functions = words.DEEPSEEK_R1_FUNCTIONS
        if options.function_calling_syntax != "r1-workaround":
            functions = _own_syntax_wording(cls.default_settings(options))
        return {**super().default_wording(options), words.FUNCTIONS: functions}

    def functions_documentation(self, functions: Functions, document_params: bool) -> Sequence[Piece]:
        return [llama_3_2_signatures(functions, document_params)]

    def frame(self, history: Sequence[HistoryItem], functions: Functions | None, document_params: bool) -> Frame:
        items = self.add_available_functions_system_message_to_history(history, functions, document_params)
        opening: list[Piece] = [BOS]
        write_systems(opening, [item for item in items if isinstance(item, SystemItem)])
        return Frame(items, functions, document_params, opening)

    def write_unit(self, out: list[Piece], unit: Unit, first: bool, last: bool, frame: Frame) -> None:
        item = unit[0]
        if isinstance(item, UserItem):
            out.append(_USER)
            out.append(item.text)
        elif isinstance(item, ModelItem):
            response = item.response
            if not last and self.options.keep_only_last_thought:
                response = without_thoughts(item)
            out.append(_ASSISTANT)
            self.write_response(out, response)
            if not last:
                out.append(_END)


def _own_syntax_wording(settings: ChatWrapperSettings) -> LlamaText:
    """The call syntax spelled out in words from the settings."""
    functions = settings.functions
    call = functions.call

    def spelled(number: str) -> list[Piece]:
        name, params = f"funcName{number}", f"parameters{number}"
        return [*call.prefix.values, name, *call.params_prefix.values, params, *call.suffix.values]

    if functions.parallelism is None:
        return words.deepseek_functions(spelled(""), None)
    around = functions.parallelism.call
    before, between, after = [
        list(text.values) if text is not None else []
        for text in (around.section_prefix, around.between_calls, around.section_suffix)
    ]
    one = [*before, *spelled(""), *after]
    return words.deepseek_functions(one, [*before, *spelled("1"), *between, *spelled("2"), *after])


def _settings(
    call: tuple[str, str, str],
    result: tuple[str, str],
    parallelism: dict[str, Any] | None = None,
    reopens: bool = False,
) -> ChatWrapperSettings:
    prefix, params_prefix, suffix = call
    functions: dict[str, Any] = {
        "call": {
            "optionalPrefixSpace": True,
            "prefix": [special_json(prefix)],
            "paramsPrefix": [special_json(params_prefix)],
            "suffix": [special_json(suffix)],
        },
        "result": {"prefix": [special_json(result[0])], "suffix": [special_json(result[1])]},
    }
    if parallelism is not None:
        functions["parallelism"] = parallelism
    return ChatWrapperSettings.from_json(
        {
            "supportsSystemMessages": True,
            "functions": functions,
            "segments": {
                "reiterateStackAfterFunctionCalls": True,
                "thought": {
                    "prefix": [special_json("<think>")],
                    "suffix": [special_json("</think>")],
                    "reopenAfterFunctionCalls": reopens,
                },
            },
        }
    )


def _parallelism(result_end: str) -> dict[str, Any]:
    return {
        "call": {
            "sectionPrefix": [special_json("<｜tool▁calls▁begin｜>")],
            "betweenCalls": [special_json("\n")],
            "sectionSuffix": [special_json("<｜tool▁calls▁end｜><｜end▁of▁sentence｜>")],
        },
        "result": {
            "sectionPrefix": [special_json("<｜tool▁outputs▁begin｜>")],
            "betweenResults": [special_json("\n")],
            "sectionSuffix": [special_json(result_end)],
        },
    }


_OUTPUT = ("<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>")
_SETTINGS: Final = {
    ("r1-workaround", False): _settings(
        ("<function=", ">", "</function>"), ("<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>\n")
    ),
    ("simplified", False): _settings(
        ("<｜tool▁call▁begin｜>", "<｜tool▁sep｜>\n```json\n", "\n```<｜tool▁call▁end｜><｜end▁of▁sentence｜>"),
        _OUTPUT,
        reopens=True,
    ),
    ("simplified", True): _settings(
        ("<｜tool▁call▁begin｜>", "<｜tool▁sep｜>\n```json\n", "\n```<｜tool▁call▁end｜>"),
        _OUTPUT,
        _parallelism("<｜tool▁outputs▁end｜>"),
        reopens=True,
    ),
    ("original", False): _settings(
        (
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>",
            "\n```json\n",
            "\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>",
        ),
        (
            "<｜tool▁outputs▁begin｜><｜tool▁output▁begin｜>",
            "<｜tool▁output▁end｜><｜tool▁outputs▁end｜><｜Assistant｜>",
        ),
    ),
    ("original", True): _settings(
        ("<｜tool▁call▁begin｜>function<｜tool▁sep｜>", "\n```json\n", "\n```<｜tool▁call▁end｜>"),
        _OUTPUT,
        _parallelism("<｜tool▁outputs▁end｜><｜Assistant｜>"),
    ),
}
