"""Texts of nudges to try at the end of a prompt. Whoever knows nudges registers here; this side doesn't know them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eleanor_site.tenants.models import Tenant


@dataclass(frozen=True)
class NudgeText:
    code: str
    text: str


Provider = Callable[[Tenant], Sequence[NudgeText]]
_providers: dict[str, Provider] = {}


def register(name: str, provider: Provider) -> None:
    """Ask this provider from now on; the same name again replaces it."""
    _providers[name] = provider


def nudge_texts(tenant: Tenant) -> list[NudgeText]:
    """All nudges of the tenant that have a text, those of each provider in its order."""
    return [text for provider in _providers.values() for text in provider(tenant) if text.text.strip()]
