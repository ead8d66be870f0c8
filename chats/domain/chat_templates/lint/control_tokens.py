"""Control tokens: those of the model, and what looks like one in a template or a message."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from chats.domain.chat_templates import REASONING_FIELDS

# Spellings of control tokens that templates write out; a model's own special tokens come on top.
CONTROL_TOKEN = re.compile(
    r"<\|[^|<>\s]{1,60}\|>|<｜[^｜<>\s]{1,60}｜>|\[/?[A-Z][A-Z_]{2,30}\]"
    r"|</?s>|<(?:bos|eos|pad|unk|sep|cls|mask)>|<(?:start|end)_of_[a-z_]{1,30}>"
)


def control_tokens(text: str, tokens: Mapping[str, str]) -> tuple[str, ...]:
    """The model's special tokens and what looks like one in the template, longest first."""
    found = {token for token in tokens.values() if token} | set(CONTROL_TOKEN.findall(text))
    return tuple(sorted(found, key=lambda token: (-len(token), token)))


@dataclass(frozen=True, slots=True)
class TypedToken:
    """A control token inside the text of message `message`: characters `start` to `end` of its `field`."""

    message: int
    field: str
    start: int
    end: int
    token: str


def typed_tokens(
    messages: Iterable[Mapping[str, object]], text: str, tokens: Mapping[str, str]
) -> tuple[TypedToken, ...]:
    """Where messages contain control tokens, which reach the prompt as they are and then mean what they say."""
    known = control_tokens(text, tokens)
    if not known:
        return ()
    pattern = re.compile("|".join(re.escape(token) for token in known))
    return tuple(
        TypedToken(index, name, match.start(), match.end(), match[0])
        for index, message in enumerate(messages)
        for name in ("content", *REASONING_FIELDS)
        if isinstance(value := message.get(name), str)
        for match in pattern.finditer(value)
    )
