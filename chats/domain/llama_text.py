"""LlamaText: text that remembers which parts may be special tokens (chat-wrappers.md section 4).

A prompt made as one string can't tell `<|im_end|>` written by a wrapper from `<|im_end|>` typed by a user: the
tokenizer turns both into the token that ends a turn, and whoever writes it speaks as the system from there on. That is
prompt injection. So a prompt is a list of pieces here, and only pieces that a wrapper made as special are tokenized
with special tokens recognised. What a person, a tool or a model wrote is a plain piece, always, and stays one through
joining, trimming and JSON. Turning a LlamaText into one string loses that and is meant for looking at only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

from chats.domain.js_json import JS_WHITESPACE, js_text


class SpecialTokensText:
    """Text in which special tokens are recognised when it is tokenized.

    Make one only from what the wrapper or its settings say. Content of a chat in it would give its author the power
    to end turns and to open system messages.
    """

    __slots__ = ("value",)

    def __init__(self, value: str) -> None:
        self.value: Final = value

    def __eq__(self, other: object) -> bool:
        return type(other) is SpecialTokensText and other.value == self.value

    def __hash__(self) -> int:
        return hash((SpecialTokensText, self.value))

    def __repr__(self) -> str:
        return f"SpecialTokensText({self.value!r})"

    def __str__(self) -> str:
        return self.value

    def to_json(self) -> dict[str, str]:
        return {"type": "specialTokensText", "value": self.value}


class SpecialToken:
    """A token known by its role (BOS, EOS, NL, EOT, SEP), whatever its spelling in the model's vocabulary."""

    __slots__ = ("value",)

    def __init__(self, value: str) -> None:
        self.value: Final = value

    def __eq__(self, other: object) -> bool:
        return type(other) is SpecialToken and other.value == self.value

    def __hash__(self) -> int:
        return hash((SpecialToken, self.value))

    def __repr__(self) -> str:
        return f"SpecialToken({self.value!r})"

    def __str__(self) -> str:
        return self.value

    def to_json(self) -> dict[str, str]:
        return {"type": "specialToken", "value": self.value}


Piece: TypeAlias = str | SpecialTokensText | SpecialToken
TextInput: TypeAlias = "str | float | SpecialTokensText | SpecialToken | LlamaText | Sequence[TextInput]"
LlamaTextJSON: TypeAlias = str | list[str | dict[str, str]]


class UnknownPart(ValueError):
    """An item of a list isn't a part of a LlamaText; `index` is its place."""

    def __init__(self, index: int, item: object) -> None:
        super().__init__(f"Unknown value type: {_js_name(item)}")
        self.index = index


class LlamaText:
    """An immutable list of pieces, each plain text, `SpecialTokensText` or `SpecialToken`.

    Construction flattens strings, numbers, booleans, pieces, other LlamaTexts and lists of them. Empty texts vanish,
    neighbours of one kind are glued, and a plain piece is never merged with a special one: plain text must not become
    a special token, because the person, tool or model that wrote it would then control the conversation's structure.
    """

    __slots__ = ("values",)

    values: tuple[Piece, ...]

    def __init__(self, *values: TextInput) -> None:
        pieces: list[Piece] = []
        _flatten(values, pieces)
        self.values = normalised(pieces)

    @classmethod
    def of(cls, pieces: Iterable[Piece]) -> LlamaText:
        """From pieces that are flat already; they are normalised as construction does. Faster than the constructor."""
        made = cls.__new__(cls)
        made.values = normalised(pieces)
        return made

    @classmethod
    def from_json(cls, json: object) -> LlamaText:
        """Read the JSON form. Raises UnknownPart for an item of another kind, ValueError for anything else."""
        if isinstance(json, str):
            return cls(json)
        if not isinstance(json, list):
            raise ValueError("a text is a string or a list of parts")
        return cls.of([_piece_from_json(index, item) for index, item in enumerate(json)])

    def to_json(self) -> LlamaTextJSON:
        """`""` without pieces, the string if there is one plain piece, else a list."""
        values = self.values
        if not values:
            return ""
        if len(values) == 1 and isinstance(values[0], str):
            return values[0]
        return [value if isinstance(value, str) else value.to_json() for value in values]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LlamaText) and other.values == self.values

    def __hash__(self) -> int:
        return hash(self.values)

    def __bool__(self) -> bool:
        return bool(self.values)

    def __repr__(self) -> str:
        return f"LlamaText({', '.join(map(repr, self.values))})"

    def __str__(self) -> str:
        """The pieces in a row, special tokens by role name. To look at only: the protection is lost."""
        return "".join([value if isinstance(value, str) else value.value for value in self.values])

    @staticmethod
    def compare(first: object, second: object) -> bool:
        """The same pieces in the same order; anything that is no LlamaText differs from everything."""
        return isinstance(first, LlamaText) and isinstance(second, LlamaText) and first.values == second.values

    @staticmethod
    def join(separator: TextInput, values: Iterable[TextInput]) -> LlamaText:
        """The separator between every two input values, also between empty ones; then everything is glued."""
        parts: list[TextInput] = []
        for value in values:
            if parts:
                parts.append(separator)
            parts.append(value)
        return LlamaText(*parts)

    def join_pieces(self, separator: TextInput) -> LlamaText:
        """The separator between the pieces that this text has."""
        return LlamaText.join(separator, self.values)

    def concat(self, value: TextInput) -> LlamaText:
        return LlamaText(self, value)

    def map_values(self, change: Callable[[Piece], TextInput]) -> LlamaText:
        return LlamaText(*[change(value) for value in self.values])

    def trim_start(self) -> LlamaText:
        return self._stripped(start=True, end=False)

    def trim_end(self) -> LlamaText:
        return self._stripped(start=False, end=True)

    def trim(self) -> LlamaText:
        """Without outer white space, special text included; a special token stops it."""
        return self._stripped(start=True, end=True)

    def _stripped(self, start: bool, end: bool) -> LlamaText:
        values = list(self.values)
        if start:
            values = _without_leading_space(values)
        if end:
            values = _without_trailing_space(values)
        return LlamaText.of(values)

    def includes(self, other: LlamaText) -> bool:
        """Whether the pieces of `other` occur in a row; the outer ones may be parts of their counterparts."""
        wanted = other.values
        if not wanted:
            return False
        starts = range(len(self.values) - len(wanted) + 1)
        return any(_occurs_at(self.values[start : start + len(wanted)], wanted) for start in starts)


