"""What the live effect needs done in the background."""

from __future__ import annotations

from eleanor_site.tenants.models import Tenant
from rules.queries.effects import EffectAnswer
from rules.services.segments import prepare_atoms, prepare_segments


def prepare(tenant: Tenant, answer: EffectAnswer | None = None) -> None:
    """Queue what the answer misses: columns of chats, or text terms of rules. Cheap, and twice is harmless."""
    if answer is None or answer.corpus.missing:
        prepare_segments(tenant)
    if answer is None or answer.state == "preparing":
        prepare_atoms(tenant)
