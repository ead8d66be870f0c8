"""What the deciding side keeps of each chat that comes in: counts, recorded nudges as rows, and points as columns.

The walks of an import are collected and become segments when one is full and when the file has been read. Whatever a
killed worker leaves out is found by the sweeper and derived from the stored chats.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import structlog
from django.db import transaction

from chats.domain import ChatRecord
from chats.models import Chat, ChatVersion, ImportJob
from eleanor_site.tenants.models import Tenant
from rules.domain.nudges import KnownPrompts
from rules.domain.points import Walk
from rules.domain.tools import ToolCatalogue, ToolEntry
from rules.domain.turns import walk
from rules.models import KnownPrompt, RecordedNudge
from rules.queries.manifests import catalogue_digest, catalogue_entries
from rules.queries.segments import newest_prompt
from rules.services.segments import prepare_segments

if TYPE_CHECKING:
    from rules.chunks.segments import SegmentDraft

log = structlog.get_logger(__name__)


def ingest_versions(
    sender: Any,
    *,
    tenant: Tenant,
    versions: list[ChatVersion],
    records: list[ChatRecord],
    job: ImportJob | None = None,
    **rest: Any,
) -> None:
    """Receiver of `versions_stored`; runs inside the transaction that stores the chats."""
    entries, prompts = catalogue_entries(), newest_prompt()
    catalogue = ToolCatalogue([ToolEntry(**entry.model_dump()) for entry in entries])
    known = KnownPrompts(dict(KnownPrompt.objects.filter(pk__lte=prompts).values_list("text_hash", "code")))
    walks = [walk(record, catalogue, known) for record in records]
    keep(tenant, versions, records, walks)
    if job is None:
        prepare_segments(tenant)
        return
    intake = _intake_of(job.pk)
    for version, record, walked in zip(versions, records, walks, strict=True):
        intake.add(catalogue_digest(entries), prompts, version, record, walked)
    transaction.on_commit(lambda: intake.store_full(tenant))


def import_read(sender: Any, *, tenant: Tenant, job: ImportJob, **rest: Any) -> None:
    """Receiver: the file has been read, so that what was collected becomes a segment."""
    intake = _intakes.pop(job.pk, None)
    if intake is not None:
        intake.store_all(tenant)


def keep(tenant: Tenant, versions: list[ChatVersion], records: list[ChatRecord], walks: list[Walk]) -> None:
    """Write the counts of the chats, and the nudges that their histories hold as rows; of each chat the last version
    counts."""
    newest = {version.chat_id: (version, record, walked) for version, record, walked in zip(
        versions, records, walks, strict=True)}  # fmt: skip
    for version, _record, walked in newest.values():
        _summarise(version.chat, walked)
    # An insert that always conflicts: an update by cases takes ten times as long.
    Chat.objects.bulk_create(
        [version.chat for version, _record, _walked in newest.values()],
        update_conflicts=True,
        unique_fields=["id"],
        update_fields=["turn_count", "final_points", "round_points", "nudge_count"],
    )
    # Nudges of a version that is replaced would count twice in the history.
    replaced = [version.chat_id for version, _record, _walked in newest.values() if version.number > 1]
    if replaced:
        RecordedNudge.objects.filter(chat__in=replaced, source=RecordedNudge.Source.IMPORT).delete()
    rows = (nudge for row in newest.values() for nudge in _nudges(tenant, *row))
    RecordedNudge.objects.bulk_create(rows, batch_size=500)


def _summarise(chat: Chat, walked: Walk) -> None:
    chat.turn_count = len(walked.turns)
    chat.final_points = sum(point.stage == "final" for point in walked.points)
    chat.round_points = len(walked.points) - chat.final_points
    chat.nudge_count = len(walked.nudges)


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


# --- collecting columns


class Intake:
    """The points of an import on their way into segments. `store_…` never fails the import: what a full disk or an
    undone batch leaves out is derived later."""

    def __init__(self) -> None:
        self.full: list[SegmentDraft] = []
        self.open: SegmentDraft | None = None

    def add(self, catalogue: str, prompts: int, version: ChatVersion, record: ChatRecord, walked: Walk) -> None:
        from rules.chunks.segments import SegmentDraft  # numeric libraries, on first use

        draft = self.open
        # A catalogue or prompt that changes during the import starts a new segment.
        alike = draft is not None and (draft.catalogue, draft.prompts) == (catalogue, prompts)
        if draft is not None and not (alike and draft.has_room(walked)):
            self.full.append(draft)
            draft = None
        if draft is None:
            draft = self.open = SegmentDraft(catalogue, prompts)
        draft.add(version, record, walked)

    def store_full(self, tenant: Tenant) -> None:
        while self.full:
            _store(tenant, self.full.pop(0))

    def store_all(self, tenant: Tenant) -> None:
        self.store_full(tenant)
        if self.open is not None:
            _store(tenant, self.open)
            self.open = None


def _store(tenant: Tenant, draft: SegmentDraft) -> None:
    from rules.chunks.segments import store

    try:
        stored = store(tenant, draft)
    except Exception:  # columns are a copy: the chats are stored, and the import goes on
        log.exception("segment_not_stored", tenant=tenant.pk, chats=len(draft.versions))
        stored = None
    if stored is None:
        prepare_segments(tenant)


_intakes: dict[int, Intake] = {}
_lock = threading.Lock()


def _intake_of(job: int) -> Intake:
    with _lock:
        return _intakes.setdefault(job, Intake())
