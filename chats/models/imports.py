"""Imports: the file, its progress, its report, and which chats it brought."""

from __future__ import annotations

import json
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from chats.models.chats import Chat, ChatVersion
from eleanor_site.jobs import Work
from eleanor_site.tenants.models import TenantModel


class ImportJob(TenantModel, Work):
    """One uploaded file. `report` and `options` are JSON as text.

    `file` is empty once one of its chats was deleted or redacted, since the file would still hold it.
    """

    file = models.FileField(upload_to="imports/%Y/%m/", blank=True)
    file_name = models.CharField(max_length=255)
    file_size = models.PositiveBigIntegerField(default=0)
    # Chosen by the person, or empty: detected from the content.
    chosen_format = models.CharField(max_length=40, default="", blank=True)
    format = models.CharField(max_length=40, default="", blank=True)
    options = models.TextField(default="{}")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    taken = models.PositiveIntegerField(default=0)
    updated = models.PositiveIntegerField(default=0)
    unchanged = models.PositiveIntegerField(default=0)
    skipped = models.PositiveIntegerField(default=0)
    messages = models.PositiveIntegerField(default=0)
    bytes_read = models.PositiveBigIntegerField(default=0)
    report = models.TextField(default="{}")

    class Meta:
        indexes: ClassVar = [models.Index(fields=["tenant", "-id"])]

    @property
    def check_only(self) -> bool:
        """True for a job that only says what an import would do."""
        return bool(json.loads(self.options).get("check_only"))

    def __str__(self) -> str:
        return self.file_name


class ImportDeletion(TenantModel, Work):
    """The deletion of an import. It outlives the import, whose address goes on telling what became of it.

    `total` are the chats that the import named; each is deleted (`chats`), or stays whole or in part (`kept`).
    """

    job = models.OneToOneField(ImportJob, null=True, on_delete=models.SET_NULL, related_name="deletion")
    number = models.PositiveBigIntegerField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    total = models.PositiveIntegerField(default=0)
    chats = models.PositiveIntegerField(default=0)
    kept = models.PositiveIntegerField(default=0)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "number"], name="import_deleted_once"),
        ]

    @property
    def passed(self) -> int:
        return self.chats + self.kept

    def __str__(self) -> str:
        return f"deletion of import {self.number}"


class ImportedChat(TenantModel):
    """What an import did to one chat. Makes a repeated import harmless: a chat counts once in an import."""

    class Outcome(models.TextChoices):
        TAKEN = "taken", _("Taken")
        UPDATED = "updated", _("Updated")
        UNCHANGED = "unchanged", _("Unchanged")

    job = models.ForeignKey(ImportJob, on_delete=models.CASCADE, related_name="chats")
    chat = models.ForeignKey(Chat, on_delete=models.CASCADE, related_name="imports")
    version = models.ForeignKey(ChatVersion, on_delete=models.CASCADE, related_name="+")
    outcome = models.CharField(max_length=10, choices=Outcome)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["job", "chat"], name="imported_chat_once"),
        ]

    def __str__(self) -> str:
        return f"{self.job_id} {self.outcome} {self.chat_id}"
