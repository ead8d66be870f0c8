"""Webhooks: where a tenant wants to be told of events, what is to be told, and what came of each try."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from eleanor_site.jobs import Work
from eleanor_site.tenants.models import TenantModel


class Event(models.TextChoices):
    RELEASE_PUBLISHED = "release.published", _("A release was published")
    OBSERVE_EXPIRING = "rule.observe_expiring", _("Observing a rule ends within three days")
    REPLAY_FINISHED = "replay.finished", _("A replay finished")
    REPLAY_REGRESSED = "replay.regressed", _("A scheduled replay differs from its baseline")
    GATE_FAILED = "gate.failed", _("A gate stopped a publication")


# Sent by the test button only; nobody subscribes to it.
TEST_EVENT = "test"


class Webhook(TenantModel):
    """An address that events are posted to. `events` are their names, separated by blanks.

    `secret` signs what is sent (`whsec_` and base64). It has to be kept as it is, since it is needed for each delivery.
    """

    url = models.CharField(max_length=500)
    events = models.CharField(max_length=200)
    secret = models.CharField(max_length=80)
    active = models.BooleanField(default=True)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes: ClassVar = [models.Index(fields=["tenant", "id"])]

    def __str__(self) -> str:
        return self.url

    def wants(self, event: str) -> bool:
        return self.active and event in self.events.split()


class Delivery(TenantModel, Work):
    """One event for one webhook. `payload` is the body as it is sent, each time the same.

    `subject` names what the event is about where it must be told once only. `due_at` is when the next try may begin.
    """

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    name = models.CharField(max_length=40, unique=True)
    event = models.CharField(max_length=40)
    subject = models.CharField(max_length=100, null=True, blank=True)  # noqa: DJ001  none is unlike any other none
    payload = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)
    due_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["webhook", "event", "subject"], name="delivery_subject_once"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["tenant", "-id"]),
            models.Index(fields=["status", "due_at"]),
        ]

    def __str__(self) -> str:
        return f"{self.event} {self.name}"


class Attempt(TenantModel):
    """One try of a delivery: the status that the receiver answered with, or why there was none."""

    delivery = models.ForeignKey(Delivery, on_delete=models.CASCADE, related_name="tries")
    number = models.PositiveSmallIntegerField()
    at = models.DateTimeField(auto_now_add=True)
    milliseconds = models.PositiveIntegerField(default=0)
    status = models.PositiveSmallIntegerField(null=True)
    # One of `sending.Trouble`'s codes, or empty.
    trouble = models.CharField(max_length=30, default="", blank=True)

    class Meta:
        ordering: ClassVar = ["pk"]

    def __str__(self) -> str:
        return f"{self.delivery_id}/{self.number}: {self.status or self.trouble}"
