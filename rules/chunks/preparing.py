"""Work on columns in the background: segments of chats that have none, bits of text terms that rules ask for, and what
came after the firings of replays.

One row a tenant and kind is the claim; what is done twice is passed over (`rules.chunks.segments`).
"""

from __future__ import annotations

import functools

import structlog
from django.utils import timezone
from django_scopes import scope, scopes_disabled

from eleanor_site import jobs
from eleanor_site.jobs import Status
from eleanor_site.tenants.models import Tenant
from rules import kept_columns
from rules.chunks import aftermaths, segments
from rules.domain.language import check
from rules.models import Preparation, RuleDraft, SegmentAtom
from rules.queries.manifests import catalogue_entries, defaults_of
from rules.queries.preparations import wanted
from rules.queries.segments import kept_view

log = structlog.get_logger(__name__)

RUN_SECONDS = 60.0
ATOM_BYTES = 64 * 1024 * 1024
Kind = Preparation.Kind


def run(preparation_id: int) -> bool:
    """Do a stretch of the work, unless somebody else does it. True when the task should be sent again."""
    with scopes_disabled():
        row = Preparation.objects.select_related("tenant").filter(pk=preparation_id).first()
    if row is None:
        return False
    with scope(tenant=row.tenant):
        attempt = jobs.claim(Preparation.objects, row.pk)
        if attempt is None:
            return False
        try:
            more = _work(row, attempt)
        except Exception as error:
            log.exception("preparation_failed", preparation=row.pk, attempt=attempt)
            return jobs.give_back(Preparation.objects, row.pk, attempt, type(error).__name__) == Status.QUEUED
        mine = Preparation.objects.filter(pk=row.pk, status=Status.RUNNING, attempts=attempt)
        mine.update(status=Status.DONE, attempts=0, error="", heartbeat_at=timezone.now())
        return more and wanted(row.tenant, row.kind) is not None


def _work(row: Preparation, attempt: int) -> bool:
    beat = functools.partial(jobs.beat, Preparation.objects, row.pk, attempt)
    if row.kind == Kind.AFTERMATH:
        return aftermaths.count_wanted(seconds=RUN_SECONDS, beat=beat)
    if row.kind == Kind.SEGMENTS:
        return segments.derive_missing(row.tenant, seconds=RUN_SECONDS, beat=beat)
    find_bits(row.tenant)
    return False


def find_bits(tenant: Tenant) -> None:
    """The bits of all text terms of live rules and drafts over the tenant's current segments."""
    view = kept_view(tenant)
    drafts = (check(source).tree for source in RuleDraft.objects.values_list("expression", flat=True))
    trees = [*segments.usual_terms(), *(tree for tree in drafts if tree is not None)]
    views = kept_columns.views_of(tenant, view.parts, defaults_of(tenant))
    if kept_columns.fetch_bits(views, view.parts, trees):
        return
    for part, points in zip(view.parts, views, strict=True):
        points.atoms.fill(trees)
        kept_columns.store_bits(tenant, [points], [part])


def to_send_again() -> list[tuple[str, int]]:
    """Work that stands still, and chats that came in without columns; each is named by one sweeper only."""
    found: list[tuple[str, int]] = []
    for tenant in Tenant.objects.all():
        with scope(tenant=tenant):
            if kept_view(tenant).missing:
                pk = wanted(tenant, Kind.SEGMENTS)
                if pk is not None:
                    found.append((Kind.SEGMENTS, pk))
            rows = Preparation.objects.all()
            for row in jobs.silent(rows):
                if jobs.touch(Preparation.objects, row.pk, seen=row.heartbeat_at) and (row.kind, row.pk) not in found:
                    found.append((row.kind, row.pk))
            _forget_bits()
            segments.forget_unused(catalogue_entries())
    return found


def _forget_bits() -> None:
    """Keep the bits of text terms within bounds: the oldest go, those that every import makes anew stay."""
    total = SegmentAtom.objects.count()
    if total < 1000:
        return
    sizes = SegmentAtom.objects.order_by("-used_at", "-pk").values_list("pk", "segment__point_count")
    held = 0
    for pk, points in sizes.iterator(chunk_size=5000):
        held += points // 8
        if held > ATOM_BYTES:
            SegmentAtom.objects.filter(pk__lte=pk).delete()
            return
