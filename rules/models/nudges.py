"""Nudges that the history holds, whoever wrote them there."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from eleanor_site.tenants.models import TenantModel


class RecordedNudge(TenantModel):
    """One nudge of a stored chat, or one that a live runtime reported."""

    class Source(models.TextChoices):
        IMPORT = "import", _("Import")
        LIVE = "live", _("Live")
        OBSERVE = "observe", _("Observe")

    code = models.CharField(max_length=64)
    source = models.CharField(max_length=10, choices=Source)
    chat = models.ForeignKey("chats.Chat", null=True, blank=True, on_delete=models.CASCADE, related_name="+")
    chat_version = models.ForeignKey(
        "chats.ChatVersion", null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    message = models.PositiveIntegerField(null=True, blank=True)
    turn = models.PositiveIntegerField(null=True, blank=True)
    stage = models.CharField(max_length=5, default="", blank=True)
    version = models.ForeignKey("rules.RuleVersion", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    model = models.CharField(max_length=200, default="", blank=True)
    language = models.CharField(max_length=5, default="", blank=True)
    # What came next: acted, finished, ignored, or empty when unknown (continuation.md section 14).
    outcome = models.CharField(max_length=10, default="", blank=True)
    at = models.DateTimeField(null=True, blank=True)
    external_key = models.CharField(max_length=200, default="", blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["chat_version", "message"],
                condition=models.Q(chat_version__isnull=False),
                name="recorded_nudge_once_in_history",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["tenant", "-id"]),
            models.Index(fields=["tenant", "code", "-id"]),
            models.Index(fields=["tenant", "at"]),
        ]

    def __str__(self) -> str:
        return f"{self.code} {self.source}"
