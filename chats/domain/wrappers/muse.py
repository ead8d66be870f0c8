"""Muse (chat-wrappers.md section 10.17)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from pydantic import Field

from chats.domain import wording as words
from chats.domain.history_items import (
    FunctionCall,
    Functions,
    HistoryItem,
    ResponseEntry,
    Segment,
    SystemItem,
)
from chats.domain.js_json import js_ordered, json_dumps
from chats.domain.llama_text import LlamaText, Piece
from chats.domain.wording import filled
from chats.domain.wrapper_settings import ChatWrapperSettings
from chats.domain.wrappers.addressed import START_ASSISTANT, AddressedChatWrapper
from chats.domain.wrappers.base import Frame, WrapperOptions
from chats.domain.wrappers.context_state import ContextState, NoPrefixTrigger, PrefixTrigger, Rerender
from chats.domain.wrappers.dates import NOW, OptionalDate, moment
from chats.domain.wrappers.pieces import (
    BOS,
    EOS,
    EOT,
    GAP,
    special,
    special_json,
    texts,
)

_ASSISTANT: Final = special(START_ASSISTANT)
_SYSTEM: Final = special("<|start|>system<|message|>")
_USER: Final = special("<|start|>user<|message|>")
_TO_USER: Final = special("<|start|>assistant to=user<|message|>")
_TO_SELF: Final = special("<|start|>assistant to=self<|message|>")
_END: Final = special("<|eot|>")
_MORE: Final = special("<|eom|>")
_STOP: Final = texts(EOS, special("<|eot|>"), EOT)
_RERENDER: Final = Rerender(tuple(texts(special("<|eom|>"))), "closeResponseItem")
_PREFIX_TRIGGERS: Final = (
    PrefixTrigger("segment", tuple(texts(special(" to=self<|message|>"))), "thought"),
    PrefixTrigger("response", tuple(texts(special(" to=user<|message|>")))),
)
_ANSWERS: Final = NoPrefixTrigger("response", LlamaText(special(" to=user<|message|>")))
_CALLS: Final = NoPrefixTrigger("functionCall", LlamaText())


class MuseOptions(WrapperOptions):
    reasoning_strength: str = "high"
    keep_only_last_thought: bool = False
    knowledge_cutoff: OptionalDate = datetime(2026, 1, 4, tzinfo=UTC)
    today_date: OptionalDate = NOW
    system_message_in_special_tokens_text: bool = Field(default=False, alias="_systemMessageInSpecialTokensText")


class MuseChatWrapper(AddressedChatWrapper):
    """Every message of the model says whom it is for: itself, the user, or a tool."""

    wrapper_name = "Muse"
    user_start = _USER
    message_end = _END
    options_model = MuseOptions
    shown_options = ("reasoning_strength", "keep_only_last_thought", "knowledge_cutoff", "today_date")

    @classmethod
    def default_settings(cls, options: Any) -> ChatWrapperSettings:
        return _SETTINGS

    @classmethod
    def default_wording(cls, options: Any) -> dict[str, LlamaText]:
        return {
            **super().default_wording(options),
            words.FUNCTIONS: words.MUSE_FUNCTIONS,
            words.DEFAULT_SYSTEM: words.MUSE_DEFAULT_SYSTEM,
        }

    def functions_text(self, functions: Functions, document_params: bool) -> LlamaText:
        if not functions:
            return LlamaText()
        schemas = []
        for name, definition in js_ordered(functions):
            description = definition.get("description")
            params = definition.get("params")
            schema = {"name": name, "description": "" if description is None else description}
            if document_params:
                schema["parameters"] = {} if params is None else params
            schemas.append(json_dumps(schema))
        namespaces = [json_dumps({"name": name, "description": ""}) for name in _namespaces(functions)]
        slots = {words.SLOT_FUNCTIONS: ["\n".join(schemas)], words.SLOT_NAMESPACES: ["\n".join(namespaces)]}
        return LlamaText.of(filled(self.wording[words.FUNCTIONS], slots))

    def frame(self, history: Sequence[HistoryItem], functions: Functions | None, document_params: bool) -> Frame:
        is_special = self.options.system_message_in_special_tokens_text
        opening: list[Piece] = [BOS, _SYSTEM]
        rest = history
        if history and isinstance(history[0], SystemItem):
            opening.extend(history[0].text.values)
            opening.append(special("\n") if is_special else "\n")
            rest = history[1:]
        else:
            opening.extend(self._default_message())
        about: list[Piece] = [f"\nReasoning strength: {self.options.reasoning_strength}."]
        if functions:
            about.append(GAP)
            about.extend(self.generate_available_functions_system_text(functions, document_params).values)
        recipients = ["self", *[f"{name}.*" for name in _namespaces(functions or {})], "user"]
        quoted = ", ".join(f'"{name}"' for name in recipients)  # as they are: the model repeats them unescaped
        about.append(f"\n\n# Valid recipients: {quoted}.")
        opening.extend(_specialised(about) if is_special else about)
        opening.append(_END)
        return Frame(rest, functions, document_params, opening)

    def _default_message(self) -> list[Piece]:
        lines: list[str] = []
        cutoff = moment(self.options.knowledge_cutoff, self.clock)
        if cutoff is not None:
            lines.append(f"\nKnowledge cutoff: {_day(cutoff.astimezone(UTC))}.")
        today = moment(self.options.today_date, self.clock)
        if today is not None:
            lines.append(f"\nCurrent date: {_day(self.clock.local(today))}.")
        return [*self.wording[words.DEFAULT_SYSTEM].values, *lines]

    def write_late_system(self, out: list[Piece], item: SystemItem) -> None:
        # The original drops the text.
        out.append(_SYSTEM)

    def without_end(self, text: str) -> str:
        return text.removesuffix("<|eot|>")

    def write_messages(
        self,
        out: list[Piece],
        response: Sequence[ResponseEntry],
        use_raw: bool,
        last_item: bool,
        keep_only_last_thought: bool,
    ) -> bool:
        open_recipient = True
        pending: list[FunctionCall] = []

        def flush() -> None:
            if pending:
                out.append(_ASSISTANT)
                self.write_calls(out, pending, use_raw)
                pending.clear()

        for index, entry in enumerate(response):
            is_end = last_item and index == len(response) - 1
            if isinstance(entry, FunctionCall):
                if entry.starts_new_chunk:
                    flush()
                pending.append(entry)
            elif isinstance(entry, str):
                if not entry and not is_end:
                    continue
                flush()
                out += [_TO_USER, entry]
                if is_end:
                    open_recipient = False
                else:
                    out.append(_END)
            else:
                flush()
                self._write_segment(out, entry, use_raw, last_item, keep_only_last_thought)
                if is_end and entry.segment_type == "thought" and not entry.ended:
                    open_recipient = False
        flush()
        if open_recipient and last_item:
            out.append(_ASSISTANT)
        return open_recipient

    @staticmethod
    def _write_segment(
        out: list[Piece], segment: Segment, use_raw: bool, last_item: bool, keep_only_last_thought: bool
    ) -> None:
        if use_raw and segment.ended and segment.raw is not None:
            out.append(_ASSISTANT)
            out.extend(segment.raw.values)
        elif segment.segment_type == "thought" and (last_item or not keep_only_last_thought):
            out += [_TO_SELF, segment.text]
            if segment.ended or not last_item:
                out.append(_MORE)

    def generate_initial_chat_history(self, system_prompt: str | None = None) -> list[HistoryItem]:
        """The default message for an empty prompt, else as everywhere."""
        if system_prompt == "":
            return [SystemItem(LlamaText.of(self._default_message()))]
        return super().generate_initial_chat_history(system_prompt)

    def state(self, context_text: LlamaText, frame: Frame) -> ContextState:
        if not self.needs_triggers(frame):
            return ContextState(context_text, _STOP, rerender=_RERENDER, detect_function_calls=False)
        return ContextState(
            context_text,
            _STOP,
            prefix_triggers=_PREFIX_TRIGGERS,
            no_prefix_trigger=_CALLS if frame.functions else _ANSWERS,
            rerender=_RERENDER,
            detect_function_calls=True,
        )


def _namespaces(functions: Functions) -> list[str]:
    """The distinct first dot-parts of the names, in order."""
    return list(dict.fromkeys([name.partition(".")[0] for name, _ in js_ordered(functions)]))


def _specialised(pieces: Sequence[Piece]) -> list[Piece]:
    return [special(piece) if isinstance(piece, str) else piece for piece in pieces]


def _day(date: datetime) -> str:
    return f"{date.day:02d}-{date.month:02d}-{date.year:04d}"


_SETTINGS: Final = ChatWrapperSettings.from_json(
    {
        "supportsSystemMessages": True,
        "functions": {
            "call": {
                "optionalPrefixSpace": False,
                "prefix": [special_json(" to=")],
                "paramsPrefix": [
                    special_json('<|message|><atem:function_calls>\n<atem:invoke name="'),
                    "{{functionName}}",
                    special_json('">\n<atem:parameter name="params">'),
                ],
                "suffix": [special_json("</atem:parameter>\n</atem:invoke>\n</atem:function_calls>")],
                "emptyCallParamsPlaceholder": {},
            },
            "parallelism": {
                "call": {
                    "sectionPrefix": "",
                    "betweenCalls": [special_json("<|eom|><|start|>assistant")],
                    "sectionSuffix": [special_json("<|eot|>")],
                },
                "result": {"sectionPrefix": ""},
            },
            "result": {
                "prefix": [
                    special_json("<|start|>tool "),
                    "{{functionName}}",
                    special_json('<|message|><tool_output name="'),
                    "{{functionName}}",
                    special_json('">\n'),
                ],
                "suffix": [special_json("\n</tool_output><|eot|>")],
            },
        },
        "segments": {"thought": {"prefix": [special_json(" to=self<|message|>")], "suffix": [special_json("<|eom|>")]}},
    }
)
