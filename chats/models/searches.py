"""Searching chats: the index of their texts, and searches that people keep."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models

from chats.models.chats import Chat
from eleanor_site.tenants.models import TenantModel


class ChatText(TenantModel):
    """The newest text of a chat as the search index keeps it (`chats.domain.search_terms`).

    A full-text index stands on `stems`, in each database's own way (migration `search`).
    """

    chat = models.OneToOneField(Chat, on_delete=models.CASCADE, primary_key=True, related_name="text")
    stems = models.TextField()
    words = models.TextField()

    def __str__(self) -> str:
        return f"text of {self.chat_id}"


class SavedSearch(TenantModel):
    """Filters of the chat list under a name; `query` is the URL's query string."""

    name = models.CharField(max_length=120)
    query = models.TextField(default="", blank=True)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["tenant", "name"], name="saved_search_name_unique")]

    def __str__(self) -> str:
        return self.name
