"""Columns of points: immutable segments, and the cached bits of text terms (rule-engine.md section 5)."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from eleanor_site.tenants.models import TenantModel


class Segment(TenantModel):
    """Up to 65,536 consecutive points of whole chats. No row per point.

    `chats` is a JSON list of chat version ids as text, in the order of the points. `retired_at` is set when a chat in
    it has a newer version, and the segment is kept only for the results that name it.
    """

    point_count = models.PositiveIntegerField()
    chats = models.TextField()
    chat_count = models.PositiveIntegerField()
    # What the columns depend on: catalogue, known prompts, and version of the walker.
    catalogue = models.CharField(max_length=64)
    walker_version = models.PositiveIntegerField()
    scalars = models.BinaryField()
    text_file = models.CharField(max_length=200)
    text_hash = models.CharField(max_length=64)
    digest = models.CharField(max_length=64)
    retired_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes: ClassVar = [models.Index(fields=["tenant", "retired_at", "id"])]

    def __str__(self) -> str:
        return f"segment {self.pk}"


class SegmentAtom(TenantModel):
    """The bit-packed result of one text term over one segment."""

    segment = models.ForeignKey(Segment, on_delete=models.CASCADE, related_name="atoms")
    key = models.CharField(max_length=64)
    bits = models.BinaryField()
    used_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["segment", "key"], name="segment_atom_once")]

    def __str__(self) -> str:
        return f"{self.segment_id} {self.key[:8]}"
