"""Named selections of chats."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models

from eleanor_site.tenants.models import TenantModel


class Corpus(TenantModel):
    """A frozen selection: the chat versions that it holds never change, and its digest names them.

    `members` is a JSON list of chat version ids as text, in the order in which they are replayed. `missing` counts
    those that were deleted or redacted since: the corpus is no longer whole then.
    """

    name = models.CharField(max_length=120)
    digest = models.CharField(max_length=64)
    members = models.TextField(default="[]")
    chat_count = models.PositiveIntegerField(default=0)
    missing = models.PositiveIntegerField(default=0)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["tenant", "name"], name="corpus_name_unique")]

    def __str__(self) -> str:
        return self.name
