"""Reading a whole answer: text, segments and calls, each with its place (chat-wrappers.md section 14.2).

Here special tokens have been turned into text already, as an inference server returns them, so tags are looked for by
their string forms. Output that is still tokens is followed by `generation`, which can't be fooled by spelled-out tags.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from chats.domain.history_items import SEGMENT_TYPES, FunctionCall, Functions, ResponseEntry, Segment, SegmentType
from chats.domain.js_json import ABSENT, replace_marker
from chats.domain.llama_text import LlamaText
from chats.domain.text_splitting import Separator, split_text
from chats.domain.wrapper_settings import ChatWrapperSettings

_NAME_MARKER = "{{functionName}}"
_LONGEST_NAME = 256
_ANY_NAME = re.compile(r"[^\s\"'(){}\[\]<>,:]{1,256}")
_SPACE = re.compile(r"[ \t\r\n]*")

_TagKind = Literal["prefix", "suffix", "closeAll"]


@dataclass(frozen=True)
class ParsedEntry:
    """An entry of the answer, and where it stands in the text: characters `start` to `end`, tags included.

    `complete` is false for a call whose end is missing because the text ends there.
    """

    entry: ResponseEntry
    start: int
    end: int
    complete: bool = True


@dataclass
class _Draft:
    """An entry of text or a segment that may grow."""

    segment: SegmentType | None
    start: int
    end: int
    # Joined once, since a text may come in very many parts.
    texts: list[str] = field(default_factory=list)
    ended: bool = False

    @property
    def text(self) -> str:
        return "".join(self.texts)


@dataclass(frozen=True)
class _FoundCall:
    call: FunctionCall
    start: int
    end: int
    complete: bool


def parse_output(text: str, settings: ChatWrapperSettings, functions: Functions | None = None) -> list[ParsedEntry]:
    """The entries of an answer in order, covering the whole text.

    `functions` restricts calls to these names, and finds them outside of a section of calls, too; None accepts any
    name, an empty map looks for no calls. What only looks like a call stays text. Params that were absent come back as
    the placeholder that stands for them, if there is one.
    The time grows with the length of the text only, whatever it says.
    """
    segmenter = _Segmenter(settings)
    done = 0
    for found in _find_calls(text, settings, functions):
        segmenter.read(text[done : found.start], done)
        segmenter.add_call(found)
        done = found.end
    segmenter.read(text[done:], done)
    return segmenter.parsed()


def segment_text(text: str, settings: ChatWrapperSettings) -> list[str | Segment]:
    """Text and segments of an assistant text without calls, as the original cuts it; an empty text has no entries."""
    if not text:
        return []
    segmenter = _Segmenter(settings)
    segmenter.read(text, 0)
    return [item.entry for item in segmenter.parsed() if not isinstance(item.entry, FunctionCall)]


class _Segmenter:
    def __init__(self, settings: ChatWrapperSettings) -> None:
        self._tags: dict[str, tuple[_TagKind, SegmentType | None]] = {}
        segments = settings.segments
        for kind in SEGMENT_TYPES if segments is not None else ():
            part = getattr(segments, kind)
            if part is not None and part.printed_prefix is not None:
                self._tags[str(part.printed_prefix)] = ("prefix", kind)
            if part is not None and part.suffix is not None:
                self._tags[str(part.suffix)] = ("suffix", kind)
        if segments is not None and segments.close_all_segments is not None:
            self._tags[str(segments.close_all_segments)] = ("closeAll", None)
        self._entries: list[_Draft | _FoundCall] = []
        self._stack: list[SegmentType] = []

    def read(self, text: str, offset: int) -> None:
        if not text:
            return
        done = before = 0
        for part in split_text(text, list(self._tags)):
            if isinstance(part, Separator):
                # An occurrence may overlap the one before it.
                before = max(0, text.find(part.text, before + 1 if done > before else done))
                end = max(done, before + len(part.text))
                self._read_tag(part.text, offset + done, offset + end)
            else:
                before = end = done + len(part)
                self._add_text(part, offset + done, offset + end)
            done = end

    def add_call(self, found: _FoundCall) -> None:
        self._entries.append(found)

    def parsed(self) -> list[ParsedEntry]:
        out: list[ParsedEntry] = []
        for item in self._entries:
            if isinstance(item, _FoundCall):
                out.append(ParsedEntry(item.call, item.start, item.end, item.complete))
            elif item.segment is None:
                out.append(ParsedEntry(item.text, item.start, item.end))
            else:
                out.append(ParsedEntry(Segment(item.segment, item.text, item.ended), item.start, item.end))
        return out

    def _last(self) -> _Draft | None:
        last = self._entries[-1] if self._entries else None
        return last if isinstance(last, _Draft) else None

    def _add_text(self, text: str, start: int, end: int) -> None:
        last = self._last()
        if last is None or last.ended:
            # A call inside an open segment interrupts it.
            after_call = bool(self._entries) and last is None
            last = _Draft(self._stack[-1] if after_call and self._stack else None, start, end)
            self._entries.append(last)
        last.texts.append(text)
        last.end = end

    def _read_tag(self, tag: str, start: int, end: int) -> None:
        action, kind = self._tags[tag]
        if kind is None:
            while self._stack:
                self._end(self._stack.pop(), start, end)
        elif action == "prefix" and kind not in self._stack:
            self._stack.append(kind)
            self._entries.append(_Draft(kind, start, end))
        elif action == "prefix" or kind not in self._stack:
            self._add_text(tag, start, end)
        elif self._stack[-1] == kind:
            last = self._last()
            if last is not None and last.segment == kind:
                last.ended = True
                last.end = end
                self._stack.pop()
            else:
                # As in the original the type stays open here. After a call there is nothing to be like.
                if last is None:
                    self._stack.pop()
                self._entries.append(_Draft(kind, start, end, ended=True))
        else:
            while kind in self._stack:
                self._entries.append(_Draft(self._stack.pop(), start, end, ended=True))

    def _end(self, kind: SegmentType, start: int, end: int) -> None:
        last = self._last()
        if last is None or last.segment != kind:
            last = _Draft(kind, start, end)
            self._entries.append(last)
        last.ended = True
        last.end = end


class _CallSyntax:
    """The string forms of a wrapper's call settings, and reading one call with them."""

    def __init__(self, text: str, settings: ChatWrapperSettings, functions: Functions | None) -> None:
        call = settings.functions.call
        parallelism = settings.functions.parallelism
        self._text = text
        self._call = call
        self._names = None if functions is None else sorted(functions, key=len, reverse=True)
        prefixes = [str(prefix) for prefix in (call.prefix, *(call.prefix_alternate_matches or ()))]
        sections = [""]
        between = ""
        self.section_suffix = ""
        self.parallel = parallelism is not None
        if parallelism is not None:
            alternates = parallelism.call.section_prefix_alternate_matches or ()
            sections = [str(section) for section in (parallelism.call.section_prefix, *alternates)]
            between = str(parallelism.call.between_calls or "")
            self.section_suffix = str(parallelism.call.section_suffix or "")
        if functions is not None:
            # A call with a known name is one even without the start of its section.
            sections.append("")
        self.starts = _any_of([section + prefix for section in sections for prefix in prefixes])
        self.next_starts = _any_of([between + prefix for prefix in prefixes])
        # Reading JSON that breaks off costs time for nothing; a text may cost a few times its length in all.
        self._budget = 4 * len(text) + 10_000

    def read(self, start: int, position: int, starts_section: bool) -> _FoundCall | None:
        """The call whose name begins at the position, or None if it isn't one."""
        for name, after_name in self._names_at(position):
            params_prefix = _named(str(self._call.params_prefix), name)
            if not self._text.startswith(params_prefix, after_name):
                continue
            found = self._read_params(start, name, after_name + len(params_prefix), starts_section)
            if found is not None:
                return found
        return None

    def _names_at(self, position: int) -> Iterator[tuple[str, int]]:
        if self._call.optional_prefix_space and self._text.startswith(" ", position):
            position += 1
        if self._names is not None:
            for name in self._names:
                if self._text.startswith(name, position):
                    yield name, position + len(name)
            return
        before_marker = str(self._call.params_prefix).partition(_NAME_MARKER)[0]
        if before_marker:
            end = self._text.find(before_marker, position, position + _LONGEST_NAME)
            if end > position and not re.search(r"\s", self._text[position:end]):
                yield self._text[position:end], end
        elif match := _ANY_NAME.match(self._text, position):
            yield match[0], match.end()

    def _read_params(self, start: int, name: str, position: int, starts_section: bool) -> _FoundCall | None:
        suffix = _named(str(self._call.suffix), name)
        params, end = ABSENT, position
        found = self._read_suffix(suffix, position) if suffix or position == len(self._text) else None
        # Without params nothing but the whole end tells a call from one that was never finished.
        if found is None or not found[1]:
            read = self._read_json(position)
            if read is None:
                return None
            params, end = read
            found = self._read_suffix(suffix, end)
        if found is None:
            return None
        after, complete = found
        call = self._call
        raw = LlamaText(
            call.prefix,
            name,
            _named_text(call.params_prefix, name),
            self._text[position:end],
            _named_text(call.suffix, name),
        )
        new_chunk = True if starts_section and self.parallel else None
        return _FoundCall(FunctionCall(name, params, raw_call=raw, starts_new_chunk=new_chunk), start, after, complete)

    def _read_suffix(self, suffix: str, position: int) -> tuple[int, bool] | None:
        """Where the suffix ends that stands at the position, perhaps after white space, and whether all of it is there.

        The token that ends an answer is often cut off by the server, so at the end of the text a part is enough.
        """
        text = self._text
        space = _SPACE.match(text, position)
        for begin in (position, space.end() if space else position):
            if text.startswith(suffix, begin):
                return begin + len(suffix), True
            if len(text) - begin < len(suffix) and suffix.startswith(text[begin:]):
                return len(text), False
        return None

    def _read_json(self, position: int) -> tuple[Any, int] | None:
        space = _SPACE.match(self._text, position)
        start = space.end() if space else position
        if self._budget <= 0:
            return None
        try:
            return _DECODER.raw_decode(self._text, start)
        except json.JSONDecodeError as error:
            # An unterminated string was read to the end of the text, though it's reported where it starts.
            reached = len(self._text) if error.msg.startswith("Unterminated") else error.pos
            # The error counts the lines before it.
            self._budget -= reached - start + start // 64
        except (ValueError, RecursionError):
            self._budget -= len(self._text) - start
        return None


