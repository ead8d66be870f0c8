"""The change log: append only, each row chained to the one before it by hash."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from django.conf import settings
from django.db import models
from django_scopes import ScopedManager

from eleanor_site.tenants.models import Tenant


class Entry(models.Model):
    """One change. `number` counts from 1 without gaps in a tenant; before and after are JSON as text."""

    # Entries outlive nobody's deletion: a tenant with a log can't be removed by accident.
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    number = models.PositiveBigIntegerField()
    at = models.DateTimeField()
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    actor_label = models.CharField(max_length=254)
    action = models.CharField(max_length=60)
    object_type = models.CharField(max_length=40)
    object_id = models.CharField(max_length=64)
    object_label = models.CharField(max_length=200)
    before = models.TextField(default="")
    after = models.TextField(default="")
    note = models.TextField(default="")
    request_id = models.CharField(max_length=64, default="")
    previous_hash = models.CharField(max_length=64)
    hash = models.CharField(max_length=64)

    if not TYPE_CHECKING:  # the type checker knows the plain manager, which has the same methods
        objects = ScopedManager(tenant="tenant")

    class Meta:
        ordering: ClassVar = ["tenant", "number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "number"], name="entry_number_unique"),
        ]
        indexes: ClassVar = [models.Index(fields=["tenant", "object_type", "object_id"])]

    def __str__(self) -> str:
        return f"{self.number} {self.action} {self.object_label}"