def normalised(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    """The pieces without empty texts, neighbours of one kind glued; never across kinds, never two special tokens.

    Every prompt goes through here piece by piece, so a run of one piece is passed on as it is, and nothing is called.
    """
    out: list[Piece] = []
    kind: type | None = None
    first: Piece = ""
    more: list[str] = []
    for piece in pieces:
        this: type = type(piece)
        if this is SpecialToken:
            if kind is not None:
                out.append(_glued(first, more) if more else first)
                kind = None
                more = []
            out.append(piece)
            continue
        if this is not SpecialTokensText:
            this = str  # also of a subclass that carries where the text came from
        text: str = piece if this is str else piece.value  # type: ignore[assignment,union-attr]
        if not text:
            continue
        if this is kind:
            more.append(text)
            continue
        if kind is not None:
            out.append(_glued(first, more) if more else first)
            if more:
                more = []
        first = piece
        kind = this
    if kind is not None:
        out.append(_glued(first, more) if more else first)
    return tuple(out)


def _glued(first: Piece, more: list[str]) -> Piece:
    if isinstance(first, str):
        return "".join([first, *more])
    return SpecialTokensText("".join([first.value, *more]))


def _flatten(values: Iterable[TextInput], into: list[Piece]) -> None:
    for value in values:
        if isinstance(value, str | SpecialTokensText | SpecialToken):
            into.append(value)
        elif isinstance(value, LlamaText):
            into.extend(value.values)
        elif isinstance(value, bool | int | float):
            into.append(js_text(value))
        elif isinstance(value, list | tuple):
            _flatten(value, into)
        else:
            raise TypeError(f"a LlamaText can't hold a {type(value).__name__}")


def _piece_from_json(index: int, item: Any) -> Piece:
    if isinstance(item, str):
        return item
    if isinstance(item, dict) and isinstance(item.get("value"), str):
        if item.get("type") == "specialTokensText":
            return SpecialTokensText(item["value"])
        if item.get("type") == "specialToken":
            return SpecialToken(item["value"])
    raise UnknownPart(index, item)


def _js_name(item: Any) -> str:
    if isinstance(item, dict):
        return "[object Object]"
    if isinstance(item, list):
        return ",".join("" if part is None else _js_name(part) for part in item)
    return "null" if item is None else js_text(item)


def _without_leading_space(values: list[Piece]) -> list[Piece]:
    for index, value in enumerate(values):
        if isinstance(value, SpecialToken):
            return values[index:]
        stripped = str(value).lstrip(JS_WHITESPACE)
        if stripped:
            return [_same_kind(value, stripped), *values[index + 1 :]]
    return []


def _without_trailing_space(values: list[Piece]) -> list[Piece]:
    for index in range(len(values) - 1, -1, -1):
        value = values[index]
        if isinstance(value, SpecialToken):
            return values[: index + 1]
        stripped = str(value).rstrip(JS_WHITESPACE)
        if stripped:
            return [*values[:index], _same_kind(value, stripped)]
    return []


def _same_kind(value: Piece, text: str) -> Piece:
    return text if isinstance(value, str) else SpecialTokensText(text)


def _occurs_at(there: tuple[Piece, ...], wanted: tuple[Piece, ...]) -> bool:
    first = wanted[0]
    if there[0] != first:
        if type(there[0]) is not type(first):
            return False
        here, part = str(there[0]), str(first)
        if not (part in here if len(wanted) == 1 else here.endswith(part)):
            return False
    if len(wanted) == 1:
        return True
    if there[1:-1] != wanted[1:-1]:
        return False
    same_kind = type(there[-1]) is type(wanted[-1])
    return same_kind and str(there[-1]).startswith(str(wanted[-1]))
