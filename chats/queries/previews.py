"""Rendered prompts of stored chats, for the pages that show them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from chats.domain import ChatRecord
from chats.domain.wrappers import WRAPPERS, build_wrapper


@dataclass(frozen=True)
class Preview:
    """Pieces as the rendered prompt's component takes them, or the reason why there are none."""

    pieces: list[dict[str, Any]] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    problem: str = ""


def built_in_choices() -> list[tuple[str, str]]:
    return [(entry.id, entry.label) for entry in WRAPPERS.values() if entry.id != "TemplateChatWrapper"]


def rendered(record: ChatRecord, wrapper_id: str) -> Preview:
    """The whole chat as this built-in wrapper writes it."""
    if wrapper_id not in WRAPPERS:
        return Preview(problem=_("There is no wrapper with this name."))
    from chats.domain.spans import render_record

    prompt = render_record(record, build_wrapper(wrapper_id))
    return Preview(pieces=[{"kind": p.kind, "text": p.text, "message": p.message_index} for p in prompt.pieces])
