"""What the deciding side deletes with chats: nudges, verdicts, items to review, tests, and points in columns.

Locks are taken in the order that imports and replays take them in: nudges, replays, chunks, and the tenant last.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from django.db import models
from django.db.models import Count, Max

from eleanor_site.tenants.models import Tenant
from rules.models import RecordedNudge, ReviewItem, ReviewQueue, RuleTest, Verdict
from rules.services.segments import prepare_segments

BATCH = 500
_Row = TypeVar("_Row", bound=models.Model)


def remove_from_rules(
    sender: Any,
    *,
    tenant: Tenant,
    versions: frozenset[int],
    chats: frozenset[int],
    successors: Mapping[int, int],
    keep_counts: bool,
    **rest: Any,
) -> None:
    """Receiver of `versions_removing`; runs inside the transaction that deletes the chats."""
    from rules.chunks.pruning import prune  # numeric libraries, on first use

    for old, new in successors.items():
        _move_on(old, new)
    gone = versions - successors.keys()
    if keep_counts:
        _forget_where(gone, chats)
    else:
        _delete(RecordedNudge.objects.all(), "chat", chats)
        _delete(RecordedNudge.objects.filter(source=RecordedNudge.Source.IMPORT), "chat_version", gone)
        _delete(Verdict.objects.all(), "chat_version", gone)
    for part in _parts(gone):
        # What was reported of a chat that stays is no part of the version.
        RecordedNudge.objects.filter(chat_version__in=part).update(
            chat_version=None, message=None, point=None, turn=None
        )
    _delete(RuleTest.objects.all(), "chat_version", gone)
    _delete_items(gone)
    if prune(tenant, versions):
        prepare_segments(tenant)


def _parts(ids: Collection[int]) -> Iterator[list[int]]:
    wanted = sorted(ids)
    for at in range(0, len(wanted), BATCH):
        yield wanted[at : at + BATCH]


def _delete(rows: models.QuerySet[_Row], field: str, ids: Collection[int]) -> None:
    for part in _parts(ids):
        rows.filter(**{f"{field}__in": part}).delete()


def _move_on(old: int, new: int) -> None:
    """What was said of a version holds for the one that takes its place: its points are the same."""
    for rows in (Verdict.objects.all(), ReviewItem.objects.all(), RuleTest.objects.all(), RecordedNudge.objects.all()):
        rows.filter(chat_version=old).update(chat_version=new)


def _forget_where(versions: Collection[int], chats: Collection[int]) -> None:
    """Nudges and verdicts stay as numbers. Nothing in them says any more which chat it was, or what somebody noted."""
    for part in _parts(chats):
        RecordedNudge.objects.filter(chat__in=part).update(
            chat=None, chat_version=None, message=None, point=None, turn=None, external_key="", chat_key=None
        )
    serial = Verdict.objects.filter(chat_version=None).aggregate(top=Max("message"))["top"] or 0
    for part in _parts(versions):
        points: dict[tuple[int | None, int, str], list[int]] = {}
        for verdict in Verdict.objects.filter(chat_version__in=part):
            points.setdefault((verdict.chat_version_id, verdict.message, verdict.stage), []).append(verdict.pk)
        for verdicts in points.values():
            # Verdicts on one point belong together: a number of its own takes the place of the message's.
            serial += 1
            Verdict.objects.filter(pk__in=verdicts).update(
                chat=None, chat_version=None, message=serial, turn=0, note=""
            )


def _delete_items(versions: Collection[int]) -> None:
    """Take points out of the queues in which they wait; the others move up."""
    queues: set[int] = set()
    for part in _parts(versions):
        items = ReviewItem.objects.filter(chat_version__in=part)
        queues.update(items.order_by().values_list("queue", flat=True).distinct())
        items.delete()
    for queue in ReviewQueue.objects.filter(pk__in=queues).annotate(left=Count("items")):
        _move_up(queue.items.order_by("position").values_list("pk", "position"))
        ReviewQueue.objects.filter(pk=queue.pk).update(item_count=queue.left)


def _move_up(rows: Iterable[tuple[int, int]]) -> None:
    for position, (pk, was) in enumerate(list(rows), start=1):
        if position != was:
            ReviewItem.objects.filter(pk=pk).update(position=position)
