"""Gathering what a replay depends on, as it stands now."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from chats.models import ChatVersion
from eleanor_site.tenants.models import Tenant
from rules.domain.manifest import CatalogueEntry, Manifest, corpus_digest
from rules.domain.points import Defaults
from rules.domain.rule_set import RuleSpec
from rules.models import KnownPrompt, ToolEntry

BATCH = 900  # SQLite takes at most 999 parameters in older builds


def manifest_of(tenant: Tenant, rules: Sequence[RuleSpec], versions: Sequence[int]) -> Manifest:
    """The manifest of a replay of these rules over these chat versions, with the tenant's present catalogue."""
    return manifest_over(tenant, rules, list(content_hashes(versions).values()))


def manifest_over(tenant: Tenant, rules: Sequence[RuleSpec], hashes: Sequence[str]) -> Manifest:
    """The same over chats that are given by what they hold."""
    return Manifest(
        rules=list(rules),
        catalogue=catalogue_entries(),
        defaults=defaults_of(tenant),
        known_prompts=dict(KnownPrompt.objects.order_by("text_hash").values_list("text_hash", "code")),
        # Chats are decided one by one, so that their order is no part of what a corpus is.
        corpus=corpus_digest(sorted(hashes)),
        chat_count=len(hashes),
    )


def content_hashes(versions: Sequence[int]) -> dict[int, str]:
    """What each of the chat versions holds, by hash."""
    hashes: dict[int, str] = {}
    for at in range(0, len(versions), BATCH):
        part = ChatVersion.objects.filter(pk__in=versions[at : at + BATCH])
        hashes.update(part.values_list("pk", "content_hash"))
    return hashes


def catalogue_entries() -> list[CatalogueEntry]:
    fields = tuple(CatalogueEntry.model_fields)
    return [CatalogueEntry(**row) for row in ToolEntry.objects.order_by("position").values(*fields)]


def catalogue_digest(entries: Sequence[CatalogueEntry]) -> str:
    """SHA-256 of a tool catalogue: points of chats walked with equal catalogues are equal."""
    text = json.dumps([entry.model_dump() for entry in entries], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def defaults_of(tenant: Tenant) -> Defaults:
    return Defaults(
        step_budget=tenant.step_budget, require_delivery=tenant.require_delivery, audit_mode=tenant.audit_mode
    )
