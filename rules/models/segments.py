"""Columns of points: immutable segments, and the cached bits of text terms (rule-engine.md section 5)."""

from __future__ import annotations

import json
from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from eleanor_site.jobs import Work
from eleanor_site.tenants.models import TenantModel


class Segment(TenantModel):
    """Up to 65,536 consecutive points of whole chats. No row per point, and no change once written.

    Its texts lie in media storage under their hash. `catalogue` and `walker_version` name what the points were derived
    with; `prompts` is the highest `KnownPrompt` that was looked for. `people` holds hashes of what people wrote, by
    which a new prompt finds the chats it concerns; `contents` the content hashes of the chat versions, 32 bytes each.
    `strays` is JSON: recorded nudges without a point right before them, as [chat, message, turn, code]. `tools` is
    JSON: for each name of a tool that is offered or called how often it is called, and the chats, a bit each, in hex.
    `sequels` is what the report on what came after firings needs (`rules.domain.sequels`), empty where it was never
    asked for since it is known. `retired_at` is set when nothing but results names the segment.
    """

    point_count = models.PositiveIntegerField()
    chat_count = models.PositiveIntegerField()
    catalogue = models.CharField(max_length=64)
    walker_version = models.PositiveIntegerField()
    prompts = models.PositiveBigIntegerField(default=0)
    scalars = models.BinaryField()
    people = models.BinaryField(default=bytes)
    contents = models.BinaryField(default=bytes)
    strays = models.TextField(default="[]")
    tools = models.TextField(default="{}")
    sequels = models.BinaryField(default=bytes)
    text_hash = models.CharField(max_length=64)
    text_size = models.PositiveBigIntegerField(default=0)
    digest = models.CharField(max_length=64)
    retired_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        # Holds all that is asked for at every question: reading past the blobs of a row takes a millisecond each.
        indexes: ClassVar = [models.Index(fields=["tenant", "retired_at", "id", "digest"], name="segment_state")]

    def __str__(self) -> str:
        return f"segment {self.pk}"


class SegmentChat(TenantModel):
    """Which stored chat is which in a segment, and where its points are.

    `superseded` is set when a later segment holds the same version again. `gaps` is JSON: the numbers of the chat's
    turns that have points, written only where they aren't 0, 1, 2 and so on.
    """

    segment = models.ForeignKey(Segment, on_delete=models.CASCADE, related_name="chats")
    number = models.PositiveIntegerField()
    version = models.ForeignKey("chats.ChatVersion", on_delete=models.CASCADE, related_name="+")
    first_point = models.PositiveIntegerField()
    point_count = models.PositiveIntegerField()
    superseded = models.BooleanField(default=False)
    gaps = models.TextField(default="", blank=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["segment", "number"], name="segment_chat_once")]

    def turn(self, place: int) -> int:
        """The number, in the chat, of its `place`-th turn that has points; both count from 0."""
        if not self.gaps:
            return place
        found: int = json.loads(self.gaps)[place]
        return found

    def __str__(self) -> str:
        return f"{self.segment_id}/{self.number}"


class SegmentAtom(TenantModel):
    """The bit-packed result of one text term over one segment. The key holds the versions of the helpers it calls."""

    segment = models.ForeignKey(Segment, on_delete=models.CASCADE, related_name="atoms")
    key = models.CharField(max_length=64)
    bits = models.BinaryField()
    used_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["segment", "key"], name="segment_atom_once")]

    def __str__(self) -> str:
        return f"{self.segment_id} {self.key[:8]}"


class Preparation(TenantModel, Work):
    """Work on a tenant's columns: segments of chats that have none, bits of text terms that rules ask for, or what
    came after the firings of replays that somebody wants to know it of."""

    class Kind(models.TextChoices):
        SEGMENTS = "segments", _("Columns of chats")
        ATOMS = "atoms", _("Text terms of rules")
        AFTERMATH = "aftermath", _("What came after firings")

    kind = models.CharField(max_length=10, choices=Kind)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["tenant", "kind"], name="preparation_once")]

    def __str__(self) -> str:
        return f"{self.kind} of {self.tenant_id}"
