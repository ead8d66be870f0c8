"""What the overview shows."""

from __future__ import annotations

from typing import Any

from chats.models import Chat
from eleanor_site.tenants.models import Tenant
from rules.models import Replay, Rule


def overview_of(tenant: Tenant) -> dict[str, Any]:
    """Counts that tell how far the tenant has come, and the newest replays. Runs inside the tenant's scope."""
    return {
        "chat_count": Chat.objects.count(),
        "rule_count": Rule.objects.filter(archived_at__isnull=True).count(),
        "replay_count": Replay.objects.count(),
        "replays": Replay.objects.select_related("by").order_by("-id")[:5],
    }
