"""Wrapper records: settings over a built-in base, or a chat template; drafts and immutable versions."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from eleanor_site.tenants.models import TenantModel


class WrapperContent(models.Model):
    """What a draft and a version both hold. `settings`, `options`, `wording` … are JSON as text."""

    model_name = models.CharField(max_length=200, default="", blank=True)
    # The id of a built-in wrapper; empty when a template writes the prompt.
    base = models.CharField(max_length=60, default="", blank=True)
    # Only what differs from the base (chat-wrappers.md section 6).
    settings = models.TextField(default="{}", blank=True)
    options = models.TextField(default="{}", blank=True)
    wording = models.TextField(default="{}", blank=True)
    # Byte for byte as it came; CR and LF are kept.
    template = models.TextField(default="", blank=True)
    # Further templates of the same model by name, such as `tool_use` (chat-templates.md, "Which template").
    named_templates = models.TextField(default="{}", blank=True)
    template_tokens = models.TextField(default="{}", blank=True)
    template_kwargs = models.TextField(default="{}", blank=True)
    template_profile = models.CharField(max_length=10, default="current", blank=True)
    # What the server does to a chat before the template sees it.
    serving = models.TextField(default="{}", blank=True)
    # Findings of the lint that the author answered for: key to reason.
    silenced = models.TextField(default="{}", blank=True)

    class Meta:
        abstract = True


CONTENT_FIELDS = tuple(field.name for field in WrapperContent._meta.local_fields)


class Wrapper(TenantModel):
    """How one model's prompt is written."""

    class Kind(models.TextChoices):
        SETTINGS = "settings", _("Settings over a built-in wrapper")
        TEMPLATE = "template", _("Chat template")

    slug = models.SlugField(max_length=60)
    name = models.CharField(max_length=120)
    kind = models.CharField(max_length=10, choices=Kind, default=Kind.SETTINGS)
    created_at = models.DateTimeField(auto_now_add=True)
    archived_at = models.DateTimeField(null=True, blank=True)
    # Revisions of drafts go on where the draft before ended, so that a number names one content for good.
    last_revision = models.PositiveIntegerField(default=0)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["tenant", "slug"], name="wrapper_slug_unique")]

    def __str__(self) -> str:
        return self.name


class WrapperDraft(TenantModel, WrapperContent):
    """The editable state on the server. `revision` rises with each save; a save names the one that it saw."""

    wrapper = models.OneToOneField(Wrapper, on_delete=models.CASCADE, related_name="draft")
    revision = models.PositiveIntegerField(default=1)
    based_on = models.PositiveIntegerField(default=0)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    updated_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"{self.wrapper_id} draft {self.revision}"


class WrapperRevision(TenantModel):
    """What a draft was at each save, as JSON text: what two people began with who now disagree."""

    wrapper = models.ForeignKey(Wrapper, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    content = models.TextField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["wrapper", "number"], name="wrapper_revision_number_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.wrapper_id} revision {self.number}"


class WrapperVersion(TenantModel, WrapperContent):
    """An immutable, numbered state with a note."""

    wrapper = models.ForeignKey(Wrapper, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    note = models.TextField(default="", blank=True)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["wrapper", "number"], name="wrapper_version_number_unique"),
            models.CheckConstraint(condition=models.Q(number__gte=1), name="wrapper_version_counts_from_one"),
        ]

    def __str__(self) -> str:
        return f"{self.wrapper_id} v{self.number}"
