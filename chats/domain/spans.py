"""A rendered prompt in pieces: what kind each one is, and which stored message it came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from chats.domain.history import LeftOut, wrapper_input
from chats.domain.history_items import OriginText
from chats.domain.llama_text import LlamaText, Piece, SpecialToken, SpecialTokensText
from chats.domain.record import ChatRecord
from chats.domain.wrappers.base import ChatWrapper

PieceKind: TypeAlias = Literal["text", "special_text", "special_token", "wrapper_text"]
"""`text`: what a person, a model or a tool wrote; `special_text`: text in which special tokens are recognised;
`special_token`: a token known by role; `wrapper_text`: plain text that the wrapper or its settings wrote."""


@dataclass(frozen=True, slots=True)
class RenderedPiece:
    """A stretch of the prompt of one kind from one message; a special token's text is the name of its role."""

    kind: PieceKind
    text: str
    message_index: int | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` up to `end` of the prompt's text."""

    start: int
    end: int


@dataclass(frozen=True)
class RenderedPrompt:
    """A prompt in pieces, without empty ones; and what of the chat has no place in it."""

    pieces: tuple[RenderedPiece, ...]
    left_out: tuple[LeftOut, ...] = field(default=())

    @property
    def text(self) -> str:
        """All pieces in a row, to look at or to copy."""
        return "".join([piece.text for piece in self.pieces])

    def spans(self) -> dict[int, tuple[Span, ...]]:
        """Where each message stands in the text, in order.

        Pieces of one message with nothing of another message between them are one span, the wrapper's own text between
        them included, such as the syntax of a call around its name and arguments.
        """
        found: dict[int, list[Span]] = {}
        at = 0
        previous: int | None = None
        for piece in self.pieces:
            end = at + len(piece.text)
            index = piece.message_index
            if index is not None:
                spans = found.setdefault(index, [])
                if previous == index:
                    spans[-1] = Span(spans[-1].start, end)
                else:
                    spans.append(Span(at, end))
                previous = index
            at = end
        return {index: tuple(spans) for index, spans in found.items()}

    def llama_text(self) -> LlamaText:
        """The prompt as wrappers return it."""
        return LlamaText.of([_piece(piece) for piece in self.pieces])


def _piece(piece: RenderedPiece) -> Piece:
    if piece.kind == "special_text":
        return SpecialTokensText(piece.text)
    return SpecialToken(piece.text) if piece.kind == "special_token" else piece.text


def render_record(
    record: ChatRecord, wrapper: ChatWrapper, upto: int | None = None, extra_user: str | None = None
) -> RenderedPrompt:
    """The chat up to and with message `upto` (None: all of it) as this wrapper writes it.

    `extra_user` is one more user message at the end, to see how a nudge reads; it counts as text of no stored message.
    Raises IndexError for a message that the chat hasn't got, and ValueError where the wrapper can't render the chat.
    """
    given = wrapper_input(record, upto, None if extra_user is None else OriginText(extra_user, None))
    pieces = wrapper.context_pieces(given.history, given.functions or None)
    return RenderedPrompt(rendered_pieces(pieces), tuple(given.left_out))


def rendered_pieces(pieces: Sequence[Piece]) -> tuple[RenderedPiece, ...]:
    """Pieces before gluing as pieces by kind and message; neighbours of one kind and message are glued."""
    out: list[RenderedPiece] = []
    for piece in pieces:
        rendered = _rendered(piece)
        if not rendered.text:
            continue
        if out and rendered.kind != "special_token":
            last = out[-1]
            if last.kind == rendered.kind and last.message_index == rendered.message_index:
                out[-1] = RenderedPiece(last.kind, last.text + rendered.text, last.message_index)
                continue
        out.append(rendered)
    return tuple(out)


def _rendered(piece: Piece) -> RenderedPiece:
    if isinstance(piece, SpecialToken):
        return RenderedPiece("special_token", piece.value)
    if isinstance(piece, SpecialTokensText):
        origin = piece.value.origin if isinstance(piece.value, OriginText) else None
        return RenderedPiece("special_text", str(piece.value), origin)
    if isinstance(piece, OriginText):
        return RenderedPiece("text", str(piece), piece.origin)
    return RenderedPiece("wrapper_text", piece)
