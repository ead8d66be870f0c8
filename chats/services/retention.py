"""Deleting an import or a chat on request, and saying for how long chats are kept."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from chats.import_removal import Busy, delete_part, finish
from chats.models import Chat, ChatVersion, ImportDeletion, ImportJob
from chats.removing import Removed, busy_imports, remove_versions
from chats.tasks import run_deletion
from eleanor_site.audit.services import record
from eleanor_site.jobs import STALE_AFTER, Status
from eleanor_site.problems import Refused
from eleanor_site.sending import send_on_commit
from eleanor_site.tenants.models import Tenant, User

# Chats that go while the person waits: a second or two.
AT_ONCE = 500


@transaction.atomic
def delete_import(*, tenant: Tenant, by: User, job: ImportJob) -> ImportDeletion:
    """Delete the import, its file, and every chat that no other import and no service brought, with all that was made
    from them: a small one at once and whole, a larger one by a worker. Refused while the import is at work."""
    job = ImportJob.objects.select_for_update().get(pk=job.pk)
    if _is_at_work(job):
        raise Refused(_("This import is still at work. Delete it when it is done."))
    deletion, made = ImportDeletion.objects.get_or_create(
        tenant=tenant, number=job.pk, defaults={"job": job, "by": by, "total": job.chats.count()}
    )
    if not made and deletion.status != Status.FAILED:
        return deletion
    deletion.by, deletion.status, deletion.attempts, deletion.heartbeat_at, deletion.error = (
        by,
        Status.QUEUED,
        0,
        None,
        "",
    )
    deletion.save()
    if deletion.total - deletion.passed <= AT_ONCE:
        try:
            while delete_part(tenant, deletion, job):
                pass
        except Busy:
            raise Refused(_("Another import is reading the same chats. Try again when it is done.")) from None
        finish(tenant, deletion, job)
        return deletion
    record(
        tenant=tenant,
        by=by,
        action="import.delete_begin",
        object_type="import",
        object_id=job.pk,
        object_label=job.file_name,
        after={"chats": deletion.total - deletion.passed},
    )
    send_on_commit(run_deletion, deletion.pk)
    return deletion


def _is_at_work(job: ImportJob) -> bool:
    seen = job.heartbeat_at
    return job.status == Status.RUNNING and seen is not None and seen > timezone.now() - STALE_AFTER


@transaction.atomic
def delete_chat(*, tenant: Tenant, by: User, chat: Chat) -> Removed:
    """Delete one chat with all its versions, what was made from them, and the uploaded files that hold it."""
    versions = list(ChatVersion.objects.filter(chat=chat).values_list("pk", flat=True))
    if busy_imports(versions):
        raise Refused(_("An import is reading this chat. Try again when it is done."))
    removed = remove_versions(tenant, versions)
    record(
        tenant=tenant,
        by=by,
        action="chat.delete",
        object_type="chat",
        object_id=chat.pk,
        # Its title may be the first thing that somebody wrote there.
        object_label=f"#{chat.pk}",
        before={"format": chat.format, "versions": removed.versions, "messages": chat.message_count},
        after={"files_deleted": removed.files},
    )
    return removed


@transaction.atomic
def keep_chats_for(*, tenant: Tenant, by: User, days: int | None) -> Tenant:
    """From now on chats are deleted after so many days; None: they are kept for ever."""
    stored = Tenant.objects.select_for_update().get(pk=tenant.pk)
    before = stored.keep_chats_days
    if before == days:
        return stored
    stored.keep_chats_days = days
    stored.save(update_fields=["keep_chats_days"])
    record(
        tenant=stored,
        by=by,
        action="retention.change",
        object_type="retention",
        object_id=stored.pk,
        object_label=stored.name,
        before={"days": before},
        after={"days": days},
    )
    return stored
