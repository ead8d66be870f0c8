"""Pieces of text that wrappers write, and what they ask of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from chats.domain.history_items import OriginText
from chats.domain.llama_text import LlamaText, Piece, SpecialToken, SpecialTokensText

BOS: Final = SpecialToken("BOS")
EOS: Final = SpecialToken("EOS")
EOT: Final = SpecialToken("EOT")
GAP: Final = "\n\n"


def special(text: str) -> SpecialTokensText:
    """Text of the wrapper in which special tokens are recognised."""
    return SpecialTokensText(text)


def texts(*values: str | SpecialTokensText | SpecialToken) -> list[LlamaText]:
    """One LlamaText a value: the form of stop triggers."""
    return [LlamaText(value) for value in values]


def special_json(text: str) -> dict[str, Any]:
    """As `special`, in the form that settings are written in."""
    return special(text).to_json()


def of_origin(text: str, origin: int | None) -> str:
    """The text with the stored message it came from, if that is known."""
    return text if origin is None else OriginText(text, origin)


def has_content(pieces: Iterable[Piece]) -> bool:
    """Whether anything is left of the pieces when they are glued."""
    for piece in pieces:
        if isinstance(piece, SpecialToken) or (piece if isinstance(piece, str) else piece.value):
            return True
    return False
