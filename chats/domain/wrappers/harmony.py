"""Harmony, the format of gpt-oss (chat-wrappers.md section 10.15)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal

from pydantic import Field

from chats.domain import wording as words
from chats.domain.functions import typescript_types
from chats.domain.history_items import (
    FunctionCall,
    Functions,
    HistoryItem,
    ResponseEntry,
    Segment,
    SystemItem,
)
from chats.domain.js_json import ABSENT, Absence, js_trim
from chats.domain.llama_text import LlamaText, Piece
from chats.domain.wrapper_settings import ChatWrapperSettings
from chats.domain.wrappers.addressed import START_ASSISTANT, AddressedChatWrapper
from chats.domain.wrappers.base import Frame, WrapperOptions
from chats.domain.wrappers.context_state import ContextState, NoPrefixTrigger, PrefixTrigger, Rerender
from chats.domain.wrappers.dates import NOW, OptionalDate, moment
from chats.domain.wrappers.pieces import EOS, GAP, has_content, special, special_json, texts


class RequiredChannels(WrapperOptions):
    analysis: bool = True
    commentary: bool = True
    final: bool = True


class JinjaFlags(WrapperOptions):
    """Peculiarities of the model's published templates, to be told apart when a template is recognised."""

    empty_last_model_response_is_final_message: bool = False
    use_special_tokens_for_full_system_message: bool = False
    use_non_final_final_message: bool = False
    no_final_messages: bool = False
    disable_non_final_final_messages: bool = False
    formatting: int | None = None


class HarmonyOptions(WrapperOptions):
    """`model_identity` absent means the wording's, None or `""` none; dates as everywhere."""

    model_identity: str | Absence | None = ABSENT
    cutting_knowledge_date: OptionalDate = datetime(2024, 6, 1, tzinfo=UTC)
    today_date: OptionalDate = NOW
    reasoning_effort: Literal["high", "medium", "low"] | None = "medium"
    required_channels: RequiredChannels = RequiredChannels()
    keep_only_last_thought: bool = True
    jinja_flags: JinjaFlags = Field(default=JinjaFlags(), alias="_jinjaFlags")


_ASSISTANT: Final = special(START_ASSISTANT)
_END: Final = special("<|end|>")
_SYSTEM: Final = special("<|start|>system<|message|>")
_DEVELOPER: Final = special("<|start|>developer<|message|>")
_USER: Final = special("<|start|>user<|message|>")
_FINAL: Final = special("<|start|>assistant<|channel|>final<|message|>")
_PLAIN: Final = special("<|start|>assistant<|message|>")
_SEGMENTS: Final = {
    "thought": special("<|start|>assistant<|channel|>analysis<|message|>"),
    "comment": special("<|start|>assistant<|channel|>commentary<|message|>"),
}
_COMMENTARY: Final = special("<|start|>assistant<|channel|>commentary")
_STOP: Final = texts(EOS, special("<|return|>"), "<|return|>")
_RERENDER: Final = Rerender(tuple(texts(special("<|end|>"))), "closeResponseItem")
_PREFIX_TRIGGERS: Final = (
    PrefixTrigger("segment", tuple(texts(special("<|channel|>analysis<|message|>"))), "thought"),
    PrefixTrigger("segment", tuple(texts(special("<|channel|>commentary<|message|>"))), "comment"),
    PrefixTrigger("response", tuple(texts(special("<|channel|>final"))), inject=LlamaText(special("<|message|>"))),
    PrefixTrigger(
        "functionCall",
        tuple(texts(special("<|channel|>commentary to="))),
        inject=LlamaText(special("<|channel|>commentary")),
        replace_trigger=True,
    ),
    PrefixTrigger(
        "functionCall",
        tuple(texts(special("<|channel|>analysis to="))),
        inject=LlamaText(special("<|channel|>analysis")),
        replace_trigger=True,
    ),
)
_NO_PREFIX_TRIGGER: Final = NoPrefixTrigger("response", LlamaText(special("<|channel|>final<|message|>")))


