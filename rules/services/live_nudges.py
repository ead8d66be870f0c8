"""Nudges that a runtime reports, and how they meet the chats in which they stand.

A chat that is stored later, or again, holds the nudge as a message: the two are one nudge, and count once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from chats.domain import ChatRecord
from chats.models import Chat, ChatVersion
from chats.storing import identity_of
from eleanor_site.audit.services import record as record_change
from eleanor_site.problems import Refused
from eleanor_site.tenants.models import Tenant, User
from rules.models import RecordedNudge, RuleVersion
from rules.queries.live import live_release

Source = RecordedNudge.Source
# What a nudge in the history knows better than the runtime's report.
_FROM_HISTORY = ("chat_version_id", "message", "point", "turn", "stage", "model", "language", "outcome")


@dataclass(frozen=True)
class Report:
    """A reported nudge. The chat is named by its id or by the id that it has in its source."""

    code: str
    source: str = Source.LIVE
    chat: int | None = None
    external_id: str = ""
    message: int | None = None
    point: int | None = None
    turn: int | None = None
    stage: str = ""
    version: int | None = None
    model: str = ""
    language: str = ""
    outcome: str = ""
    at: datetime | None = None
    external_key: str = ""


class UnknownReference(Refused):
    """A report names a chat or a rule version that this tenant doesn't have; `field` says which, `number` where."""

    def __init__(self, number: int, field: str) -> None:
        super().__init__(f"{number}: {field}")
        self.number = number
        self.field = field


@transaction.atomic
def take_nudges(*, tenant: Tenant, by: User, reports: Sequence[Report]) -> int:
    """Write these nudges into the history, all or none. How many were new: a known `external_key` is passed over.

    Raises UnknownReference.
    """
    chats, versions = _chats(reports), _versions(tenant, reports)
    keys = [report.external_key for report in reports if report.external_key]
    known = set(RecordedNudge.objects.filter(external_key__in=keys).values_list("external_key", flat=True))
    rows = []
    for number, report in enumerate(reports):
        if report.external_key and report.external_key in known:
            continue
        known.add(report.external_key)
        rows.append(_row(tenant, report, _chat(chats, report, number), _version(versions, report, number)))
    before = RecordedNudge.objects.filter(external_key__in=keys).count() if keys else 0
    # Of two requests with the same key at the same moment the database takes one.
    RecordedNudge.objects.bulk_create(rows, batch_size=500, ignore_conflicts=bool(keys))
    named = sum(bool(row.external_key) for row in rows)
    after = RecordedNudge.objects.filter(external_key__in=keys).count() if keys else 0
    taken = len(rows) - named + after - before
    if rows:
        _join_stored(tenant, {row.chat_id for row in rows if row.chat_id is not None})
    if taken:
        codes = sorted({row.code for row in rows})
        record_change(
            tenant=tenant,
            by=by,
            action="nudges.take",
            object_type="nudges",
            object_id=taken,
            object_label=", ".join(codes[:10]),
            after={"taken": taken, "codes": codes},
        )
    return taken


def _chats(reports: Sequence[Report]) -> dict[int | str, Chat]:
    """The chats that the reports name, by id and by identity."""
    ids = {report.chat for report in reports if report.chat is not None}
    identities = {_identity(report.external_id) for report in reports if report.external_id}
    found: dict[int | str, Chat] = {chat.pk: chat for chat in Chat.objects.filter(pk__in=ids)}
    for chat in Chat.objects.filter(identity__in=identities):
        found[chat.identity] = chat
    return found


def _identity(external_id: str) -> str:
    return identity_of("eleanor-chat", f"id:{external_id}")


def _chat(chats: dict[int | str, Chat], report: Report, number: int) -> Chat | None:
    if report.chat is None:
        return chats.get(_identity(report.external_id)) if report.external_id else None
    if report.chat not in chats:
        raise UnknownReference(number, "chat")
    return chats[report.chat]


