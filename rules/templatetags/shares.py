"""Shares as people read them."""

from __future__ import annotations

from django import template
from django.utils import formats

register = template.Library()


@register.filter
def percent(share: float | None) -> str:
    """`0.825` as `83 %`, with a space that doesn't break; empty for None."""
    return "" if share is None else f"{formats.localize(round(share * 100))}\u00a0%"