class HarmonyChatWrapper(AddressedChatWrapper):
    """Messages in channels: analysis for thoughts, commentary for calls and comments, final for answers."""

    wrapper_name = "Harmony"
    user_start = _USER
    message_end = _END
    options_model = HarmonyOptions
    shown_options = (
        "cutting_knowledge_date",
        "today_date",
        "reasoning_effort",
        "required_channels",
        "keep_only_last_thought",
    )

    @classmethod
    def default_settings(cls, options: Any) -> ChatWrapperSettings:
        return _SETTINGS

    @classmethod
    def default_wording(cls, options: Any) -> dict[str, LlamaText]:
        return {
            words.SYSTEM_PROMPT: words.DEFAULT_SYSTEM_PROMPT,
            words.MODEL_IDENTITY: words.HARMONY_IDENTITY,
            words.COMMENTARY_CHANNEL: words.HARMONY_COMMENTARY,
        }

    @property
    def model_identity(self) -> str | None:
        """Who the model is told to be; the option, or the wording's sentence."""
        identity: str | Absence | None = self.options.model_identity
        return str(self.wording[words.MODEL_IDENTITY]) if identity is ABSENT else identity

    def properties_to_json(self) -> dict[str, Any]:
        return {"modelIdentity": self.model_identity, **super().properties_to_json()}

    def functions_text(self, functions: Functions, document_params: bool) -> LlamaText:
        if not functions:
            return LlamaText()
        types = typescript_types(functions, document_params)
        trimmed = "\n".join([js_trim(line) for line in types.split("\n")])
        return LlamaText(f"# Tools\n\n## functions\n\nnamespace functions {{\n\n{trimmed}\n\n}} // namespace functions")

    def frame(self, history: Sequence[HistoryItem], functions: Functions | None, document_params: bool) -> Frame:
        prompt: Sequence[Piece] = ()
        rest = history
        if history and isinstance(history[0], SystemItem):
            prompt = history[0].text.values
            rest = history[1:]
        opening: list[Piece] = [_SYSTEM]
        preamble = self._preamble(bool(functions))
        is_special = self.options.jinja_flags.use_special_tokens_for_full_system_message
        opening.append(special(preamble) if is_special else preamble)
        opening.append(_END)
        if functions or has_content(prompt):
            opening.append(_DEVELOPER)
            heading = "# Instructions\n\n" if functions or is_special else "# Instruction\n\n"
            opening.append(special(heading) if is_special else heading)
            opening.extend(prompt)
            if functions:
                if has_content(prompt):
                    opening.append(GAP)
                block = self.generate_available_functions_system_text(functions, document_params)
                opening.extend(block.values)
            opening.append(_END)
        return Frame(rest, functions, document_params, opening)

    def _preamble(self, has_functions: bool) -> str:
        options: Any = self.options
        formats = options.jinja_flags.formatting == 1
        lines: list[str] = []
        if self.model_identity:
            lines.append(self.model_identity)
        cutoff = moment(options.cutting_knowledge_date, self.clock)
        if cutoff is not None:
            date = cutoff.astimezone(UTC)
            lines.append(f"Knowledge cutoff: {date.year:04d}-{date.month:02d}")
        if formats:
            lines = ["".join(lines)] if len(lines) > 1 else lines
        today = moment(options.today_date, self.clock)
        if today is not None:
            local = self.clock.local(today)
            lines.append(f"Current date: {local.year:04d}-{local.month:02d}-{local.day:02d}")
        if options.reasoning_effort is not None:
            if lines:
                lines.append("")
            lines.append(f"{'reasoning' if formats else 'Reasoning'}: {options.reasoning_effort}")
        required = options.required_channels
        channels = [name for name in ("analysis", "commentary", "final") if getattr(required, name)]
        if channels:
            if lines:
                lines.append("")
            lines.append(f"# Valid channels: {', '.join(channels)}. Channel must be included for every message.")
            if formats or (required.commentary and has_functions):
                lines.append(str(self.wording[words.COMMENTARY_CHANNEL]))
        return "\n".join(lines)

    def write_late_system(self, out: list[Piece], item: SystemItem) -> None:
        out.append(_DEVELOPER)
        out.extend(item.text.values)

    def without_end(self, text: str) -> str:
        removed = text.removeprefix("<|end|>")
        return removed if removed != text else text.removeprefix("<|return|>")

    def write_messages(
        self,
        out: list[Piece],
        response: Sequence[ResponseEntry],
        use_raw: bool,
        last_item: bool,
        keep_only_last_thought: bool,
    ) -> bool:
        flags: JinjaFlags = self.options.jinja_flags
        open_channel = True
        for index, entry in enumerate(response):
            is_end = last_item and index == len(response) - 1
            if isinstance(entry, str):
                if is_end:
                    if entry or flags.empty_last_model_response_is_final_message:
                        out.append(_PLAIN if flags.use_non_final_final_message else _FINAL)
                        out.append(entry)
                        open_channel = False
                elif entry:
                    is_last_entry = index == len(response) - 1
                    is_plain = flags.no_final_messages or (flags.disable_non_final_final_messages and not is_last_entry)
                    out += [_PLAIN if is_plain else _FINAL, entry, _END]
            elif isinstance(entry, FunctionCall):
                self.write_call_or_raw(out, entry, use_raw)
                self.write_result(out, entry)
            elif use_raw and entry.ended and entry.raw is not None:
                out.append(_ASSISTANT)
                out.extend(entry.raw.values)
            elif entry.segment_type == "comment" or last_item or not keep_only_last_thought:
                self._write_segment(out, entry, last_item)
                if is_end and not entry.ended:
                    open_channel = False
        if open_channel and last_item:
            out.append(_ASSISTANT)
        return open_channel

    @staticmethod
    def _write_segment(out: list[Piece], segment: Segment, last_item: bool) -> None:
        out.append(_SEGMENTS[segment.segment_type])
        out.append(segment.text)
        if segment.ended or not last_item:
            out.append(_END)

    def write_call(self, out: list[Piece], call: FunctionCall) -> None:
        out.append(_COMMENTARY)
        super().write_call(out, call)

    def state(self, context_text: LlamaText, frame: Frame) -> ContextState:
        needs_triggers = self.needs_triggers(frame)
        return ContextState(
            context_text,
            _STOP,
            prefix_triggers=_PREFIX_TRIGGERS if needs_triggers else None,
            no_prefix_trigger=_NO_PREFIX_TRIGGER if needs_triggers else None,
            rerender=_RERENDER,
            detect_function_calls=False,
        )


_SETTINGS: Final = ChatWrapperSettings.from_json(
    {
        "supportsSystemMessages": True,
        "functions": {
            "call": {
                "optionalPrefixSpace": True,
                "prefix": [special_json(" to="), "functions."],
                "paramsPrefix": [special_json("<|constrain|>json<|message|>")],
                "suffix": [special_json("<|call|>")],
                "emptyCallParamsPlaceholder": {},
            },
            "result": {
                "prefix": [
                    special_json("<|start|>"),
                    "functions.{{functionName}}",
                    special_json(" to=assistant<|channel|>commentary<|message|>"),
                ],
                "suffix": [special_json("<|end|>")],
            },
        },
        "segments": {
            "thought": {
                "prefix": [special_json("<|channel|>analysis<|message|>")],
                "suffix": [special_json("<|end|>")],
            },
            "comment": {
                "prefix": [special_json("<|channel|>commentary<|message|>")],
                "suffix": [special_json("<|end|>")],
            },
        },
    }
)
