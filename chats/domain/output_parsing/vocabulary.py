"""Tokens of a model's output, as far as parsing needs them (chat-wrappers.md section 14.1).

What matters for parsing is which texts of a vocabulary are special tokens. So a token is a piece of a LlamaText here:
one character of plain text, a `SpecialTokensText` that is exactly one special token, or a `SpecialToken` role.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from chats.domain.llama_text import LlamaText, Piece, SpecialToken, SpecialTokensText, TextInput

Token: TypeAlias = Piece

END_OF_GENERATION = (SpecialToken("EOS"), SpecialToken("EOT"))


class Vocabulary:
    """The special tokens of a model; every other character is a token of its own.

    With no special tokens given, the characters of a tag such as `<think>` open a segment; once `<think>` is a special
    token, only that token does.
    """

    def __init__(self, special_tokens: Iterable[str] = (), roles: Sequence[str] = ("BOS", "EOS", "EOT")) -> None:
        self._roles = frozenset(roles)
        # Longest first, so that a token which begins another one doesn't hide it.
        known = sorted((text for text in special_tokens if text), key=len, reverse=True)
        self._special = re.compile("|".join(map(re.escape, known))) if known else None

    def tokenize(self, text: TextInput) -> list[Token]:
        """The tokens of a text. Special ones come only from special pieces; a role the model lacks gives nothing."""
        tokens: list[Token] = []
        for piece in LlamaText(text).values:
            if isinstance(piece, str):
                tokens.extend(piece)
            elif isinstance(piece, SpecialTokensText):
                tokens.extend(self._special_text(piece.value))
            elif piece.value in self._roles:
                tokens.append(piece)
        return tokens

    def _special_text(self, text: str) -> list[Token]:
        if self._special is None:
            return list(text)
        tokens: list[Token] = []
        end = 0
        for match in self._special.finditer(text):
            tokens.extend(text[end : match.start()])
            tokens.append(SpecialTokensText(match[0]))
            end = match.end()
        tokens.extend(text[end:])
        return tokens


def plain_text(tokens: Iterable[Token]) -> str:
    """The tokens as ordinary text: special ones give nothing."""
    return "".join([token for token in tokens if isinstance(token, str)])


def described(tokens: Sequence[Token]) -> list[Token]:
    """The tokens with neighbouring characters glued to texts; special tokens stay apart."""
    parts: list[Token] = []
    for token in tokens:
        if parts and isinstance(token, str) and isinstance(parts[-1], str):
            parts[-1] += token
        else:
            parts.append(token)
    return parts
