"""Taking texts out of stored chats for good: a new version without them, and nothing left of the versions before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from django.db import transaction
from django.utils.translation import gettext as _

from chats import signals
from chats.domain import ChatRecord
from chats.domain.exchange import to_json
from chats.domain.formats import state_hash
from chats.domain.redaction import Redaction
from chats.models import Chat, ChatVersion
from chats.queries.chats import record_of
from chats.removing import busy_imports, remove_versions
from chats.storing import summarise
from eleanor_site.audit.services import record as record_change
from eleanor_site.problems import Conflict, Refused
from eleanor_site.tenants.models import Tenant, User

READ = 100
Redactor = Callable[[ChatRecord], Redaction]


@dataclass(frozen=True)
class Redacted:
    """How many chats were changed, and in how many places; `files` that held the texts were deleted."""

    chats: int
    places: int
    files: int


def redactions(versions: list[int], redactor: Redactor) -> Iterator[tuple[ChatVersion, Redaction]]:
    """Each of the versions in which something would go, in their order, with what the redactor makes of it."""
    for at in range(0, len(versions), READ):
        found = ChatVersion.objects.select_related("chat").in_bulk(versions[at : at + READ])
        for pk in versions[at : at + READ]:
            if pk in found:
                redaction = redactor(record_of(found[pk]))
                if redaction.places:
                    yield found[pk], redaction


@transaction.atomic
def redact(*, tenant: Tenant, by: User, seen: Mapping[int, int], redactor: Redactor, how: str) -> Redacted:
    """Redact these chats: `seen` names for each the number of the version that the person saw.

    What was said of points of the newest version holds for the new one; older versions go with what was said of them.
    Their uploaded files are deleted, since they still hold the texts. Conflict when a chat went on meanwhile; refused
    when nothing is found. `how` is a word for the change log, which never tells the texts or the pattern.
    """
    chats = list(Chat.objects.select_for_update().filter(pk__in=list(seen)).order_by("pk"))
    if any(chat.version_count != seen[chat.pk] for chat in chats) or len(chats) != len(seen):
        raise Conflict(_("One of these chats has changed meanwhile. Look again at what would be replaced."))
    newest = list(
        ChatVersion.objects.filter(chat__in=[chat.pk for chat in chats])
        .order_by("chat_id", "number")
        .values_list("chat_id", "pk")
    )
    last = dict(newest)
    made: list[ChatVersion] = []
    records: list[ChatRecord] = []
    successors: dict[int, int] = {}
    places = 0
    for version, redaction in redactions(list(last.values()), redactor):
        new = _new_version(tenant, version, redaction.record)
        made.append(new)
        records.append(redaction.record)
        successors[version.pk] = new.pk
        places += len(redaction.places)
    if not made:
        raise Refused(_("Nothing of this is found, so nothing was replaced."))
    changed = {version.chat_id for version in made}
    old = [pk for chat, pk in newest if chat in changed]
    if busy_imports(old):
        raise Refused(_("An import is reading one of these chats. Try again when it is done."))
    removed = remove_versions(tenant, old, successors=successors)
    signals.versions_stored.send(sender=Chat, tenant=tenant, versions=made, records=records, job=None)
    record_change(
        tenant=tenant,
        by=by,
        action="chats.redact",
        object_type="chat",
        object_id=made[0].chat_id if len(made) == 1 else "",
        object_label=f"#{made[0].chat_id}" if len(made) == 1 else f"#{made[0].chat_id} +{len(made) - 1}",
        after={"how": how, "chats": len(made), "places": places, "files_deleted": removed.files},
    )
    return Redacted(len(made), places, removed.files)


def _new_version(tenant: Tenant, version: ChatVersion, record: ChatRecord) -> ChatVersion:
    chat = version.chat
    summarise(chat, record)
    chat.version_count = version.number + 1
    chat.save()
    new = ChatVersion.objects.create(
        tenant=tenant, chat=chat, number=chat.version_count, content=to_json(record), content_hash=state_hash(record)
    )
    # It came in when the texts did: retention counts from then.
    ChatVersion.objects.filter(pk=new.pk).update(created_at=version.created_at)
    return new
