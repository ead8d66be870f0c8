"""Replays and their chunks. The chunk's row decides that its result counts once (rule-engine.md section 7.4)."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from eleanor_site.jobs import Work
from eleanor_site.tenants.models import TenantModel


class Replay(TenantModel):
    """A run of a rule set over stored chats. What it depends on is frozen in `manifest` (JSON as text)."""

    class Status(models.TextChoices):
        QUEUED = "queued", _("Queued")
        RUNNING = "running", _("Running")
        DONE = "done", _("Done")
        STOPPED = "stopped", _("Stopped")
        INCOMPLETE = "incomplete", _("Incomplete")

    title = models.CharField(max_length=200, default="", blank=True)
    status = models.CharField(max_length=10, choices=Status, default=Status.QUEUED)
    # Rules in order, catalogue, defaults, known prompts, versions of engine and helpers.
    manifest = models.TextField()
    scope = models.TextField(default="{}")
    # Another rule set over the same points, as JSON: its name and its rules; empty when there is none.
    compared_with = models.TextField(default="", blank=True)
    name_digest = models.CharField(max_length=64)
    result_digest = models.CharField(max_length=64, default="", blank=True)
    chunks_total = models.PositiveIntegerField(default=0)
    chunks_done = models.PositiveIntegerField(default=0)
    chats_total = models.PositiveIntegerField(default=0)
    points_total = models.PositiveIntegerField(default=0)
    points = models.PositiveIntegerField(default=0)
    fires = models.PositiveIntegerField(default=0)
    counts = models.TextField(default="{}")
    baseline = models.BooleanField(default=False)
    # Somebody asked what came after its firings, and some chunk doesn't tell yet.
    aftermath_wanted = models.BooleanField(default=False)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=models.Q(chunks_done__lte=models.F("chunks_total")), name="replay_done_within_total"
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["tenant", "-id"])]

    def __str__(self) -> str:
        return self.title or f"#{self.pk}"


class ReplayChunk(TenantModel, Work):
    """A segment or the chats that will become one, and what the rules decided there.

    `chats` is a JSON list of chat version ids as text, for chats that had no segment when the replay was started.
    `scope` has one bit for each chat of the segment; None means all of them. `result` is the deflated outcome, and
    `compared` that of the rule set to compare with; `counts` is JSON as text. `aftermath` is what
    came after the firings, as `rules.domain.sequels` counts it and as JSON; empty where it isn't known. A heartbeat
    of None means that no task was sent for it yet.
    """

    replay = models.ForeignKey(Replay, on_delete=models.CASCADE, related_name="chunks")
    number = models.PositiveIntegerField()
    chats = models.TextField(default="[]")
    segment = models.ForeignKey("rules.Segment", null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    scope = models.BinaryField(null=True, blank=True)
    result = models.BinaryField(null=True, blank=True)
    compared = models.BinaryField(null=True, blank=True)
    # Chats of the result that were deleted since: how many, and the digest of what was decided in them.
    removed_chats = models.PositiveIntegerField(default=0)
    removed_digest = models.CharField(max_length=64, default="", blank=True)
    result_hash = models.CharField(max_length=64, default="", blank=True)
    counts = models.TextField(default="{}")
    aftermath = models.TextField(default="", blank=True)
    points = models.PositiveIntegerField(default=0)

    class Meta:
        ordering: ClassVar = ["number"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["replay", "number"], name="replay_chunk_once")]

    def __str__(self) -> str:
        return f"{self.replay_id}/{self.number}"


class RemovedFinding(TenantModel):
    """Findings of one kind in the deleted chats of a chunk, so that counts and charts keep their numbers.

    `day` is that of the chats, None where they had none; `code` the rule that fired, or that of the recorded nudge.
    `status` is that of the findings, or `newly` or `gone` against the rule set to compare with.
    """

    chunk = models.ForeignKey(ReplayChunk, on_delete=models.CASCADE, related_name="removed_findings")
    day = models.DateField(null=True, blank=True)
    code = models.CharField(max_length=64)
    model = models.CharField(max_length=200, default="", blank=True)
    language = models.CharField(max_length=5, default="", blank=True)
    status = models.CharField(max_length=14)
    count = models.PositiveIntegerField()

    def __str__(self) -> str:
        return f"{self.chunk_id} {self.code} {self.count}"
