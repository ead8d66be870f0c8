"""What the deciding side keeps of each chat that comes in: turns and points counted, recorded nudges as rows."""

from __future__ import annotations

from typing import Any

from chats.domain import ChatRecord
from chats.models import Chat, ChatVersion
from eleanor_site.tenants.models import Tenant
from rules.domain.nudges import KnownPrompts
from rules.domain.tools import ToolCatalogue, ToolEntry
from rules.domain.turns import Walk, walk
from rules.models import KnownPrompt, RecordedNudge
from rules.queries.manifests import catalogue_entries


def ingest_versions(
    sender: Any, *, tenant: Tenant, versions: list[ChatVersion], records: list[ChatRecord], **rest: Any
) -> None:
    """Receiver of `versions_stored`; runs inside the import's transaction."""
    catalogue = ToolCatalogue([ToolEntry(**entry.model_dump()) for entry in catalogue_entries()])
    prompts = KnownPrompts(dict(KnownPrompt.objects.values_list("text_hash", "code")))
    nudges: list[RecordedNudge] = []
    for version, record in zip(versions, records, strict=True):
        walked = walk(record, catalogue, prompts)
        _summarise(version.chat, walked)
        # Nudges of the version that this one replaces would count twice in the history.
        RecordedNudge.objects.filter(chat=version.chat, source=RecordedNudge.Source.IMPORT).delete()
        nudges += _nudges(tenant, version, record, walked)
    RecordedNudge.objects.bulk_create(nudges, batch_size=500)


def _summarise(chat: Chat, walked: Walk) -> None:
    chat.turn_count = len(walked.turns)
    chat.final_points = sum(point.stage == "final" for point in walked.points)
    chat.round_points = len(walked.points) - chat.final_points
    chat.nudge_count = len(walked.nudges)
    chat.save(update_fields=["turn_count", "final_points", "round_points", "nudge_count"])


def _nudges(tenant: Tenant, version: ChatVersion, record: ChatRecord, walked: Walk) -> list[RecordedNudge]:
    return [
        RecordedNudge(
            tenant=tenant,
            code=nudge.code[:64],
            source=RecordedNudge.Source.IMPORT,
            chat=version.chat,
            chat_version=version,
            message=nudge.message,
            point=walked.points[nudge.point].message if nudge.point is not None else None,
            turn=nudge.turn,
            stage=walked.points[nudge.point].stage if nudge.point is not None else "",
            model=version.chat.model,
            language=version.chat.language,
            outcome=nudge.outcome or "",
            at=record.details[nudge.message].created_at,
        )
        for nudge in walked.nudges
    ]
