"""Hiding addresses, keys and tokens in lists; loaded as built-ins, since every list of chats needs them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import template

from chats.domain import masking

register = template.Library()


@register.filter
def masked(value: Any) -> str:
    """`{{ chat|masked }}`: the text as lists show it."""
    return masking.masked(str(value))


@register.filter
def masked_id(value: Any) -> str:
    """`{{ chat.external_id|masked_id }}`: an id of a source; long random ids stay readable."""
    return masking.masked_id(str(value))


@register.filter
def masked_parts(parts: Sequence[Any]) -> list[dict[str, Any]]:
    """The parts of an excerpt, each with `text` and `marked`. Something hidden that spans parts loses the marks."""
    texts = [masking.masked(part.text) for part in parts]
    whole = masking.masked("".join(part.text for part in parts))
    if "".join(texts) != whole:
        return [{"text": whole, "marked": False}]
    return [{"text": text, "marked": part.marked} for text, part in zip(texts, parts, strict=True)]
