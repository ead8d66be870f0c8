"""Starting an import. The work itself is done by a worker (`chats.chunks`)."""

from __future__ import annotations

import json
from typing import Any

from django.core.files.base import File
from django.db import transaction
from django.utils.translation import gettext as _

from chats.models import ImportDeletion, ImportJob
from chats.tasks import run_import
from eleanor_site.audit.services import record
from eleanor_site.jobs import Status
from eleanor_site.problems import Refused
from eleanor_site.sending import send_on_commit
from eleanor_site.tenants.models import Tenant, User


@transaction.atomic
def start_import(
    *,
    tenant: Tenant,
    by: User | None,
    file: File[bytes],
    name: str,
    chosen_format: str = "",
    options: dict[str, Any] | None = None,
    send: bool = True,
) -> ImportJob:
    """Keep the file and queue its import. The file lies under a name of our own; `name` is only shown.

    `send=False` is for a caller that does the work itself.
    """
    job = ImportJob(
        tenant=tenant,
        by=by,
        file_name=name[-255:],
        file_size=file.size,
        chosen_format=chosen_format,
        options=json.dumps(options or {}),
    )
    job.file.save("upload", file, save=False)
    job.save()
    record(
        tenant=tenant,
        by=by,
        action="import.start",
        object_type="import",
        object_id=job.pk,
        object_label=job.file_name,
        after={"format": chosen_format or "detected", "bytes": job.file_size},
    )
    if send:
        send_on_commit(run_import, job.pk)
    return job


@transaction.atomic
def import_checked(*, tenant: Tenant, job: ImportJob, by: User, text_protocol: str = "") -> ImportJob:
    """Import the file of a job that was only checked, with a text protocol converted if one is named."""
    job = ImportJob.objects.select_for_update().get(pk=job.pk)
    if job.status != Status.DONE or not job.check_only:
        return job
    _refuse_without_file(job)
    options = {**json.loads(job.options), "check_only": False}
    if text_protocol:
        options["text_protocol"] = text_protocol
    job.options = json.dumps(options)
    job.status, job.attempts, job.heartbeat_at, job.report, job.finished_at = Status.QUEUED, 0, None, "{}", None
    job.save()
    record(
        tenant=tenant,
        by=by,
        action="import.start",
        object_type="import",
        object_id=job.pk,
        object_label=job.file_name,
        after={"format": job.format, "text_protocol": text_protocol},
    )
    send_on_commit(run_import, job.pk)
    return job


@transaction.atomic
def try_again(*, tenant: Tenant, job: ImportJob, by: User) -> ImportJob:
    """Queue a failed import once more; chats that it has taken already aren't taken twice."""
    job = ImportJob.objects.select_for_update().get(pk=job.pk)
    if job.status != Status.FAILED:
        return job
    _refuse_without_file(job)
    job.status, job.attempts, job.heartbeat_at, job.error = Status.QUEUED, 0, None, ""
    job.save()
    record(
        tenant=tenant,
        by=by,
        action="import.retry",
        object_type="import",
        object_id=job.pk,
        object_label=job.file_name,
    )
    send_on_commit(run_import, job.pk)
    return job


def _refuse_without_file(job: ImportJob) -> None:
    if ImportDeletion.objects.filter(job=job).exists():
        raise Refused(_("This import is being deleted."))
    if not job.file:
        raise Refused(_("The uploaded file is deleted. Upload it again."))
