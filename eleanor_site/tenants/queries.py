"""Reading people and tenants."""

from __future__ import annotations

from django.db.models import QuerySet

from eleanor_site.tenants.models import Membership, Tenant, User


def tenants_of(user: User) -> QuerySet[Tenant]:
    return Tenant.objects.filter(memberships__user=user).order_by("name")


def members(tenant: Tenant) -> QuerySet[Membership]:
    return Membership.objects.filter(tenant=tenant).select_related("user").order_by("user__email")
