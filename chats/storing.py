"""Storing chats as numbered versions, whatever way they came in: an import or the API take the same path."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from chats.domain import ChatRecord
from chats.domain.exchange import to_json
from chats.domain.formats import identity_key, state_hash
from chats.domain.languages import language_of
from chats.domain.titles import title_of
from chats.models import Chat, ChatVersion, ImportedChat
from eleanor_site.tenants.models import Tenant

Outcome = ImportedChat.Outcome


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of one chat. `version` is the newest one; it is a new one unless the outcome is UNCHANGED."""

    chat: Chat
    version: ChatVersion
    outcome: ImportedChat.Outcome

    @property
    def is_new(self) -> bool:
        return self.outcome != Outcome.UNCHANGED


def identity_of(source_format: str, key: str) -> str:
    """What a chat is known by in its tenant; `key` as `identity_key` gives it."""
    return hashlib.sha256(f"{source_format}\n{key}".encode()).hexdigest()


def expected_outcome(record: ChatRecord) -> Outcome:
    """What `store_record` would come to now; nothing is stored."""
    identity = identity_of(record.source_format, identity_key(record))
    newest = ChatVersion.objects.filter(chat__identity=identity).order_by("-number").first()
    if newest is None:
        return Outcome.TAKEN
    return Outcome.UNCHANGED if newest.content_hash == state_hash(record) else Outcome.UPDATED


def store_record(tenant: Tenant, record: ChatRecord, title: str = "") -> Stored:
    """Store one chat inside the caller's transaction: a new chat, a new version of it, or nothing new.

    `title` is what the chats that come with it make of it, for a new chat (`chats.domain.titles`).
    """
    identity = identity_of(record.source_format, identity_key(record))
    state = state_hash(record)
    chat = Chat.objects.select_for_update().filter(identity=identity).first()
    if chat is None:
        chat = Chat(tenant=tenant, identity=identity, format=record.source_format)
    newest = ChatVersion.objects.filter(chat=chat).order_by("-number").first() if chat.pk else None
    if newest is not None and newest.content_hash == state:
        return Stored(chat, newest, Outcome.UNCHANGED)
    summarise(chat, record, title)
    chat.version_count = newest.number + 1 if newest else 1
    chat.save()
    version = ChatVersion.objects.create(
        tenant=tenant, chat=chat, number=chat.version_count, content=to_json(record), content_hash=state
    )
    return Stored(chat, version, Outcome.UPDATED if newest else Outcome.TAKEN)


def store_records(tenant: Tenant, records: Sequence[ChatRecord], titles: Sequence[str] | None = None) -> list[Stored]:
    """The same as `store_record` one after the other, with a few statements for all chats that are new."""
    given = titles or [""] * len(records)
    identities = [identity_of(record.source_format, identity_key(record)) for record in records]
    there = set(Chat.objects.filter(identity__in=identities).values_list("identity", flat=True))
    fresh: dict[str, tuple[Chat, ChatRecord]] = {}
    for identity, record, title in zip(identities, records, given, strict=True):
        if identity not in there and identity not in fresh:
            chat = Chat(tenant=tenant, identity=identity, format=record.source_format, version_count=1)
            summarise(chat, record, title)
            fresh[identity] = chat, record
    Chat.objects.bulk_create([chat for chat, _record in fresh.values()])
    versions = ChatVersion.objects.bulk_create(
        ChatVersion(tenant=tenant, chat=chat, number=1, content=to_json(record), content_hash=state_hash(record))
        for chat, record in fresh.values()
    )
    stored = {version.chat_id: Stored(version.chat, version, Outcome.TAKEN) for version in versions}
    results = []
    for identity, record, title in zip(identities, records, given, strict=True):
        new = fresh.get(identity)
        first = new is not None and new[1] is record
        results.append(stored[new[0].pk] if new is not None and first else store_record(tenant, record, title))
    return results


def new_versions(stored: Sequence[Stored]) -> list[ChatVersion]:
    return [one.version for one in stored if one.is_new]


def summarise(chat: Chat, record: ChatRecord, title: str = "") -> None:
    """Write what lists and filters read of the newest version into the chat's row, which isn't saved yet.

    The title that the chat has stays as long as its texts still hold it.
    """
    messages, details = record.chat.messages, record.details
    spoken = [m.content for m in messages if m.role in (record.chat.human_role, record.chat.ai_role)]
    chat.external_id = (record.external_id or "")[:300]
    if record.title or not _still_says(record, chat.title):
        chat.title = title or title_of(record)
    chat.message_count = len(messages)
    chat.nudge_count = sum(d.nudge_code is not None for d in details)
    chat.language = language_of(spoken)
    chat.model = next((d.model for d in details if d.model), str(record.metadata.get("model") or ""))[:200]
    chat.started_at = _storable(next((d.created_at for d in details if d.created_at), None))


def _still_says(record: ChatRecord, title: str) -> bool:
    people = (m.content.replace("\n", " ") for m in record.chat.messages if m.role == record.chat.human_role)
    return bool(title) and any(title in text for text in people)


def _storable(at: datetime | None) -> datetime | None:
    """In UTC; nothing for a time that has no place there, such as the first hours of the year 1 in the east."""
    try:
        return at.astimezone(UTC) if at is not None else None
    except OverflowError:
        return None
