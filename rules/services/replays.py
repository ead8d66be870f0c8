"""Starting, stopping and resuming replays. The work is done by `rules.chunks.replays`, one task a chunk."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from chats.models import ChatVersion
from eleanor_site.audit.services import record
from eleanor_site.jobs import Status
from eleanor_site.problems import Refused
from eleanor_site.sending import send_on_commit
from eleanor_site.tenants.models import Tenant, User
from rules.domain.manifest import Manifest
from rules.domain.points import NO_DEFAULTS, Defaults
from rules.domain.rule_set import BrokenRule, RuleSpec, compile_rule
from rules.models import Replay, ReplayChunk
from rules.queries.manifests import BATCH, content_hashes, manifest_of, manifest_over
from rules.queries.replays import Compared
from rules.queries.segments import (
    ALL,
    CorpusView,
    Scope,
    content_hashes_in,
    corpus_view,
    kept_view,
    parts_of,
    prompts_prefix,
    versions_missing,
)
from rules.tasks import run_chunk

__all__ = ["Compared", "Scope", "make_baseline", "resume_replay", "start_again", "start_replay", "stop_replay"]

# Chats without columns get them in the replay's own tasks, so many points or chats a task.
DERIVED_POINTS = 32_768
DERIVED_CHATS = 1_000
# So many tasks are sent at the start; each sends the next ones when it is done.
FIRST_TASKS = 16


@transaction.atomic
def start_replay(
    *,
    tenant: Tenant,
    by: User | None,
    scope: Scope = ALL,
    rules: Sequence[RuleSpec],
    compared: Compared | None = None,
    defaults: Defaults = NO_DEFAULTS,
    title: str = "",
    send: bool = True,
) -> Replay:
    """Freeze everything that the result depends on, and queue one task a chunk.

    `compared` is a rule set over the same points, for which newly and gone are counted. `defaults` stand before the
    tenant's for chats that say nothing. `send=False` is for a caller that does the work itself.
    Refused when there is no chat in the scope, no rule in the set, or an expression has an error.
    """
    if not rules:
        raise Refused(_("There is no rule to replay. Publish rules, or include drafts."))
    # A kept view is as good as a new one for all chats; what a search finds is asked anew.
    view = kept_view(tenant, scope) if scope == ALL else corpus_view(scope)
    missing = versions_missing(view, scope)
    if not view.chats and not missing:
        raise Refused(_("There are no chats in this scope. Import some first."))
    hashes = [*content_hashes_in(view), *content_hashes(missing).values()]
    manifest = manifest_over(tenant, rules, hashes)
    manifest = manifest.model_copy(update={"defaults": defaults.before(manifest.defaults)})
    return _start(tenant, by, scope.as_json(), manifest, view, missing, compared, title, send)


@transaction.atomic
def start_again(
    *, tenant: Tenant, by: User | None, manifest: Manifest, versions: Sequence[int], title: str = "", send: bool = True
) -> Replay:
    """Run a manifest once more over these chat versions, which must be those that it names.

    Refused when they aren't, or when a prompt that the manifest doesn't know concerns one of them.
    """
    given = manifest_of(tenant, manifest.rules, versions)
    if given.corpus != manifest.corpus:
        raise Refused(_("These are not the chats of the manifest."))
    view, missing = parts_of(versions, manifest.catalogue, manifest.known_prompts)
    if missing and prompts_prefix(manifest.known_prompts) is None:
        raise Refused(_("Other prompts are known here, and some of these chats hold them."))
    return _start(tenant, by, {"kind": "manifest"}, manifest, view, missing, None, title, send)


def _start(
    tenant: Tenant,
    by: User | None,
    scope: dict[str, object],
    manifest: Manifest,
    view: CorpusView,
    missing: Sequence[int],
    compared: Compared | None,
    title: str,
    send: bool,
) -> Replay:
    for spec in [*manifest.rules, *(compared.rules if compared else ())]:
        try:
            compile_rule(spec)
        except BrokenRule as broken:
            raise Refused(
                _("The expression of %(code)s has an error. Mend it first.") % {"code": broken.code}
            ) from None
    replay = Replay.objects.create(
        tenant=tenant,
        title=title[:200],
        manifest=manifest.model_dump_json(),
        scope=json.dumps(scope),
        compared_with=compared.as_json() if compared else "",
        name_digest=manifest.digest(),
        chats_total=manifest.chat_count,
        by=by,
    )
    rows = [ReplayChunk(segment_id=part.segment, scope=part.kept, points=part.points) for part in view.parts]
    rows += [ReplayChunk(chats=json.dumps(ids), points=points) for ids, points in _derived(missing)]
    replay.points_total = sum(row.points for row in rows)
    for number, row in enumerate(rows):
        row.tenant, row.replay, row.number, row.points = tenant, replay, number, 0
    first = rows[:FIRST_TASKS] if send else []
    for row in first:
        row.heartbeat_at = timezone.now()
    ReplayChunk.objects.bulk_create(rows)
    replay.chunks_total = len(rows)
    replay.save(update_fields=["chunks_total", "points_total"])
    record(
        tenant=tenant,
        by=by,
        action="replay.start",
        object_type="replay",
        object_id=replay.pk,
        object_label=str(replay),
        after={"scope": scope, "rules": [spec.code for spec in manifest.rules], "chats": manifest.chat_count},
    )
    for row in first:
        send_on_commit(run_chunk, row.pk)
    return replay


def _derived(versions: Sequence[int]) -> Iterator[tuple[list[int], int]]:
    """Versions without columns in portions that make a segment each, with the number of their points."""
    sizes: dict[int, int] = {}
    for at in range(0, len(versions), BATCH):
        rows = ChatVersion.objects.filter(pk__in=versions[at : at + BATCH])
        for pk, finals, rounds in rows.values_list("pk", "chat__final_points", "chat__round_points"):
            sizes[pk] = finals + rounds
    portion: list[int] = []
    points = 0
    for pk in versions:
        if portion and (points + sizes.get(pk, 0) > DERIVED_POINTS or len(portion) >= DERIVED_CHATS):
            yield portion, points
            portion, points = [], 0
        portion.append(pk)
        points += sizes.get(pk, 0)
    if portion:
        yield portion, points


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
    replay.status, replay.finished_at = Replay.Status.RUNNING, None
    replay.save(update_fields=["status", "finished_at"])
    _record(tenant, by, "replay.resume", replay)
    first = list(missing.order_by("number").values_list("pk", flat=True)[:FIRST_TASKS])
    ReplayChunk.objects.filter(pk__in=first).update(heartbeat_at=timezone.now())
    for pk in first:
        send_on_commit(run_chunk, pk)
    return replay


@transaction.atomic
def make_baseline(*, tenant: Tenant, replay: Replay, by: User, on: bool = True) -> Replay:
    """The replay that others are compared with first; at most one of a tenant."""
    if on:
        Replay.objects.filter(baseline=True).exclude(pk=replay.pk).update(baseline=False)
    replay.baseline = on
    replay.save(update_fields=["baseline"])
    _record(tenant, by, "replay.baseline" if on else "replay.no_baseline", replay)
    return replay


def _record(tenant: Tenant, by: User, action: str, replay: Replay) -> None:
    record(
        tenant=tenant,
        by=by,
        action=action,
        object_type="replay",
        object_id=replay.pk,
        object_label=str(replay),
        after={"done": replay.chunks_done, "of": replay.chunks_total},
    )
