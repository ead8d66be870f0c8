"""What is asked of a chat template, and what comes of it: a text, or why there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

Profile = Literal["current", "classic"]
PROFILES: tuple[Profile, ...] = ("current", "classic")

SPECIAL_TOKEN_NAMES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
PASSED_NAMES = ("messages", "tools", "documents", "add_generation_prompt")

MAX_TEMPLATE_BYTES = 128 * 1024
MAX_OUTPUT_CHARACTERS = 2_000_000

# One value under three names; the first is the one that templates read (transformers 5.21 and later).
REASONING_FIELDS = ("reasoning_content", "thinking", "reasoning")

FailureKind = Literal["message", "syntax", "error", "input", "limit"]


class LimitExceeded(Exception):
    """A bound of the product, not a mistake that Python or jinja2 found. `limit` is its code, such as "output"."""

    def __init__(self, limit: str, **args: int) -> None:
        super().__init__(limit)
        self.limit = limit
        self.args_by_name = args


@dataclass(frozen=True, slots=True)
class RenderRequest:
    """What `apply_chat_template` would be called with, the chat in plain JSON values.

    `tokens` holds the special tokens that the model defines, by name; `kwargs` win over them. `now` is the local time
    that `strftime_now` sees (None: the present). `continue_final_message` is true or the name of the field to continue.
    `keep_nulls` leaves out step 2 of the preparation, the dropping of null keys, which not every caller does.
    """

    template: str
    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]] | None = None
    documents: Sequence[Mapping[str, Any]] | None = None
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    tokens: Mapping[str, str] = field(default_factory=dict)
    profile: Profile = "current"
    add_generation_prompt: bool = False
    continue_final_message: bool | str = False
    provenance: bool = False
    now: datetime | None = None
    keep_nulls: bool = False


@dataclass(frozen=True, slots=True)
class Origin:
    """Characters `start` to `end` of the text: written by template line `line` (from 1) for message `message`, the
    index in the request's messages, or None where no message had a part in it."""

    start: int
    end: int
    line: int
    message: int | None


@dataclass(frozen=True, slots=True)
class Rendered:
    """The text, the character ranges inside `{% generation %}`, and, if asked for, the origin of every character."""

    text: str
    spans: tuple[tuple[int, int], ...] = ()
    provenance: tuple[Origin, ...] = ()


@dataclass(frozen=True, slots=True)
class TemplateFailure:
    """Why there is no text.

    `kind` is "message" (the template's author speaks, by `raise_exception`), "syntax", "error" (while rendering),
    "input" (the chat and arguments don't go together, before the template ran) or "limit" (`limit` names it:
    "time", "memory", "depth", "output", "template_size", "request_size", "busy" or "stopped").
    `error_class` and `message` are Python's and jinja2's own words; `line` is the template line, from 1, if known.
    """

    kind: FailureKind
    error_class: str
    message: str
    line: int | None = None
    limit: str | None = None
    args: Mapping[str, int] = field(default_factory=dict)
