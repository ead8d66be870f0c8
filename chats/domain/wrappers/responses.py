"""Writing a model's response: texts, segments inside each other, and calls (chat-wrappers.md section 7.6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from chats.domain.history_items import FunctionCall, ResponseEntry, Segment, SegmentType
from chats.domain.llama_text import LlamaText, Piece
from chats.domain.wrapper_settings import SegmentsSettings


@dataclass(frozen=True)
class SegmentSyntax:
    """How a wrapper's settings write segments. A suffix is None where a segment has none."""

    prefixes: Mapping[SegmentType, Sequence[Piece]]
    suffixes: Mapping[SegmentType, LlamaText | None]
    close_all: LlamaText | None
    reiterates: bool
    """Whether the segments that are open are opened again after calls."""

    @classmethod
    def of_settings(cls, settings: SegmentsSettings | None) -> SegmentSyntax:
        thought = settings.thought if settings else None
        comment = settings.comment if settings else None
        return cls(
            {
                "thought": values_of(thought.printed_prefix if thought else None),
                "comment": values_of(comment.printed_prefix if comment else None),
            },
            {"thought": thought.suffix if thought else None, "comment": comment.suffix if comment else None},
            settings.close_all_segments if settings else None,
            bool(settings and settings.reiterate_stack_after_function_calls),
        )


def values_of(text: LlamaText | None) -> Sequence[Piece]:
    """The pieces of a text that the settings may leave out."""
    return () if text is None else text.values


class ResponseWriter:
    """Writes one response to `out`; calls that belong together are handed to `write_calls`."""

    def __init__(
        self,
        syntax: SegmentSyntax,
        write_calls: Callable[[list[Piece], Sequence[FunctionCall], bool], None],
        out: list[Piece],
        use_raw: bool,
    ) -> None:
        self.syntax = syntax
        self.write_calls = write_calls
        self.out = out
        self.use_raw = use_raw
        self.pending: list[FunctionCall] = []
        self.stack: list[SegmentType] = []
        self.needs_reminder = False
        self.ended_without_suffix = False

    def write(self, response: Sequence[ResponseEntry]) -> None:
        for entry in response:
            if isinstance(entry, str):
                self._flush()
                self._remind()
                self.out.append(entry)
            elif isinstance(entry, Segment):
                self._flush()
                self._segment(entry)
            else:
                if entry.starts_new_chunk:
                    self._flush()
                self.pending.append(entry)
        self._flush()
        self._remind()

    def _flush(self) -> None:
        if not self.pending:
            return
        self.write_calls(self.out, self.pending, self.use_raw)
        self.pending = []
        self.needs_reminder = True

    def _remind(self) -> None:
        syntax = self.syntax
        if self.ended_without_suffix and not self.stack and syntax.close_all is not None:
            self.ended_without_suffix = False
            self.out.extend(syntax.close_all.values)
        elif self.needs_reminder and self.stack and syntax.reiterates:
            for kind in self.stack:
                self.out.extend(syntax.prefixes[kind])

    def _segment(self, segment: Segment) -> None:
        syntax = self.syntax
        kind = segment.segment_type
        is_top = bool(self.stack) and self.stack[-1] == kind
        suffix = syntax.suffixes[kind]
        if self.use_raw and segment.raw is not None:
            self.out.extend(segment.raw.values)
        else:
            if not is_top:
                self.out.extend(syntax.prefixes[kind])
            self.out.append(segment.text)
            if segment.ended and suffix is not None:
                self.out.extend(suffix.values)
        self.ended_without_suffix = segment.ended and suffix is None
        if not segment.ended:
            if not is_top:
                self.stack.append(kind)
        elif is_top:
            self.stack.pop()
            if not self.stack and suffix is None and syntax.close_all is not None:
                self.out.extend(syntax.close_all.values)
