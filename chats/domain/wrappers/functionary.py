"""Functionary in three variations (chat-wrappers.md section 10.10)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, TypeAlias

from chats.domain import wording as words
from chats.domain.functions import typescript_types
from chats.domain.history_items import (
    FunctionCall,
    Functions,
    HistoryItem,
    ModelItem,
    ResponseEntry,
    SystemItem,
    UserItem,
)
from chats.domain.js_json import ABSENT, json_dumps
from chats.domain.llama_text import LlamaText, Piece
from chats.domain.wrapper_settings import ChatWrapperSettings
from chats.domain.wrappers.base import ChatWrapper, Frame, Unit, WrapperOptions
from chats.domain.wrappers.context_state import ContextState, FunctionCallStart
from chats.domain.wrappers.llama import LLAMA_3_STOP
from chats.domain.wrappers.pieces import (
    BOS,
    EOS,
    has_content,
    of_origin,
    special,
    special_json,
    texts,
)

Run: TypeAlias = "list[ResponseEntry] | FunctionCall"
"""Texts and segments in a row, or one call."""

_SYSTEM = special("<|start_header_id|>system<|end_header_id|>\n\n")
_USER = special("<|start_header_id|>user<|end_header_id|>\n\n")
_ASSISTANT = special("<|start_header_id|>assistant<|end_header_id|>\n\n")
_EOT_ID = special("<|eot_id|>")
_LINE = special("\n")
_TO_ALL = ">>>all\n"
_STOP: Final = special("<|stop|>")
_V2_HEADER = "<|from|>{}\n<|recipient|>all\n<|content|>"
_V2_STOP_TEXTS = (" <|stop|>", "<|stop|>", "\n<|from|>user")
_V2_OTHER_STOP_TEXTS = ("\n<|from|>assistant", "\n<|from|>system")


class FunctionaryOptions(WrapperOptions):
    variation: Literal["v3", "v2.llama3", "v2"] = "v3"


class FunctionaryChatWrapper(ChatWrapper):
    """Every message says whom it is for; calls are messages to a function."""

    wrapper_name = "Functionary"
    options_model = FunctionaryOptions
    shown_options = ("variation",)

    @classmethod
    def default_settings(cls, options: Any) -> ChatWrapperSettings:
        return _SETTINGS[options.variation]

    @classmethod
    def default_wording(cls, options: Any) -> dict[str, LlamaText]:
        is_v3 = options.variation == "v3"
        return {
            **super().default_wording(options),
            words.FUNCTIONS: words.FUNCTIONARY_V3_FUNCTIONS if is_v3 else words.FUNCTIONARY_V2_FUNCTIONS,
            words.FUNCTIONS_NOTE: words.FUNCTIONARY_NOTE,
        }

    def functions_documentation(self, functions: Functions, document_params: bool) -> Sequence[Piece]:
        return [typescript_types(functions, document_params, reserved=("all",))]

    def add_available_functions_system_message_to_history(
        self, history: Sequence[HistoryItem], functions: Functions | None, document_params: bool = True
    ) -> Sequence[HistoryItem]:
        """Two system items where the first system item is, or else at the start."""
        if not functions:
            return history
        block = self.functions_item(functions, document_params)
        note = self.kept_item(self.wording[words.FUNCTIONS_NOTE])
        at = next((index for index, item in enumerate(history) if isinstance(item, SystemItem)), 0)
        return [*history[:at], block, note, *history[at:]]

    def frame(self, history: Sequence[HistoryItem], functions: Functions | None, document_params: bool) -> Frame:
        items = self.add_available_functions_system_message_to_history(history, functions, document_params)
        opening = () if self.options.variation == "v3" else (BOS,)
        return Frame(items, functions, document_params, opening)

    def write_unit(self, out: list[Piece], unit: Unit, first: bool, last: bool, frame: Frame) -> None:
        item = unit[0]
        if self.options.variation == "v2":
            self._write_v2(out, item, first, last, bool(frame.functions))
        elif isinstance(item, ModelItem):
            self._write_model(out, item.response, last, bool(frame.functions))
        elif isinstance(item, UserItem):
            out += [_USER, item.text, _EOT_ID]
        elif item.text:
            out += [_SYSTEM, *item.text.values, _EOT_ID]

    # v3 and v2.llama3

    def _write_model(
        self, out: list[Piece], response: Sequence[ResponseEntry], last: bool, has_functions: bool
    ) -> None:
        if last and not response:
            out.append(_ASSISTANT)
            return
        is_v3 = self.options.variation == "v3"
        start = len(out)
        batch = _Batch(self._write_call_to if is_v3 else self._write_reserved_call, self._write_tool, _EOT_ID)
        runs = _runs(response)
        for index, run in enumerate(runs):
            if isinstance(run, FunctionCall):
                if run.starts_new_chunk:
                    batch.flush(out)
                batch.add(run)
                continue
            batch.flush(out)
            is_last_run = index == len(runs) - 1
            text: list[Piece] = []
            self.write_response(text, run)
            out.append(_ASSISTANT)
            if is_v3 and is_last_run and not has_content(text):
                out.append(special(">>>") if has_functions else special(_TO_ALL))
                continue
            if is_v3:
                out.append(special(_TO_ALL))
            out.extend(text)
            if is_last_run and not last:
                out.append(_EOT_ID)
        batch.flush(out)
        if last and (len(out) == start or not isinstance(response[-1], str)):
            out.append(_ASSISTANT)
            if is_v3 and not has_functions:
                out.append(special(_TO_ALL))

    def _write_call_to(self, out: list[Piece], call: FunctionCall, is_first: bool) -> None:
        self._write_named_call(out, call, special(">>>"), _LINE)

    def _write_reserved_call(self, out: list[Piece], call: FunctionCall, is_first: bool) -> None:
        self._write_named_call(out, call, special("<|reserved_special_token_249|>"), _LINE)

    def _write_named_call(self, out: list[Piece], call: FunctionCall, before: Piece, after_name: Piece) -> None:
        if call.raw_call is not None:
            out.extend(call.raw_call.values)
            return
        out.append(before)
        out.append(of_origin(call.name, call.origin))
        out.append(after_name)
        out.append(self.params_text(call) if call.params is not ABSENT else "")

    def _write_tool(self, out: list[Piece], call: FunctionCall) -> None:
        if self.options.variation == "v3":
            out.append(special("<|start_header_id|>tool<|end_header_id|>\n\n"))
        else:
            out += [special("<|start_header_id|>tool<|end_header_id|>\n\nname="), call.name, _LINE]
        out += [_result(call), _EOT_ID]

    # v2

    def _write_v2(self, out: list[Piece], item: HistoryItem, first: bool, last: bool, has_functions: bool) -> None:
        if isinstance(item, ModelItem):
            self._write_v2_model(out, item.response, first, last, has_functions)
            return
        if isinstance(item, UserItem):
            out.append(_v2_header("user", first))
            out.append(item.text)
        elif item.text:
            out.append(_v2_header("system", first))
            out.extend(item.text.values)

    def _write_v2_model(
        self, out: list[Piece], response: Sequence[ResponseEntry], first: bool, last: bool, has_functions: bool
    ) -> None:
        if last and not response and not has_functions:
            out.append(_v2_header("assistant", first))
            return

        def write_call(out: list[Piece], call: FunctionCall, is_first: bool) -> None:
            line = "" if first and is_first else "\n"
            before = special(f"{line}<|from|>assistant\n<|recipient|>")
            self._write_named_call(out, call, before, special("\n<|content|>"))

        start = len(out)
        batch = _Batch(write_call, _write_v2_result, _STOP)
        for index, run in enumerate(_runs(response)):
            if isinstance(run, FunctionCall):
                batch.add(run, is_first=index == 0)
                continue
            batch.flush(out)
            out.append(_v2_header("assistant", first and index == 0))
            self.write_response(out, run)
        batch.flush(out)
        if len(out) == start:
            if not (last and has_functions):
                out.append(_v2_header("assistant", first))
        elif last and not has_functions and not isinstance(response[-1], str):
            out.append(_v2_header("assistant", first))
        if not last:
            out.append(_STOP)

    # State

    def state(self, context_text: LlamaText, frame: Frame) -> ContextState:
        last = frame.items[-1] if frame.items else None
        answers = isinstance(last, ModelItem) and bool(last.response)
        ends_with_text = answers and isinstance(last.response[-1], str) and bool(last.response[-1])  # type: ignore[union-attr]
        if self.options.variation == "v2":
            if not frame.functions:
                return ContextState(context_text, _V2_STOP)
            return _engaged(context_text, _V2_FUNCTIONS_STOP, _V2_DISENGAGE)
        if self.options.variation == "v3" and frame.functions and not ends_with_text:
            return _engaged(context_text, LLAMA_3_STOP, _V3_DISENGAGE)
        return ContextState(context_text, LLAMA_3_STOP)


class _Batch:
    """Calls and results that wait to be printed together; printed calls are never cleared, as in the original."""

    def __init__(
        self,
        write_call: Callable[[list[Piece], FunctionCall, bool], None],
        write_result: Callable[[list[Piece], FunctionCall], None],
        end: Piece,
    ) -> None:
        self._write_call = write_call
        self._write_result = write_result
        self._end = end
        self._calls: list[Piece] = []
        self._results: list[Piece] = []

    def add(self, call: FunctionCall, is_first: bool = False) -> None:
        self._write_call(self._calls, call, is_first)
        self._write_result(self._results, call)

    def flush(self, out: list[Piece]) -> None:
        if not self._results:
            return
        out.extend(self._calls)
        out.append(self._end)
        out.extend(self._results)
        self._results = []


def _runs(response: Sequence[ResponseEntry]) -> list[Run]:
    runs: list[Run] = []
    for entry in response:
        if isinstance(entry, FunctionCall):
            runs.append(entry)
        elif runs and isinstance(runs[-1], list):
            runs[-1].append(entry)
        else:
            runs.append([entry])
    return runs


def _result(call: FunctionCall) -> str:
    return "" if call.result is ABSENT else of_origin(json_dumps(call.result), call.result_origin)


def _v2_header(role: str, first: bool) -> Piece:
    return special(("" if first else "\n") + _V2_HEADER.format(role))


def _write_v2_result(out: list[Piece], call: FunctionCall) -> None:
    out += [special("\n<|from|>"), call.name, special("\n<|recipient|>all\n<|content|>"), _result(call)]


def _engaged(context_text: LlamaText, stop: Sequence[LlamaText], disengage: tuple[LlamaText, ...]) -> ContextState:
    return ContextState(
        context_text, stop, ignore_start_text=disengage, function_call=FunctionCallStart(True, disengage)
    )


def _both(text: str) -> list[LlamaText]:
    return texts(special(text), text)


_V3_DISENGAGE: Final = tuple(_both(_TO_ALL))
_V2_DISENGAGE: Final = tuple(
    [text for before in ("\n", "\n\n", " \n", " \n\n") for text in _both(before + _V2_HEADER.format("assistant"))]
)
_V2_ALL_STOP_TEXTS = (*_V2_STOP_TEXTS, *_V2_OTHER_STOP_TEXTS)
_V2_STOP: Final = texts(EOS, _STOP, *_V2_ALL_STOP_TEXTS, *[special(text) for text in _V2_ALL_STOP_TEXTS])
_V2_FUNCTIONS_STOP: Final = texts(EOS, _STOP, *_V2_STOP_TEXTS, *[special(text) for text in _V2_STOP_TEXTS])


def _settings(
    prefix: str, params_prefix: str, result_prefix: list[Any], result_suffix: Any, between: str, end: str
) -> ChatWrapperSettings:
    return ChatWrapperSettings.from_json(
        {
            "supportsSystemMessages": True,
            "functions": {
                "call": {
                    "optionalPrefixSpace": True,
                    "prefix": [special_json(prefix)],
                    "paramsPrefix": [special_json(params_prefix)],
                    "suffix": "",
                },
                "result": {"prefix": result_prefix, "suffix": result_suffix},
                "parallelism": {
                    "call": {"sectionPrefix": "", "betweenCalls": between, "sectionSuffix": [special_json(end)]},
                    "result": {"sectionPrefix": "", "betweenResults": "", "sectionSuffix": ""},
                },
            },
            "segments": {},
        }
    )


_TOOL = "<|start_header_id|>tool<|end_header_id|>\n\n"
_SETTINGS: Final = {
    "v3": _settings(">>>", "\n", [special_json(_TOOL)], [special_json("<|eot_id|>")], "", "<|eot_id|>"),
    "v2.llama3": _settings(
        "<|reserved_special_token_249|>",
        "\n",
        [*[special_json(f"{_TOOL}name=")], "{{functionName}}", *[special_json("\n")]],
        [special_json("<|eot_id|>")],
        "",
        "<|eot_id|>",
    ),
    "v2": _settings(
        "\n<|from|>assistant\n<|recipient|>",
        "\n<|content|>",
        [*[special_json("\n<|from|>")], "{{functionName}}", *[special_json("\n<|recipient|>all\n<|content|>")]],
        "",
        "\n",
        "<|stop|>",
    ),
}
