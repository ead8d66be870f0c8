"""Reading people and tenants."""

from __future__ import annotations

from django.db.models import F, QuerySet
from django.utils import timezone

from eleanor_site.tenants.keys import read_key
from eleanor_site.tenants.models import APIKey, Membership, Tenant, User


def tenants_of(user: User) -> QuerySet[Tenant]:
    return Tenant.objects.filter(memberships__user=user).order_by("name")


def members(tenant: Tenant) -> QuerySet[Membership]:
    return Membership.objects.filter(tenant=tenant).select_related("user").order_by("user__email")


def api_keys(tenant: Tenant) -> QuerySet[APIKey]:
    """Those that still work first, then the newest."""
    rows = APIKey.objects.filter(tenant=tenant).select_related("by")
    return rows.order_by(F("revoked_at").asc(nulls_first=True), "-id")


def working_key(text: str) -> APIKey | None:
    """The key with this text, unless it is revoked or expired. All reasons for None look alike from outside."""
    given = read_key(text)
    if given is None:
        return None
    row = APIKey.objects.select_related("tenant", "by").filter(prefix=given.prefix).first()
    if row is None or not given.fits(row.secret_hash) or row.state(timezone.now()) != "active":
        return None
    return row
