"""Asking for columns: whoever sees that some are missing says so here, as often as it likes."""

from __future__ import annotations

from typing import Any

from eleanor_site.sending import send_on_commit
from eleanor_site.tenants.models import Tenant
from rules.models import Preparation
from rules.queries.preparations import wanted
from rules.tasks import derive_atoms, derive_segments

Kind = Preparation.Kind


def prepare_segments(tenant: Tenant) -> None:
    """Queue the making of columns for chats that have none, unless that is under way."""
    pk = wanted(tenant, Kind.SEGMENTS)
    if pk is not None:
        send_on_commit(derive_segments, pk)


def prepare_atoms(tenant: Tenant) -> None:
    """Queue the search for the text terms of live rules and drafts, unless that is under way."""
    pk = wanted(tenant, Kind.ATOMS)
    if pk is not None:
        send_on_commit(derive_atoms, pk)


def release_published(sender: Any, *, tenant: Tenant, **rest: Any) -> None:
    """Receiver: the live rules' text terms are found before somebody asks for an effect."""
    prepare_atoms(tenant)


def prompt_saved(sender: Any, *, instance: Any, created: bool, **rest: Any) -> None:
    """Receiver: a new prompt may be a nudge in chats that were walked before it was known."""
    if created:
        prepare_segments(instance.tenant)
