"""Replays that are run again and again, and what came of each time (product.md goal E5)."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from eleanor_site.tenants.models import TenantModel
from rules.models.replays import Replay


class ReplaySchedule(TenantModel):
    """The inputs of a replay, run daily or weekly and compared with a baseline. `scope` is a `Scope` as text.

    `due_at` is when it runs next; whoever moves it on starts the run. `weekday` counts from Monday, None: each day.
    """

    class Rules(models.TextChoices):
        LIVE = "live", _("The live release of that time")
        DRAFTS = "drafts", _("The drafts of that time in their places")
        BASELINE = "baseline", _("The baseline's rules, as they were")

    name = models.CharField(max_length=200)
    scope = models.CharField(max_length=40)
    rules = models.CharField(max_length=10, choices=Rules, default=Rules.LIVE)
    weekday = models.PositiveSmallIntegerField(null=True, blank=True)
    hour = models.PositiveSmallIntegerField()
    baseline = models.ForeignKey(Replay, on_delete=models.CASCADE, related_name="+")
    active = models.BooleanField(default=True)
    due_at = models.DateTimeField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=models.Q(hour__lte=23), name="schedule_hour_of_a_day"),
            models.CheckConstraint(
                condition=models.Q(weekday__isnull=True) | models.Q(weekday__lte=6), name="schedule_weekday_of_a_week"
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["tenant", "id"]),
            models.Index(fields=["active", "due_at"]),
        ]

    def __str__(self) -> str:
        return self.name


class ScheduledRun(TenantModel):
    """One due time of a schedule: the replay that it started, and how that compares with the baseline.

    `outcome` is empty until the replay is done. `changed` is JSON: the rules that differ, with their numbers.
    """

    class Outcome(models.TextChoices):
        SAME = "same", _("as the baseline")
        DIFFERS = "differs", _("differs from the baseline")
        APART = "apart", _("no chat in common with the baseline")
        REFUSED = "refused", _("could not be started")

    schedule = models.ForeignKey(ReplaySchedule, on_delete=models.CASCADE, related_name="runs")
    due_at = models.DateTimeField()
    replay = models.ForeignKey(Replay, null=True, on_delete=models.CASCADE, related_name="+")
    baseline = models.ForeignKey(Replay, on_delete=models.CASCADE, related_name="+")
    outcome = models.CharField(max_length=10, choices=Outcome, default="", blank=True)
    changed = models.TextField(default="[]")
    shared_chats = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["-pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["schedule", "due_at"], name="scheduled_run_once"),
        ]
        indexes: ClassVar = [models.Index(fields=["outcome", "id"])]

    def __str__(self) -> str:
        return f"{self.schedule_id} {self.due_at.isoformat()}"