def _versions(tenant: Tenant, reports: Sequence[Report]) -> dict[tuple[str, int | None], int]:
    """Ids of rule versions by code and number; under the number None the version that is live now."""
    found: dict[tuple[str, int | None], int] = {}
    for entry in live_release(tenant).entries:
        found[entry.code, None] = entry.version_id
    named = {report.code for report in reports if report.version is not None}
    rows = RuleVersion.objects.filter(rule__code__in=named).values_list("rule__code", "number", "pk")
    found |= {(code, number): pk for code, number, pk in rows}
    return found


def _version(versions: dict[tuple[str, int | None], int], report: Report, number: int) -> int | None:
    found = versions.get((report.code, report.version))
    if found is None and report.version is not None:
        raise UnknownReference(number, "version")
    return found


def _row(tenant: Tenant, report: Report, chat: Chat | None, version: int | None) -> RecordedNudge:
    return RecordedNudge(
        tenant=tenant,
        code=report.code,
        source=report.source,
        chat=chat,
        chat_key=report.external_id or None if chat is None else None,
        message=report.message,
        point=report.point,
        turn=report.turn,
        stage=report.stage,
        version_id=version,
        model=report.model or (chat.model if chat else ""),
        language=report.language or (chat.language if chat else ""),
        outcome=report.outcome,
        at=_storable(report.at) or timezone.now(),
        external_key=report.external_key,
    )


def _storable(at: datetime | None) -> datetime | None:
    try:
        return at.astimezone(UTC) if at is not None else None
    except OverflowError:
        return None


# --- meeting the chats


def join_live_nudges(
    sender: Any, *, tenant: Tenant, versions: list[ChatVersion], records: list[ChatRecord], **rest: Any
) -> None:
    """Receiver of `versions_stored`, after the history's nudges are written: reported ones find their place in it."""
    by_key: dict[str, Chat] = {}
    for version, record in zip(versions, records, strict=True):
        if record.external_id and record.source_format == "eleanor-chat":
            by_key[record.external_id[:300]] = version.chat
    waiting = RecordedNudge.objects.filter(chat__isnull=True, chat_key__in=by_key)
    for pk, key in waiting.values_list("pk", "chat_key"):
        RecordedNudge.objects.filter(pk=pk).update(chat=by_key[str(key)], chat_key=None)
    _join_stored(tenant, {version.chat_id for version in versions})


def _join_stored(tenant: Tenant, chats: Iterable[int]) -> None:
    """Make one of a reported nudge and the message in the chat's newest version that holds it.

    Observed nudges were never said, so no message holds them.
    """
    reported: dict[int, list[RecordedNudge]] = {}
    for nudge in RecordedNudge.objects.filter(chat__in=list(chats), source=Source.LIVE).order_by("at", "pk"):
        if nudge.chat_id is not None:
            reported.setdefault(nudge.chat_id, []).append(nudge)
    if not reported:
        return
    held = RecordedNudge.objects.filter(chat__in=list(reported), source=Source.IMPORT).order_by("chat", "message", "pk")
    messages: dict[int, list[RecordedNudge]] = {}
    for nudge in held:
        if nudge.chat_id is not None:
            messages.setdefault(nudge.chat_id, []).append(nudge)
    for chat, rows in reported.items():
        _match(rows, messages.get(chat, []))


def _match(reported: list[RecordedNudge], held: list[RecordedNudge]) -> None:
    free = list(held)
    # Those that name their place choose first.
    for nudge in sorted(reported, key=lambda row: row.message is None and row.point is None and row.turn is None):
        found = next((row for row in free if _same(nudge, row)), None)
        if found is None:
            continue
        free.remove(found)
        found.delete()
        for name in _FROM_HISTORY:
            value = getattr(found, name)
            if value not in (None, ""):
                setattr(nudge, name, value)
        nudge.save(update_fields=_FROM_HISTORY)


def _same(reported: RecordedNudge, held: RecordedNudge) -> bool:
    """Of the same code, and at the place that the report names, as far as it names one."""
    if reported.code != held.code:
        return False
    if reported.message is not None:
        return reported.message == held.message
    if reported.point is not None:
        return reported.point == held.point
    return reported.turn is None or reported.turn == held.turn
