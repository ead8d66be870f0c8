"""Segments of a generated answer: tags in the token stream open and close them (chat-wrappers.md section 14.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from chats.domain.history_items import SEGMENT_TYPES, ResponseEntry, Segment, SegmentType
from chats.domain.js_json import JS_WHITESPACE
from chats.domain.llama_text import LlamaText
from chats.domain.output_parsing.triggers import HeldTokens, TriggerDetector
from chats.domain.output_parsing.vocabulary import Token, Vocabulary, plain_text
from chats.domain.wrapper_settings import SegmentsSettings


@dataclass
class StreamEvent:
    """Text of the answer (`segment` None) or of a segment as it becomes known; `start` and `end` mark its borders."""

    segment: SegmentType | None
    text: str
    start: bool = False
    end: bool = False


def merged_events(events: Iterable[StreamEvent]) -> list[StreamEvent]:
    """The events with neighbouring texts of one segment joined, and without those that say nothing."""
    merged: list[StreamEvent] = []
    texts: list[str] = []
    for event in events:
        last = merged[-1] if merged else None
        marked = event.start or event.end
        if last is not None and last.segment == event.segment and not last.end and not marked:
            texts.append(event.text)
        elif event.text or marked:
            if last is not None:
                last.text = "".join(texts)
            merged.append(StreamEvent(event.segment, "", event.start, event.end))
            texts = [event.text]
    if merged:
        merged[-1].text = "".join(texts)
    return merged


@dataclass
class _Run:
    """A stretch of the answer: ordinary text if `segment` is None."""

    segment: SegmentType | None
    tokens: list[Token] = field(default_factory=list)
    begun_here: bool = False
    ended: bool = False
    start_time: str | None = None
    end_time: str | None = None
    raw_suffix: LlamaText | None = None


@dataclass(frozen=True)
class _Tags:
    prefix: LlamaText | None
    suffix: LlamaText | None
    opens: TriggerDetector | None
    closes: TriggerDetector | None


def open_segments(response: Iterable[ResponseEntry]) -> list[SegmentType]:
    """The segment types that a model response leaves open, outermost first."""
    stack: list[SegmentType] = []
    for entry in response:
        if not isinstance(entry, Segment):
            continue
        if entry.ended and stack and stack[-1] == entry.segment_type:
            stack.pop()
        elif not entry.ended and entry.segment_type not in stack:
            stack.append(entry.segment_type)
    return stack


class SegmentStream:
    """Sorts released tokens into text and segments, and tells of both as they grow."""

    def __init__(
        self,
        settings: SegmentsSettings | None,
        vocabulary: Vocabulary,
        response: Sequence[ResponseEntry],
        count_response: bool,
        now: Callable[[], str],
        emit: Callable[[StreamEvent], None],
    ) -> None:
        self._now = now
        self._emit = emit
        self._held = HeldTokens()
        self._runs: list[_Run] = []
        self._stack = open_segments(response)
        # Segments that were open before this answer: their prefix isn't part of it.
        self._inherited = len(self._stack)
        self._counts = _token_counts(response) if count_response else Counter()

        def detector(text: LlamaText | None) -> TriggerDetector | None:
            return None if text is None else TriggerDetector([vocabulary.tokenize(text)])

        self._close_all = detector(settings.close_all_segments if settings else None)
        self._tags: dict[SegmentType, _Tags] = {}
        for kind in SEGMENT_TYPES:
            part = getattr(settings, kind) if settings else None
            if part is not None:
                prefix, suffix = part.printed_prefix, part.suffix
                self._tags[kind] = _Tags(prefix, suffix, detector(prefix), detector(suffix))
        pairs = [(tags.opens, tags.closes) for tags in self._tags.values()]
        every = [self._close_all, *[detector for pair in pairs for detector in pair]]
        self._all_detectors = [detector for detector in every if detector is not None]

    @property
    def stack(self) -> list[SegmentType]:
        """The open segment types, outermost first."""
        return list(self._stack)

    @property
    def opened_here(self) -> list[SegmentType]:
        """The open segment types that this answer opened."""
        return self._stack[self._inherited :]

    def token_count(self, kind: SegmentType) -> int:
        return self._counts[kind]

    def feed(self, tokens: Iterable[Token]) -> None:
        for token in tokens:
            if self._held.is_empty and all(detector.ignores(token) for detector in self._all_detectors):
                self._push([token])
            else:
                self._feed_token(token, syntax_only=False)

    def feed_syntax(self, tokens: Iterable[Token]) -> None:
        """Let tokens that aren't part of the answer complete tags that have begun already."""
        for token in tokens:
            self._feed_token(token, syntax_only=True)
        self._forget(None)
        freed = self._release()
        if freed:
            self._push(freed)

    def finish(self) -> None:
        self._forget(None)
        self._push(self._release())

    def open(self, kind: SegmentType) -> None:
        self._stack.append(kind)
        self._runs.append(_Run(kind, begun_here=True, start_time=self._now()))
        self._emit(StreamEvent(kind, "", start=True))

    def close(self, kind: SegmentType, raw_suffix: LlamaText | None = None) -> None:
        """End the segment and those opened inside it; nothing happens if it isn't open."""
        if kind not in self._stack:
            return
        last = self._runs[-1] if self._runs else None
        if last is not None and last.segment == kind and self._stack[-1] == kind:
            if not last.ended:
                self._end_run(last, raw_suffix)
            self._pop()
            return
        while kind in self._stack:
            inner = self._pop()
            run = _Run(inner)
            self._runs.append(run)
            self._end_run(run, raw_suffix if inner == kind else None)

    def entries(self, trim_end: bool = False) -> list[str | Segment]:
        """Text and segments so far, in order; `trim_end` strips the last one's end (not of an open segment)."""
        return [self._entry(run, trim_end and run is self._runs[-1]) for run in self._runs]

    def last_entry(self) -> list[str | Segment]:
        """The last one of the entries, if there is any."""
        return [self._entry(run, False) for run in self._runs[-1:]]

    def _entry(self, run: _Run, trim_end: bool) -> str | Segment:
        text = plain_text(run.tokens)
        if trim_end and (run.segment is None or run.ended):
            text = text.rstrip(JS_WHITESPACE)
        return text if run.segment is None else self._parsed(run, run.segment, text)

    def _parsed(self, run: _Run, kind: SegmentType, text: str) -> Segment:
        tags = self._tags.get(kind)
        raw = LlamaText(text)
        if tags is not None:
            prefix = (tags.prefix if run.begun_here else None) or LlamaText()
            suffix = LlamaText()
            if run.ended:
                suffix = run.raw_suffix if run.raw_suffix is not None else tags.suffix or LlamaText()
            raw = LlamaText(prefix, text, suffix)
        return Segment(kind, text, run.ended, raw, run.start_time, run.end_time)

    def _feed_token(self, token: Token, syntax_only: bool) -> None:
        position = self._held.next_position if syntax_only else self._held.add(token)
        current = self._stack[-1] if self._stack else None

        def completes(detector: TriggerDetector | None) -> bool:
            if detector is None:
                return False
            detector.record(token, position, start=not syntax_only)
            return detector.triggered

        if current is None:
            _forget_progress(self._close_all)
        elif completes(self._close_all):
            self._complete(self._close_all, syntax_only)
            self._close_everything()
            return
        elif current in self._tags and completes(self._tags[current].closes):
            self.close(current, self._complete(self._tags[current].closes, syntax_only))
            return
        for kind, tags in self._tags.items():
            if kind in self._stack:
                _forget_progress(tags.opens)
                if kind != current and completes(tags.closes):
                    self.close(kind, self._complete(tags.closes, syntax_only))
                    return
                continue
            if completes(tags.opens):
                self._complete(tags.opens, syntax_only)
                self.open(kind)
                return
            _forget_progress(tags.closes)
        self._push(self._release())

    def _complete(self, detector: TriggerDetector | None, syntax_only: bool) -> LlamaText | None:
        """Push what stands before the completed tag, and drop the tag. Returns it as generated, for syntax tokens."""
        self._forget(detector)
        _forget_progress(detector)
        self._push(self._release())
        tag = LlamaText.of(self._held.tokens) if syntax_only else None
        if detector is not None:
            detector.forget_found()
        self._held.clear()
        return tag

    def _close_everything(self) -> None:
        while self._stack:
            kind = self._stack.pop()
            last = self._runs[-1] if self._runs else None
            if last is None or last.segment != kind:
                last = _Run(kind)
                self._runs.append(last)
            self._end_run(last, last.raw_suffix)
        self._inherited = 0

    def _end_run(self, run: _Run, raw_suffix: LlamaText | None) -> None:
        run.ended = True
        run.end_time = self._now()
        run.raw_suffix = raw_suffix
        self._emit(StreamEvent(run.segment, "", end=True))

    def _pop(self) -> SegmentType:
        kind = self._stack.pop()
        self._inherited = min(self._inherited, len(self._stack))
        return kind

    def _push(self, tokens: list[Token]) -> None:
        """Add tokens to the run they belong to; even without tokens this begins one if there is none yet."""
        kind = self._stack[-1] if self._stack else None
        self._counts[kind] += len(tokens)
        last = self._runs[-1] if self._runs else None
        begins = last is None or last.segment != kind
        if last is None or begins:
            last = _Run(kind)
            if kind is not None:
                last.begun_here = len(self._stack) > self._inherited
                last.start_time = self._now()
            self._runs.append(last)
        last.tokens.extend(tokens)
        self._emit(StreamEvent(kind, plain_text(tokens), start=begins and kind is not None))

    def _release(self) -> list[Token]:
        return self._held.release(*self._all_detectors)

    def _forget(self, except_for: TriggerDetector | None) -> None:
        for detector in self._all_detectors:
            if detector is not except_for:
                detector.forget_progress()
                detector.forget_found()


def _forget_progress(detector: TriggerDetector | None) -> None:
    if detector is not None:
        detector.forget_progress()


def _token_counts(response: Iterable[ResponseEntry]) -> Counter[SegmentType | None]:
    counts: Counter[SegmentType | None] = Counter()
    for entry in response:
        if isinstance(entry, str):
            counts[None] += len(entry)
        elif isinstance(entry, Segment):
            counts[entry.segment_type] += len(entry.text)
    return counts
