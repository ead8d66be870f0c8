"""People, organisations, and who may do what where."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.db import models
from django.utils.translation import gettext_lazy as _
from django_scopes import ScopedManager
from django_scopes.manager import DisabledQuerySet

# The library lets these two pass without a scope, and "does any tenant have …" is a leak as well.
DisabledQuerySet.exists = DisabledQuerySet.exclude = DisabledQuerySet.error


class Role(models.TextChoices):
    """In rising order: each role may do all that the ones before it may (product.md section 7)."""

    VIEWER = "viewer", _("Viewer")
    REVIEWER = "reviewer", _("Reviewer")
    AUTHOR = "author", _("Author")
    PUBLISHER = "publisher", _("Publisher")
    ADMIN = "admin", _("Admin")

    def includes(self, other: Role) -> bool:
        order = list(Role)
        return order.index(self) >= order.index(other)


class Theme(models.TextChoices):
    SYSTEM = "system", _("System")
    LIGHT = "light", _("Light")
    DARK = "dark", _("Dark")


class PromptLanguage(models.TextChoices):
    ENGLISH = "en", _("English")
    FRENCH = "fr", _("French")


class UserManager(BaseUserManager["User"]):
    def create_user(self, email: str, password: str | None = None, **fields: Any) -> User:
        user = User(email=self.normalize_email(email).lower(), **fields)
        user.set_password(password)
        user.save()
        return user


class User(AbstractBaseUser):
    """A person. People sign in by e-mail address, and see nothing but the tenants they are members of."""

    email = models.EmailField(_("e-mail address"), unique=True)
    name = models.CharField(_("name"), max_length=120, blank=True)
    is_active = models.BooleanField(default=True)
    language = models.CharField(max_length=5, blank=True)
    theme = models.CharField(max_length=6, choices=Theme, default=Theme.SYSTEM)
    # A name of the zone database; empty: as the browser says.
    time_zone = models.CharField(max_length=64, default="", blank=True)
    single_key_shortcuts = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    objects = UserManager()

    def __str__(self) -> str:
        return self.name or self.email


class Tenant(models.Model):
    """An organisation, and the defaults that its chats and rules fall back to."""

    slug = models.SlugField(unique=True, max_length=50)
    name = models.CharField(max_length=120)
    prompt_language = models.CharField(max_length=2, choices=PromptLanguage, default=PromptLanguage.ENGLISH)
    step_budget = models.PositiveIntegerField(null=True, blank=True)
    require_delivery = models.BooleanField(default=False)
    audit_mode = models.BooleanField(default=False)
    second_person = models.BooleanField(default=False)
    precision_target = models.PositiveSmallIntegerField(default=80)
    observe_days = models.PositiveSmallIntegerField(default=14)
    # None: for ever.
    keep_chats_days = models.PositiveIntegerField(null=True, blank=True)
    ignored_foreign_nudges = models.TextField(default="", blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """A person's role in a tenant. Not scoped: it is what decides which tenant's scope may be opened."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role, default=Role.VIEWER)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "user"], name="one_membership_per_person"),
            models.CheckConstraint(condition=models.Q(role__in=Role.values), name="membership_role_known"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} {self.role} {self.tenant_id}"


class TokenBucket(models.Model):
    """How much of an allowance is left, by keyed hash: no address or name is stored."""

    key = models.CharField(max_length=64, primary_key=True)
    tokens = models.FloatField()
    updated_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.key


class TenantModel(models.Model):
    """A row that belongs to one tenant. Queries outside of a tenant's scope raise (django-scopes)."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+")

    if not TYPE_CHECKING:  # the type checker knows the plain manager, which has the same methods
        objects = ScopedManager(tenant="tenant")

    class Meta:
        abstract = True


class KeyScope(models.TextChoices):
    """What an API key may do (product.md section 11). An endpoint needs exactly one of them."""

    CHATS_READ = "chats:read", _("Read chats")
    CHATS_WRITE = "chats:write", _("Store chats, import files, freeze corpora, keep searches")
    CHATS_DELETE = "chats:delete", _("Delete chats and imports, take texts out of chats")
    RULES_READ = "rules:read", _("Read rules, releases and replays, evaluate")
    RULES_WRITE = "rules:write", _("Write drafts and tests of rules, and the tool catalogue")
    RULES_PUBLISH = "rules:publish", _("Publish, approve, pause and roll back rules")
    WRAPPERS_READ = "wrappers:read", _("Read wrappers, render chats")
    WRAPPERS_WRITE = "wrappers:write", _("Write wrappers")
    REPLAYS_RUN = "replays:run", _("Start, stop and schedule replays")
    NUDGES_WRITE = "nudges:write", _("Report and judge nudges, make review queues")
    NUDGES_READ = "nudges:read", _("Read the history of nudges, and verdicts")
    AUDIT_READ = "audit:read", _("Read the change log")


# What a new key gets unless somebody chooses otherwise: live use, and nothing that changes what is live.
DEFAULT_SCOPES = (
    KeyScope.CHATS_READ,
    KeyScope.CHATS_WRITE,
    KeyScope.RULES_READ,
    KeyScope.WRAPPERS_READ,
    KeyScope.NUDGES_WRITE,
    KeyScope.NUDGES_READ,
)


class APIKey(models.Model):
    """A key of a tenant. Its secret part is stored as a hash only; `prefix` names it in lists, logs and addresses.

    Not scoped: like a membership, it decides which tenant's scope may be opened. It belongs to the tenant, not to the
    person who made it, and goes on working when that person leaves.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=80)
    prefix = models.CharField(max_length=12, unique=True)
    secret_hash = models.CharField(max_length=64)
    # Scopes by name, separated by blanks.
    scopes = models.CharField(max_length=300)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes: ClassVar = [models.Index(fields=["tenant", "-id"])]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix})"

    def allows(self, scope: str) -> bool:
        return scope in self.scopes.split()

    def state(self, now: datetime) -> str:
        """`revoked`, `expired` or `active`."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "active"


class IdempotentAnswer(TenantModel):
    """What a request with an idempotency key was answered, so that the same request again does nothing twice.

    `status` is None as long as the first request is at work. Kept for a day, and visible to the same API key only.
    """

    api_key = models.ForeignKey(APIKey, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=255)
    request_hash = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True)
    body = models.TextField(default="", blank=True)
    began_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["api_key", "key"], name="idempotency_key_once"),
        ]
        indexes: ClassVar = [models.Index(fields=["began_at"])]

    def __str__(self) -> str:
        return f"{self.api_key_id} {self.status}"
