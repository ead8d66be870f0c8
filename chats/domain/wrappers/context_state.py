"""What a wrapper gives for a chat: the rendered text, and how the answer is read (chat-wrappers.md section 7.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from chats.domain.history_items import SegmentType
from chats.domain.llama_text import LlamaText


@dataclass(frozen=True)
class PrefixTrigger:
    """A beginning of an answer that decides what it is (Harmony, Muse)."""

    type: Literal["segment", "response", "functionCall"]
    triggers: tuple[LlamaText, ...]
    segment_type: SegmentType | None = None
    inject: LlamaText | None = None
    replace_trigger: bool | None = None

    def to_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {"type": self.type}
        if self.segment_type is not None:
            out["segmentType"] = self.segment_type
        out["triggers"] = [trigger.to_json() for trigger in self.triggers]
        if self.replace_trigger is not None:
            out["replaceTrigger"] = self.replace_trigger
        if self.inject is not None:
            out["inject"] = self.inject.to_json()
        return out


@dataclass(frozen=True)
class NoPrefixTrigger:
    """What an answer is when no prefix trigger matches, and what is put before it."""

    type: Literal["segment", "response", "functionCall"]
    inject: LlamaText
    segment_type: SegmentType | None = None

    def to_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {"type": self.type}
        if self.segment_type is not None:
            out["segmentType"] = self.segment_type
        out["inject"] = self.inject.to_json()
        return out


@dataclass(frozen=True)
class Rerender:
    """Triggers after which the history is rendered again with the answer so far."""

    triggers: tuple[LlamaText, ...]
    action: Literal["closeResponseItem"] | None = None

    def to_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {"triggers": [trigger.to_json() for trigger in self.triggers]}
        if self.action is not None:
            out["action"] = self.action
        return out


@dataclass(frozen=True)
class FunctionCallStart:
    """Whether generation starts inside a call, and the texts that end that at once."""

    initially_engaged: bool
    disengage_initially_engaged: tuple[LlamaText, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "initiallyEngaged": self.initially_engaged,
            "disengageInitiallyEngaged": [text.to_json() for text in self.disengage_initially_engaged],
        }


@dataclass(frozen=True)
class ContextState:
    """A rendered chat and how to read the answer; None means absent."""

    context_text: LlamaText
    stop_generation_triggers: Sequence[LlamaText]
    ignore_start_text: Sequence[LlamaText] | None = None
    function_call: FunctionCallStart | None = None
    prefix_triggers: Sequence[PrefixTrigger] | None = None
    no_prefix_trigger: NoPrefixTrigger | None = None
    rerender: Rerender | None = None
    detect_function_calls: bool | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def rest_to_json(self) -> dict[str, Any]:
        """Everything besides the text, in the original's names."""
        out: dict[str, Any] = {"stopGenerationTriggers": [text.to_json() for text in self.stop_generation_triggers]}
        if self.ignore_start_text is not None:
            out["ignoreStartText"] = [text.to_json() for text in self.ignore_start_text]
        if self.function_call is not None:
            out["functionCall"] = self.function_call.to_json()
        if self.prefix_triggers is not None:
            out["prefixTriggers"] = [trigger.to_json() for trigger in self.prefix_triggers]
        if self.no_prefix_trigger is not None:
            out["noPrefixTrigger"] = self.no_prefix_trigger.to_json()
        if self.detect_function_calls is not None:
            out["detectFunctionCalls"] = self.detect_function_calls
        if self.rerender is not None:
            out["rerender"] = self.rerender.to_json()
        return {**out, **self.extra}
