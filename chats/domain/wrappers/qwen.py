"""Qwen 3 and 3.5, also used for QwQ and Qwen 2.5 (chat-wrappers.md section 10.14)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

from pydantic import Field

from chats.domain import wording as words
from chats.domain.functions import qwen_signatures
from chats.domain.history_items import (
    FunctionCall,
    Functions,
    ModelItem,
    ResponseEntry,
    Segment,
    is_thought,
    without_thoughts,
)
from chats.domain.llama_text import LlamaText, Piece
from chats.domain.wrapper_settings import ChatWrapperSettings
from chats.domain.wrappers.base import Frame, WrapperOptions
from chats.domain.wrappers.chatml import ChatMLChatWrapper
from chats.domain.wrappers.pieces import of_origin, special, special_json

_EMPTY_THOUGHT: Final = Segment("thought", "", True, raw=LlamaText(special("<think>\n\n</think>\n\n")))


class QwenOptions(WrapperOptions):
    keep_only_last_thought: bool = True
    thoughts: Literal["auto", "discourage", "modelInitiated"] = "auto"
    variation: Literal["3", "3.5"] = "3"
    line_break_before_function_call_prefix: bool = Field(default=False, alias="_lineBreakBeforeFunctionCallPrefix")
    flat_function_result_string: bool = Field(default=False, alias="_flatFunctionResultString")
    ensure_model_thought_before_text_on_last_response: bool = Field(
        default=False, alias="_ensureModelThoughtBeforeTextOnLastResponse"
    )


class QwenChatWrapper(ChatMLChatWrapper):
    """ChatML without a BOS token, with thoughts and tools."""

    wrapper_name = "Qwen"
    options_model = QwenOptions
    shown_options = ("variation", "keep_only_last_thought", "thoughts")
    opening = ()

    @classmethod
    def default_settings(cls, options: Any) -> ChatWrapperSettings:
        breaks_line = options.line_break_before_function_call_prefix
        if options.variation == "3.5":
            return _settings_3_5(breaks_line, options.thoughts == "auto")
        return _settings_3(breaks_line)

    @classmethod
    def default_wording(cls, options: Any) -> dict[str, LlamaText]:
        is_3_5 = options.variation == "3.5"
        return {
            **super().default_wording(options),
            words.FUNCTIONS: words.QWEN_3_5_FUNCTIONS if is_3_5 else words.QWEN_3_FUNCTIONS,
        }

    def functions_documentation(self, functions: Functions, document_params: bool) -> Sequence[Piece]:
        return [qwen_signatures(functions, document_params)]

    def write_model(self, out: list[Piece], item: ModelItem, last: bool, frame: Frame) -> None:
        options: Any = self.options
        response: Sequence[ResponseEntry] = item.response
        if not last:
            if options.keep_only_last_thought:
                response = without_thoughts(item)
            self.write_response(out, response)
            return
        if options.thoughts == "discourage":
            calls = [index for index, entry in enumerate(response) if isinstance(entry, FunctionCall)]
            at = calls[-1] + 1 if calls else 0
            response = [*response[:at], _EMPTY_THOUGHT, *response[at:]]
        if options.ensure_model_thought_before_text_on_last_response:
            response = _thought_before_texts(response)
        self.write_response(out, response)

    def result_text(self, call: FunctionCall) -> str:
        if self.options.flat_function_result_string and isinstance(call.result, str):
            return of_origin(call.result, call.result_origin)
        return super().result_text(call)


def _thought_before_texts(response: Sequence[ResponseEntry]) -> list[ResponseEntry]:
    out: list[ResponseEntry] = []
    previous: ResponseEntry | None = None
    for entry in response:
        if isinstance(entry, str) and not is_thought(previous):
            out.append(_EMPTY_THOUGHT)
        out.append(entry)
        previous = entry
    return out


def _settings(call: dict[str, Any], around_calls: dict[str, Any], thought: dict[str, Any]) -> ChatWrapperSettings:
    return ChatWrapperSettings.from_json(
        {
            "supportsSystemMessages": True,
            "functions": {
                "call": {"optionalPrefixSpace": True, **call, "emptyCallParamsPlaceholder": {}},
                "result": {
                    "prefix": [special_json("\n<tool_response>\n")],
                    "suffix": [special_json("\n</tool_response>")],
                },
                "parallelism": {
                    "call": {**around_calls, "sectionSuffix": [special_json("<|im_end|>\n")]},
                    "result": {
                        "sectionPrefix": [special_json("<|im_start|>user")],
                        "sectionSuffix": [special_json("<|im_end|>\n<|im_start|>assistant\n")],
                    },
                },
            },
            "segments": {
                "reiterateStackAfterFunctionCalls": True,
                "thought": {
                    "prefix": [special_json("<think>\n")],
                    "suffix": [special_json("\n</think>")],
                    **thought,
                },
            },
        }
    )


def _settings_3(breaks_line: bool) -> ChatWrapperSettings:
    opening: list[Any] = [special_json("<tool_call>"), '\n{"name": "']
    call = {
        "prefix": ["\n", *opening] if breaks_line else opening,
        "paramsPrefix": '", "arguments": ',
        "suffix": ["}\n", special_json("</tool_call>")],
    }
    return _settings(call, {"sectionPrefix": "", "betweenCalls": "" if breaks_line else "\n"}, {})


def _settings_3_5(breaks_line: bool, opens_thought: bool) -> ChatWrapperSettings:
    call = {
        "prefix": [special_json("<tool_call>\n<function=")],
        "paramsPrefix": ">\n<parameter=params>\n",
        "suffix": [special_json("\n</parameter>\n</function>\n</tool_call>")],
    }
    around_calls = {"sectionPrefix": "\n\n" if breaks_line else "", "betweenCalls": "\n"}
    return _settings(call, around_calls, {"openOnResponseStart": opens_thought})
