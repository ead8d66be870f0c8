"""A prompt as a page shows it: runs of one look each, with the message and the template line they came from.

Special tokens, text that only looks like one (it stays text in a wrapper, but becomes a token in a template),
characters that can't be seen, and what differs from another prompt are told apart; pages turn runs into markup.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final, Literal

from chats.domain.chat_templates import REASONING_FIELDS, Rendered
from chats.domain.chat_templates.lint import control_tokens
from chats.domain.spans import RenderedPiece
from chats.domain.text_differences import Range, merged
from chats.domain.visible_text import has_hidden, segments

RunKind = Literal["text", "wrapper", "special", "token", "hidden"]
"""`text`: of a message; `wrapper`: written by wrapper or template; `special`: words beside tokens in which tokens are
recognised; `token`: a control token; `hidden`: a character that isn't seen (`text` is its sign)."""

# What a tokenizer knows as one token, by its usual spellings, in text in which tokens are recognised.
TOKEN: Final = re.compile(r"<<?/?[^<>\s]{1,60}>>?|\[/?[A-Z][A-Z_]{2,30}\]")


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of the prompt. `message` is the stored message's index, `line` the template's, from 1."""

    kind: RunKind
    text: str
    message: int | None = None
    line: int | None = None
    look_alike: bool = False
    added: bool = False
    differs: bool = False
    name: str = ""


@dataclass(frozen=True)
class ShownPrompt:
    """The text, to compare and copy, and the runs that it is made of, in order and without gaps."""

    text: str
    runs: tuple[Run, ...]

    @property
    def look_alikes(self) -> list[Run]:
        return [run for run in self.runs if run.look_alike]


def shown_pieces(pieces: Sequence[RenderedPiece], extra_user: str | None = None) -> ShownPrompt:
    """A wrapper's prompt. The last text of no message that equals `extra_user` is the added one."""
    special = {match[0] for piece in pieces if piece.kind == "special_text" for match in TOKEN.finditer(piece.text)}
    known = _pattern(special)
    added_at = max(
        (
            i
            for i, piece in enumerate(pieces)
            if extra_user and piece.kind == "text" and piece.message_index is None and piece.text == extra_user
        ),
        default=-1,
    )
    runs: list[Run] = []
    for i, piece in enumerate(pieces):
        message = piece.message_index
        if piece.kind == "special_token":
            runs.append(Run("token", piece.text, message))
        elif piece.kind == "special_text":
            runs += _special_runs(piece.text, message)
        else:
            kind: RunKind = "text" if piece.kind == "text" else "wrapper"
            runs += _text_runs(Run(kind, piece.text, message, added=i == added_at), known)
    return ShownPrompt("".join([piece.text for piece in pieces]), tuple(runs))


def shown_template(
    rendered: Rendered,
    messages: Sequence[Mapping[str, Any]],
    indexes: Sequence[int | None],
    template: str,
    tokens: Mapping[str, str],
) -> ShownPrompt:
    """A template's prompt. `indexes` holds the stored message of each of `messages`, None for an added one.

    Here every control token counts, wherever it was typed: those inside of a message's text are look-alikes.
    """
    text = rendered.text
    typed = merged(list(_typed(text, messages, control_tokens(template, tokens))))
    known = _pattern(control_tokens(template, tokens))
    added = {i for i, index in enumerate(indexes) if index is None}
    runs: list[Run] = []
    at = 0
    for origin in rendered.provenance:
        if origin.start > at:
            runs += _template_runs(text, at, origin.start, Run("wrapper", ""), known, typed)
        index = None if origin.message is None else indexes[origin.message]
        run = Run(
            "wrapper" if origin.message is None else "text", "", index, origin.line, added=origin.message in added
        )
        runs += _template_runs(text, origin.start, origin.end, run, known, typed)
        at = origin.end
    runs += _template_runs(text, at, len(text), Run("wrapper", ""), known, typed)
    return ShownPrompt(text, tuple(runs))


