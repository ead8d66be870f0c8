"""How rows of the change log are chained: each hash covers the row's content and the hash before it."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime

FIRST = "0" * 64


def entry_hash(
    *,
    previous: str,
    tenant_id: int,
    number: int,
    at: datetime,
    actor_id: int | None,
    actor_label: str,
    action: str,
    object_type: str,
    object_id: str,
    object_label: str,
    before: str,
    after: str,
    note: str,
    request_id: str,
) -> str:
    """SHA-256 over the canonical JSON of everything that a row says, as 64 hex digits."""
    content = [
        previous,
        tenant_id,
        number,
        at.astimezone(UTC).isoformat(timespec="microseconds"),
        actor_id,
        actor_label,
        action,
        object_type,
        object_id,
        object_label,
        before,
        after,
        note,
        request_id,
    ]
    text = json.dumps(content, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
