"""Releases: the ordered set of rule versions that is live for a tenant."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from eleanor_site.tenants.models import TenantModel
from rules.models.rules import RuleVersion


class Release(TenantModel):
    """Immutable once published. A roll back is a new release with older versions in it."""

    class Status(models.TextChoices):
        LIVE = "live", _("Live")
        SUPERSEDED = "superseded", _("Superseded")

    number = models.PositiveIntegerField()
    status = models.CharField(max_length=10, choices=Status)
    note = models.TextField(default="", blank=True)
    # What it was made on top of: publishing on top of somebody else's change is a conflict.
    based_on = models.PositiveIntegerField(default=0)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    approved_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    published_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "number"], name="release_number_unique"),
            models.UniqueConstraint(
                fields=["tenant"], condition=models.Q(status="live"), name="one_live_release_per_tenant"
            ),
        ]

    def __str__(self) -> str:
        return f"release {self.number}"


class ReleaseEntry(TenantModel):
    """One rule version at its place in a release."""

    class Mode(models.TextChoices):
        LIVE = "live", _("Live")
        OBSERVE = "observe", _("Observe")
        PAUSED = "paused", _("Paused")

    release = models.ForeignKey(Release, on_delete=models.CASCADE, related_name="entries")
    position = models.PositiveIntegerField()
    version = models.ForeignKey(RuleVersion, on_delete=models.PROTECT, related_name="+")
    mode = models.CharField(max_length=10, choices=Mode, default=Mode.LIVE)
    observe_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["position"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["release", "position"], name="release_position_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.release_id} {self.position} {self.mode}"
