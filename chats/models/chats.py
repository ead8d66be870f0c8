"""Stored chats: an identity with numbered, immutable versions of its content (canonical-chat.md section 5)."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from eleanor_site.tenants.models import TenantModel


class Chat(TenantModel):
    """One conversation. Lists and filters read the summary columns; they repeat the newest version's."""

    format = models.CharField(max_length=40)
    external_id = models.CharField(max_length=300, default="", blank=True)
    # What makes two uploads the same chat (import-formats.md section 5), as 64 hex digits.
    identity = models.CharField(max_length=64)
    title = models.CharField(max_length=300, default="", blank=True)
    version_count = models.PositiveIntegerField(default=0)
    message_count = models.PositiveIntegerField(default=0)
    turn_count = models.PositiveIntegerField(default=0)
    round_points = models.PositiveIntegerField(default=0)
    final_points = models.PositiveIntegerField(default=0)
    nudge_count = models.PositiveIntegerField(default=0)
    language = models.CharField(max_length=5, default="", blank=True)
    model = models.CharField(max_length=200, default="", blank=True)
    # When the conversation took place, where the source says so; never invented.
    started_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "identity"], name="chat_identity_unique"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["tenant", "-id"]),
            models.Index(fields=["tenant", "model"]),
            models.Index(fields=["tenant", "started_at"]),
        ]

    @property
    def point_count(self) -> int:
        return self.round_points + self.final_points

    def __str__(self) -> str:
        return self.title or self.external_id or f"#{self.pk}"


class ChatVersion(TenantModel):
    """What a chat contained at one import. Never changed; results and verdicts name the version that they saw.

    `content` is the exchange form as JSON text, since a JSON column would reorder keys and rewrite numbers.
    """

    chat = models.ForeignKey(Chat, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    content = models.TextField()
    content_hash = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["chat", "number"], name="chat_version_number_unique"),
            models.CheckConstraint(condition=models.Q(number__gte=1), name="chat_version_number_counts_from_one"),
        ]

    def __str__(self) -> str:
        return f"{self.chat_id} v{self.number}"
