"""The tenant's own tool catalogue, which stands before the built-in one (continuation.md section 5)."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from eleanor_site.tenants.models import TenantModel


class ToolEntry(TenantModel):
    class Kind(models.TextChoices):
        READ = "read", _("Read: only looks")
        VERIFY = "verify", _("Verify: checks")
        OTHER = "other", _("Other: may change something")
        FINISH = "finish", _("Finish: ends the work")

    position = models.PositiveIntegerField()
    pattern = models.CharField(max_length=200)
    argument = models.CharField(max_length=100, default="", blank=True)
    argument_pattern = models.CharField(max_length=200, default="", blank=True)
    kind = models.CharField(max_length=6, choices=Kind, default=Kind.OTHER)
    repeatable = models.BooleanField(default=False)
    success_pattern = models.CharField(max_length=200, default="", blank=True)
    failure_pattern = models.CharField(max_length=200, default="", blank=True)

    class Meta:
        ordering: ClassVar = ["position"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=models.Q(kind__in=["read", "verify", "other", "finish"]), name="tool_kind_known"
            ),
        ]

    def __str__(self) -> str:
        return self.pattern
