"""What people think of firings and of points, and the queues in which they look at them (product.md section 5.9)."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from eleanor_site.tenants.models import TenantModel
from rules.models.rules import Stage


class PointReference(models.Model):
    """A point, named for good by chat version, message and stage; and which rule is meant there.

    `code` is empty where no rule is meant. `version` is the number of the rule's version, 0 where it isn't known.
    What is said of a point outlives its chat.
    """

    chat = models.ForeignKey("chats.Chat", null=True, on_delete=models.SET_NULL, related_name="+")
    chat_version = models.ForeignKey("chats.ChatVersion", null=True, on_delete=models.SET_NULL, related_name="+")
    message = models.PositiveIntegerField()
    turn = models.PositiveIntegerField(default=0)
    stage = models.CharField(max_length=5, choices=Stage)
    code = models.CharField(max_length=64, default="", blank=True)
    version = models.PositiveIntegerField(default=0)

    class Meta:
        abstract = True

    @property
    def point(self) -> str:
        """The point's name in addresses."""
        return f"{self.message}-{self.stage}"


class Verdict(TenantModel, PointReference):
    """One person's judgement. Saying something else later changes it; the change log keeps what it was."""

    class Value(models.TextChoices):
        RIGHT = "right", _("Right")
        WRONG = "wrong", _("Wrong")
        UNSURE = "unsure", _("Unsure")
        MISSED = "missed", _("Missed")

    value = models.CharField(max_length=6, choices=Value)
    note = models.TextField(default="", blank=True)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["chat_version", "message", "stage", "code", "by"], name="verdict_once_a_person"
            ),
            models.CheckConstraint(
                condition=models.Q(value__in=["right", "wrong", "unsure", "missed"]), name="verdict_known"
            ),
            models.CheckConstraint(condition=models.Q(stage__in=["final", "round"]), name="verdict_stage_known"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["tenant", "code", "version"]),
            models.Index(fields=["tenant", "value"]),
        ]

    def __str__(self) -> str:
        return f"{self.code} {self.value}"


class ReviewQueue(TenantModel):
    """Points to look at, chosen once: everybody who reviews the queue sees the same ones. `source` is JSON as text."""

    class Kind(models.TextChoices):
        SEARCH = "search", _("Chats of a search")
        FIRINGS = "firings", _("New firings of a rule")

    name = models.CharField(max_length=120)
    kind = models.CharField(max_length=10, choices=Kind)
    source = models.TextField(default="{}")
    item_count = models.PositiveIntegerField(default=0)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes: ClassVar = [models.Index(fields=["tenant", "-id"])]

    def __str__(self) -> str:
        return self.name


class ReviewItem(TenantModel, PointReference):
    """One point of a queue. `recorded` tells that the nudge is in the history, not only found by rules."""

    queue = models.ForeignKey(ReviewQueue, on_delete=models.CASCADE, related_name="items")
    position = models.PositiveIntegerField()
    recorded = models.BooleanField(default=False)
    # Whose rules found it; the live ones where it is empty.
    replay = models.ForeignKey("rules.Replay", null=True, on_delete=models.SET_NULL, related_name="+")

    class Meta:
        ordering: ClassVar = ["position"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["queue", "position"], name="review_item_position_once"),
        ]

    def __str__(self) -> str:
        return f"{self.queue_id}/{self.position}"
