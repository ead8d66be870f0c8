"""What a caller may ask of a generation, and what it ends with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from chats.domain.history_items import HistoryItem, ModelItem, ResponseEntry, Segment, SegmentType
from chats.domain.llama_text import LlamaText, TextInput
from chats.domain.output_parsing.vocabulary import Token

StopReason = Literal["eogToken", "stopGenerationTrigger", "customStopTrigger", "maxTokens", "functionCalls"]


class GenerationError(ValueError):
    """The output can't be understood as the wrapper's format: an unknown function, params that don't fit …"""


@dataclass(frozen=True)
class GenerationOptions:
    """What a caller of the original may set. A budget of None has no limit."""

    trim_end: bool = False
    stop_triggers: Sequence[TextInput] = ()
    max_tokens: int | None = None
    max_parallel_calls: int | None = None
    budgets: Mapping[SegmentType, int | None] = field(default_factory=dict)
    budgets_include_response: bool = True
    record_contexts: bool = False


@dataclass(frozen=True)
class GeneratedCall:
    """A finished call; `params` is ABSENT where nothing was generated for them."""

    name: str
    params: Any
    raw: LlamaText


@dataclass(frozen=True)
class Generated:
    """A finished answer. `calls` is None where the original reports no list of calls."""

    entries: list[str | Segment]
    stop_reason: StopReason
    calls: list[GeneratedCall] | None = None
    stop_trigger: list[Token] | None = None

    @property
    def text(self) -> str:
        """The answer without its segments."""
        return "".join([entry for entry in self.entries if isinstance(entry, str)])


def with_response(history: Sequence[HistoryItem], entries: Sequence[str | Segment]) -> list[HistoryItem]:
    """The history with the entries added to its last model item; text and unfinished segments go on seamlessly."""
    out = list(history)
    if not entries or (len(entries) == 1 and entries[0] == ""):
        return out
    response: list[ResponseEntry] = []
    if out and isinstance(last_item := out[-1], ModelItem):
        response = list(last_item.response)
        out.pop()
    first, last = entries[0], response[-1] if response else None
    if isinstance(first, str) and isinstance(last, str):
        response[-1] = last + first
    elif (
        isinstance(first, Segment)
        and isinstance(last, Segment)
        and not last.ended
        and last.segment_type == first.segment_type
    ):
        raw = LlamaText(last.raw, first.raw) if last.raw is not None and first.raw is not None else None
        text = last.text + first.text
        response[-1] = Segment(last.segment_type, text, first.ended, raw, last.start_time, first.end_time)
    else:
        response.append(first)
    out.append(ModelItem((*response, *entries[1:])))
    return out
