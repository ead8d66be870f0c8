"""Rows of work. The table is the truth and the queue is a hint (architecture.md section 5.4).

Whatever the broker loses or repeats, a row is claimed by compare-and-set, its result is written in the transaction
that marks it done, and rows whose heartbeat is old are sent again by the sweeper.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, ClassVar

from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

MAX_ATTEMPTS = 3
# Longer than any chunk takes between two heartbeats; shorter than a person's patience.
STALE_AFTER = timedelta(seconds=90)


class Status(models.TextChoices):
    QUEUED = "queued", _("Queued")
    RUNNING = "running", _("Running")
    DONE = "done", _("Done")
    FAILED = "failed", _("Failed")


class Work(models.Model):
    """An abstract row of work: who claims it, when it last showed life, how often it was tried."""

    status = models.CharField(max_length=10, choices=Status, default=Status.QUEUED)
    attempts = models.PositiveSmallIntegerField(default=0)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    error = models.TextField(default="", blank=True)

    class Meta:
        abstract = True
        indexes: ClassVar = []


def claim(rows: models.QuerySet[Any], pk: int, *, now: datetime | None = None) -> int | None:
    """Take a queued row, or one whose owner has gone silent. Gives the attempt's number, None when somebody has it."""
    at = now or timezone.now()
    free = Q(status=Status.QUEUED) | Q(status=Status.RUNNING, heartbeat_at__lt=at - STALE_AFTER)
    taken = rows.filter(free, pk=pk).update(status=Status.RUNNING, heartbeat_at=at, attempts=F("attempts") + 1)
    if not taken:
        return None
    attempt: int = rows.values_list("attempts", flat=True).get(pk=pk)
    return attempt


def beat(rows: models.QuerySet[Any], pk: int, attempt: int) -> bool:
    """Show life. False when the row was taken over meanwhile: then stop."""
    return bool(rows.filter(pk=pk, status=Status.RUNNING, attempts=attempt).update(heartbeat_at=timezone.now()))


def give_back(rows: models.QuerySet[Any], pk: int, attempt: int, error: str) -> Status | None:
    """After a failure: queued again, or failed for good at the last attempt. None when somebody else has the row."""
    status = Status.FAILED if attempt >= MAX_ATTEMPTS else Status.QUEUED
    mine = rows.filter(pk=pk, status=Status.RUNNING, attempts=attempt)
    return status if mine.update(status=status, error=error, heartbeat_at=timezone.now()) else None


def silent(rows: models.QuerySet[Any], *, now: datetime | None = None) -> models.QuerySet[Any]:
    """The rows that somebody should be told of again: queued or running without a sign of life."""
    limit = (now or timezone.now()) - STALE_AFTER
    waiting = Q(heartbeat_at__lt=limit) | Q(heartbeat_at__isnull=True)
    return rows.filter(waiting, status__in=(Status.QUEUED, Status.RUNNING))


def touch(rows: models.QuerySet[Any], pk: int, *, seen: datetime | None) -> bool:
    """Compare-and-set of the heartbeat before a row is sent again, so that of two sweepers only one sends it.

    The row is queued from then on: a running one that had gone silent could not be claimed with a fresh heartbeat.
    """
    free = rows.filter(pk=pk, heartbeat_at=seen, status__in=(Status.QUEUED, Status.RUNNING))
    return bool(free.update(heartbeat_at=timezone.now(), status=Status.QUEUED))
