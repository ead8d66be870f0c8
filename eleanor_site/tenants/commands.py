"""What commands that work for a tenant share."""

from __future__ import annotations

from django.core.management.base import CommandError
from django.db.models import QuerySet

from eleanor_site.tenants.models import Tenant


def named_tenant(slug: str | None) -> Tenant:
    """The tenant of `--tenant`. Raises CommandError when there is none of that name."""
    tenant = Tenant.objects.filter(slug=slug or "").first()
    if tenant is None:
        raise CommandError(f"There is no tenant {slug!r}.")
    return tenant


def named_tenants(slug: str | None) -> QuerySet[Tenant]:
    """The tenant of `--tenant` alone, or all by name when it was left out."""
    if slug:
        return Tenant.objects.filter(pk=named_tenant(slug).pk)
    return Tenant.objects.order_by("slug")
