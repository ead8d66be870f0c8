"""Changes that are collected before they become a release: the open release, and requests for approval."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from eleanor_site.tenants.models import TenantModel
from rules.models.releases import ReleaseEntry


class Proposal(TenantModel):
    """What the next release is to change. A tenant has at most one that is open, and any number that wait.

    `order` is the wanted order as a JSON list of rule ids, empty when it stays. `based_on` is the number of the
    release that was live when approval was asked for.
    """

    class Status(models.TextChoices):
        OPEN = "open", _("Open")
        REQUESTED = "requested", _("Approval requested")
        APPROVED = "approved", _("Approved")
        REFUSED = "refused", _("Refused")
        WITHDRAWN = "withdrawn", _("Withdrawn")
        PUBLISHED = "published", _("Published")

    status = models.CharField(max_length=10, choices=Status, default=Status.OPEN)
    note = models.TextField(default="", blank=True)
    order = models.TextField(default="", blank=True)
    based_on = models.PositiveIntegerField(default=0)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    decided_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    decision_note = models.TextField(default="", blank=True)
    release = models.ForeignKey("rules.Release", null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant"], condition=Q(status="open"), name="one_open_proposal_per_tenant"),
        ]
        indexes: ClassVar = [models.Index(fields=["tenant", "status", "-id"])]

    def __str__(self) -> str:
        return f"proposal {self.pk}"


class ProposalItem(TenantModel):
    """One rule of a proposal. `revision` is that of its draft when approval was asked for, None before that."""

    proposal = models.ForeignKey(Proposal, on_delete=models.CASCADE, related_name="items")
    rule = models.ForeignKey("rules.Rule", on_delete=models.CASCADE, related_name="+")
    revision = models.PositiveIntegerField(null=True)
    mode = models.CharField(max_length=10, choices=ReleaseEntry.Mode, default=ReleaseEntry.Mode.LIVE)
    added_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["proposal", "rule"], name="proposal_rule_once"),
        ]

    def __str__(self) -> str:
        return f"{self.proposal_id} {self.rule_id}"