def _find_calls(text: str, settings: ChatWrapperSettings, functions: Functions | None) -> Iterator[_FoundCall]:
    if functions is not None and not functions:
        return
    syntax = _CallSyntax(text, settings, functions)
    position = 0
    while match := syntax.starts.search(text, position):
        found = syntax.read(match.start(), match.end(), starts_section=True)
        if found is None:
            position = match.start() + 1
            continue
        while syntax.parallel and (following := syntax.next_starts.match(text, found.end)):
            another = syntax.read(found.end, following.end(), starts_section=False)
            if another is None:
                break
            yield found
            found = another
        position = found.end
        if syntax.parallel and syntax.section_suffix and text.startswith(syntax.section_suffix, position):
            position += len(syntax.section_suffix)
        elif syntax.section_suffix and position < len(text) and syntax.section_suffix.startswith(text[position:]):
            position = len(text)
        yield _FoundCall(found.call, found.start, position, found.complete)
        if position == len(text):
            return


def _any_of(spellings: Sequence[str]) -> re.Pattern[str]:
    known = sorted({spelling for spelling in spellings if spelling}, key=len, reverse=True)
    # Without any spelling nothing can be told from text.
    return re.compile("|".join(map(re.escape, known)) if known else r"(?!)")


def _named(text: str, name: str) -> str:
    return replace_marker(text, _NAME_MARKER, name)


def _named_text(text: LlamaText, name: str) -> LlamaText:
    return text.map_values(lambda piece: _named(piece, name) if isinstance(piece, str) else piece)


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")


def _integer(digits: str) -> int | float:
    # As js_json.parse_json: longer ones are doubles in JavaScript.
    return int(digits) if len(digits) < 17 else float(digits)


_DECODER = json.JSONDecoder(parse_constant=_constant, parse_int=_integer)
