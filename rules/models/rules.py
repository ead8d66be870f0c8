"""Rules: an identity by code, one draft, and immutable versions."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from eleanor_site.tenants.models import TenantModel


class Stage(models.TextChoices):
    FINAL = "final", _("Final answer")
    ROUND = "round", _("Tool round")


class RuleContent(models.Model):
    """What a draft and a version both hold."""

    title_en = models.CharField(max_length=120, default="", blank=True)
    title_fr = models.CharField(max_length=120, default="", blank=True)
    explanation_en = models.TextField(default="", blank=True)
    explanation_fr = models.TextField(default="", blank=True)
    stage = models.CharField(max_length=5, choices=Stage, default=Stage.FINAL)
    max_nudges = models.PositiveSmallIntegerField(default=1)
    expression = models.TextField(default="", blank=True)
    prompt_en = models.TextField(default="", blank=True)
    prompt_fr = models.TextField(default="", blank=True)

    class Meta:
        abstract = True


CONTENT_FIELDS = tuple(field.name for field in RuleContent._meta.local_fields)


class Rule(TenantModel):
    """A rule's identity. Where it stands in the order, and whether it is live, is said by the releases."""

    code = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)
    archived_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "code"], name="rule_code_unique_in_tenant"),
            models.CheckConstraint(condition=~models.Q(code=""), name="rule_code_not_empty"),
        ]

    def __str__(self) -> str:
        return self.code


class RuleDraft(TenantModel, RuleContent):
    """The editable state on the server. `revision` rises with each save; a save names the one that it saw.

    `based_on` is the number of the version that the draft was made from, 0 for a new rule.
    """

    rule = models.OneToOneField(Rule, on_delete=models.CASCADE, related_name="draft")
    revision = models.PositiveIntegerField(default=1)
    based_on = models.PositiveIntegerField(default=0)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=models.Q(stage__in=Stage.values), name="rule_draft_stage_known"),
        ]

    def __str__(self) -> str:
        return f"{self.rule_id} draft {self.revision}"


class DraftRevision(TenantModel):
    """A saved state of a draft, so that an address can name it and a conflict can show what both sides began with.

    `content` is JSON as text, by field name. Older ones than the newest few hundred of a rule are forgotten.
    """

    rule = models.ForeignKey(Rule, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    content = models.TextField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["rule", "number"], name="draft_revision_number_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.rule_id} draft {self.number}"


class RuleVersion(TenantModel, RuleContent):
    """An immutable, numbered state with a note.

    `points` and `fires` are what the rule came to over the tenant's chats when it was published, None when that wasn't
    known then.
    """

    rule = models.ForeignKey(Rule, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    note = models.TextField(default="", blank=True)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    approved_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    points = models.PositiveIntegerField(null=True)
    fires = models.PositiveIntegerField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["rule", "number"], name="rule_version_number_unique"),
            models.CheckConstraint(condition=models.Q(number__gte=1), name="rule_version_counts_from_one"),
            models.CheckConstraint(condition=models.Q(stage__in=Stage.values), name="rule_version_stage_known"),
        ]

    def __str__(self) -> str:
        return f"{self.rule_id} v{self.number}"


class RuleTest(TenantModel):
    """A point that a rule should, or should not, fire on: a stored point, or a small written context (JSON text)."""

    rule = models.ForeignKey(Rule, on_delete=models.CASCADE, related_name="tests")
    should_fire = models.BooleanField()
    note = models.CharField(max_length=200, default="", blank=True)
    chat_version = models.ForeignKey(
        "chats.ChatVersion", null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    message = models.PositiveIntegerField(null=True, blank=True)
    stage = models.CharField(max_length=5, choices=Stage, default=Stage.FINAL)
    context = models.TextField(default="", blank=True)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.rule_id} {'fires' if self.should_fire else 'does not fire'}"


class KnownPrompt(TenantModel):
    """Every prompt that a rule ever had, in its normal form: what recognises a recorded nudge in a history."""

    text_hash = models.CharField(max_length=64)
    code = models.CharField(max_length=64)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["tenant", "text_hash"], name="known_prompt_once")]

    def __str__(self) -> str:
        return self.code