def _template_runs(
    text: str, start: int, end: int, like: Run, known: re.Pattern[str] | None, typed: list[Range]
) -> Iterator[Run]:
    at = start
    for match in known.finditer(text, start, end) if known else ():
        if match.start() > at:
            yield replace(like, text=text[at : match.start()])
        if _inside(typed, match.start()):
            yield replace(like, text=match[0], look_alike=True)
        else:
            yield replace(like, kind="token", text=match[0])
        at = match.end()
    if at < end:
        yield replace(like, text=text[at:end])


def _typed(text: str, messages: Sequence[Mapping[str, Any]], tokens: Iterable[str]) -> Iterator[Range]:
    """Where texts of messages that hold a control token stand in the prompt."""
    tokens = list(tokens)
    for message in messages:
        for name in ("content", *REASONING_FIELDS):
            content = message.get(name)
            if not isinstance(content, str) or not any(token in content for token in tokens):
                continue
            wanted = content.strip()
            at = text.find(wanted) if wanted else -1
            while at >= 0:
                yield at, at + len(wanted)
                at = text.find(wanted, at + len(wanted))


def with_differences(prompt: ShownPrompt, ranges: Sequence[Range]) -> ShownPrompt:
    """The prompt with these character ranges (in order, apart from each other) marked."""
    if not ranges:
        return prompt
    edges = [edge for pair in ranges for edge in pair]
    runs: list[Run] = []
    at = 0
    for run in prompt.runs:
        end = at + len(run.text)
        if run.kind == "token" or run.look_alike:
            # A token differs as a whole: half a token is none.
            differs = bisect_right(edges, at) % 2 == 1 or bisect_right(edges, end - 1) > bisect_right(edges, at)
            runs.append(replace(run, differs=differs) if differs else run)
            at = end
            continue
        first, last = bisect_right(edges, at), bisect_right(edges, end - 1)
        cuts = [at, *edges[first:last], end]
        for start, stop in pairwise(cuts):
            if start < stop:
                differs = bisect_right(edges, start) % 2 == 1
                runs.append(replace(run, text=run.text[start - at : stop - at], differs=differs))
        at = end
    return ShownPrompt(prompt.text, tuple(runs))


def visible_runs(runs: Iterable[Run]) -> Iterator[Run]:
    """The runs with characters that can't be seen as runs of their own, whose text is their sign."""
    for run in runs:
        if not has_hidden(run.text):
            yield run
            continue
        for segment in segments(run.text):
            if segment.kind == "text":
                yield replace(run, text=segment.shown)
            else:
                count = segment.end - segment.start
                shown = segment.shown if count == 1 else f"{segment.shown} × {count}"
                yield replace(run, kind="hidden", text=shown, name=f"{segment.shown} {segment.name}".strip())


def _inside(ranges: list[Range], place: int) -> bool:
    at = bisect_right(ranges, (place, 1 << 62)) - 1
    return at >= 0 and place < ranges[at][1]


def _pattern(tokens: Iterable[str]) -> re.Pattern[str] | None:
    longest_first = sorted(tokens, key=lambda token: (-len(token), token))
    return re.compile("|".join(map(re.escape, longest_first))) if longest_first else None


def _special_runs(text: str, message: int | None) -> Iterator[Run]:
    at = 0
    for match in TOKEN.finditer(text):
        if match.start() > at:
            yield Run("special", text[at : match.start()], message)
        yield Run("token", match[0], message)
        at = match.end()
    if at < len(text):
        yield Run("special", text[at:], message)


def _text_runs(run: Run, known: re.Pattern[str] | None) -> Iterator[Run]:
    at = 0
    for match in known.finditer(run.text) if known else ():
        if match.start() > at:
            yield replace(run, text=run.text[at : match.start()])
        yield replace(run, text=match[0], look_alike=True)
        at = match.end()
    if at < len(run.text):
        yield run if at == 0 else replace(run, text=run.text[at:])
