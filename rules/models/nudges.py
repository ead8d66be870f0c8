"""Nudges that the history holds, whoever wrote them there, and their counts by day."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models.functions import Coalesce
from django.utils.translation import gettext_lazy as _

from eleanor_site.tenants.models import TenantModel


class RecordedNudge(TenantModel):
    """One nudge of a stored chat, or one that a live runtime reported.

    Lists go by `sorted_at`: when it happened where that is known, else when it came in. Indexes follow the filters of
    the list, so that a page costs the same however many nudges there are and however deep it lies.
    """

    class Source(models.TextChoices):
        IMPORT = "import", _("Import")
        LIVE = "live", _("Live")
        OBSERVE = "observe", _("Observe")

    code = models.CharField(max_length=64)
    source = models.CharField(max_length=10, choices=Source)
    # A chat that retention removes leaves its nudges, so that counts stay.
    chat = models.ForeignKey("chats.Chat", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    chat_version = models.ForeignKey(
        "chats.ChatVersion", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    message = models.PositiveIntegerField(null=True, blank=True)
    # The response that the point right before the nudge stands at; with the stage it names that point.
    point = models.PositiveIntegerField(null=True, blank=True)
    turn = models.PositiveIntegerField(null=True, blank=True)
    stage = models.CharField(max_length=5, default="", blank=True)
    version = models.ForeignKey("rules.RuleVersion", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    model = models.CharField(max_length=200, default="", blank=True)
    language = models.CharField(max_length=5, default="", blank=True)
    # What came next: acted, finished, ignored, or empty when unknown (continuation.md section 14).
    outcome = models.CharField(max_length=10, default="", blank=True)
    at = models.DateTimeField(null=True, blank=True)
    # A reporter's own name for the nudge: reported again under it, it is the same one.
    external_key = models.CharField(max_length=200, default="", blank=True)
    # The id that a chat which isn't stored yet has in its source; none as soon as `chat` is known.
    chat_key = models.CharField(max_length=300, null=True, blank=True)  # noqa: DJ001  added without a new table
    created_at = models.DateTimeField(auto_now_add=True)
    sorted_at = models.GeneratedField(
        expression=Coalesce("at", "created_at"), output_field=models.DateTimeField(), db_persist=True
    )

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["chat_version", "message"],
                condition=models.Q(chat_version__isnull=False),
                name="recorded_nudge_once_in_history",
            ),
            models.UniqueConstraint(
                fields=["tenant", "external_key"],
                condition=~models.Q(external_key=""),
                name="recorded_nudge_once_by_key",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["tenant", "-sorted_at", "-id"], name="nudge_by_time"),
            models.Index(fields=["tenant", "code", "-sorted_at", "-id"], name="nudge_by_code"),
            models.Index(fields=["tenant", "model", "-sorted_at", "-id"], name="nudge_by_model"),
            models.Index(fields=["tenant", "language", "-sorted_at", "-id"], name="nudge_by_language"),
            models.Index(fields=["tenant", "source", "-sorted_at", "-id"], name="nudge_by_source"),
            models.Index(fields=["tenant", "outcome", "-sorted_at", "-id"], name="nudge_by_outcome"),
            models.Index(fields=["chat_version", "point"], name="nudge_by_point"),
            models.Index(
                fields=["tenant", "chat_key"], condition=models.Q(chat_key__isnull=False), name="nudge_without_chat"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.code} {self.source}"


class NudgeDay(TenantModel):
    """How many recorded nudges of one kind there are on one day (UTC).

    Triggers keep it in step with the table of nudges, whoever writes there; nothing else writes here. `day` is an ISO
    date, empty where the history has no time, and a star for the sum over all days: each nudge counts twice, on its
    day and there. `version` is the id of a rule version, 0 where it isn't known.
    """

    ALL_DAYS = "*"

    day = models.CharField(max_length=10, default="", blank=True)
    code = models.CharField(max_length=64)
    version = models.PositiveBigIntegerField(default=0)
    model = models.CharField(max_length=200, default="", blank=True)
    language = models.CharField(max_length=5, default="", blank=True)
    source = models.CharField(max_length=10)
    stage = models.CharField(max_length=5, default="", blank=True)
    outcome = models.CharField(max_length=10, default="", blank=True)
    count = models.PositiveIntegerField(default=0)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["tenant", "day", "code", "version", "model", "language", "source", "stage", "outcome"],
                name="nudge_day_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.day} {self.code} {self.count}"
