"""Starting, stopping and resuming replays. The work is done by `rules.chunks`, one task a chunk."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.utils.translation import gettext as _

from chats.models import Chat, ImportJob
from chats.queries.chats import ChatFilter, chats, newest_versions
from eleanor_site.audit.services import record
from eleanor_site.jobs import Status
from eleanor_site.problems import Refused
from eleanor_site.sending import send_on_commit
from eleanor_site.tenants.models import Tenant, User
from rules.domain.rule_set import BrokenRule, RuleSpec, compile_rule
from rules.models import Replay, ReplayChunk
from rules.queries.manifests import manifest_of
from rules.tasks import run_chunk

CHUNK_CHATS = 200


@dataclass(frozen=True)
class Scope:
    """Which chats are replayed: all of them, or those of one import."""

    job: ImportJob | None = None

    def as_json(self) -> dict[str, object]:
        if self.job is None:
            return {"kind": "all"}
        return {"kind": "import", "import": self.job.pk, "file": self.job.file_name}

    def versions(self) -> list[int]:
        found = chats(ChatFilter(job=self.job.pk)) if self.job else Chat.objects.all()
        return list(newest_versions(found).values_list("pk", flat=True))


@transaction.atomic
def start_replay(
    *,
    tenant: Tenant,
    by: User | None,
    scope: Scope,
    rules: Sequence[RuleSpec],
    title: str = "",
    send: bool = True,
) -> Replay:
    """Freeze everything that the result depends on, and queue one task a chunk.

    `send=False` is for a caller that does the work itself.
    Refused when there is no chat in the scope, no rule in the set, or an expression has an error.
    """
    if not rules:
        raise Refused(_("There is no rule to replay. Publish rules, or include drafts."))
    for spec in rules:
        try:
            compile_rule(spec)
        except BrokenRule as broken:
            raise Refused(
                _("The expression of %(code)s has an error. Mend it first.") % {"code": broken.code}
            ) from None
    versions = scope.versions()
    if not versions:
        raise Refused(_("There are no chats in this scope. Import some first."))
    manifest = manifest_of(tenant, rules, versions)
    replay = Replay.objects.create(
        tenant=tenant,
        title=title[:200],
        manifest=manifest.model_dump_json(),
        scope=json.dumps(scope.as_json()),
        name_digest=manifest.digest(),
        chats_total=len(versions),
        by=by,
    )
    chunks = [versions[at : at + CHUNK_CHATS] for at in range(0, len(versions), CHUNK_CHATS)]
    rows = ReplayChunk.objects.bulk_create(
        ReplayChunk(tenant=tenant, replay=replay, number=number, chats=json.dumps(ids))
        for number, ids in enumerate(chunks)
    )
    replay.chunks_total = len(rows)
    replay.save(update_fields=["chunks_total"])
    record(
        tenant=tenant,
        by=by,
        action="replay.start",
        object_type="replay",
        object_id=replay.pk,
        object_label=str(replay),
        after={"scope": scope.as_json(), "rules": [spec.code for spec in rules], "chats": len(versions)},
    )
    if send:
        for row in rows:
            send_on_commit(run_chunk, row.pk)
    return replay


@transaction.atomic
def stop_replay(*, tenant: Tenant, replay: Replay, by: User) -> Replay:
    """Chunks that are under way give their result up; what is done stays."""
    replay = Replay.objects.select_for_update().get(pk=replay.pk)
    if replay.status not in (Replay.Status.QUEUED, Replay.Status.RUNNING):
        return replay
    replay.status = Replay.Status.STOPPED
    replay.save(update_fields=["status"])
    _record(tenant, by, "replay.stop", replay)
    return replay


@transaction.atomic
def resume_replay(*, tenant: Tenant, replay: Replay, by: User) -> Replay:
    """Queue again what is missing, and only that."""
    replay = Replay.objects.select_for_update().get(pk=replay.pk)
    if replay.status not in (Replay.Status.STOPPED, Replay.Status.INCOMPLETE):
        return replay
    missing = ReplayChunk.objects.filter(replay=replay).exclude(status=Status.DONE)
    missing.update(status=Status.QUEUED, attempts=0, heartbeat_at=None, error="")
    replay.status = Replay.Status.RUNNING
    replay.save(update_fields=["status"])
    _record(tenant, by, "replay.resume", replay)
    for pk in missing.values_list("pk", flat=True):
        send_on_commit(run_chunk, pk)
    return replay


def _record(tenant: Tenant, by: User | None, action: str, replay: Replay) -> None:
    record(
        tenant=tenant,
        by=by,
        action=action,
        object_type="replay",
        object_id=replay.pk,
        object_label=str(replay),
        after={"done": replay.chunks_done, "of": replay.chunks_total},
    )
