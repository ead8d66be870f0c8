"""What can be done with people and tenants. Each verb is one transaction and one entry in the change log."""

from __future__ import annotations

from typing import Any

from django.contrib.sessions.models import Session
from django.db import transaction
from django.utils.translation import gettext as _

from eleanor_site.audit.services import record
from eleanor_site.problems import Refused
from eleanor_site.tenants.models import Membership, Role, Tenant, User


@transaction.atomic
def add_member(*, tenant: Tenant, email: str, role: Role, by: User) -> Membership:
    user = User.objects.get(email=email)
    membership, created = Membership.objects.get_or_create(tenant=tenant, user=user, defaults={"role": role})
    if not created:
        raise Refused(_("%(email)s is a member already.") % {"email": email})
    record(
        tenant=tenant,
        by=by,
        action="member.add",
        object_type="member",
        object_id=user.pk,
        object_label=user.email,
        after={"role": role},
    )
    return membership


@transaction.atomic
def change_role(*, tenant: Tenant, membership: Membership, role: Role, by: User) -> Membership:
    before = membership.role
    if before == Role.ADMIN and role != Role.ADMIN:
        _keep_an_admin(tenant, membership)
    membership.role = role
    membership.save(update_fields=["role"])
    record(
        tenant=tenant,
        by=by,
        action="member.role",
        object_type="member",
        object_id=membership.user_id,
        object_label=membership.user.email,
        before={"role": before},
        after={"role": role},
    )
    return membership


@transaction.atomic
def remove_member(*, tenant: Tenant, membership: Membership, by: User) -> None:
    _keep_an_admin(tenant, membership)
    record(
        tenant=tenant,
        by=by,
        action="member.remove",
        object_type="member",
        object_id=membership.user_id,
        object_label=membership.user.email,
        before={"role": membership.role},
    )
    membership.delete()


def _keep_an_admin(tenant: Tenant, leaving: Membership) -> None:
    if leaving.role != Role.ADMIN:
        return
    others = Membership.objects.select_for_update().filter(tenant=tenant, role=Role.ADMIN).exclude(pk=leaving.pk)
    if not others.exists():
        raise Refused(_("A tenant needs at least one admin. Make somebody else admin first."))


@transaction.atomic
def change_general(*, tenant: Tenant, values: dict[str, Any], by: User) -> Tenant:
    if not values:
        return tenant
    stored = Tenant.objects.select_for_update().get(pk=tenant.pk)
    before = {name: getattr(stored, name) for name in values}
    for name, value in values.items():
        setattr(stored, name, value)
    stored.save(update_fields=list(values))
    record(
        tenant=stored,
        by=by,
        action="tenant.change",
        object_type="tenant",
        object_id=stored.pk,
        object_label=stored.name,
        before=before,
        after=values,
    )
    return stored


def end_sessions(user: User, *, keep: str | None = None) -> int:
    """Sign the person out everywhere, except in the session with that key. Gives how many sessions ended."""
    ended = 0
    for session in Session.objects.all():
        if session.session_key == keep or str(session.get_decoded().get("_auth_user_id")) != str(user.pk):
            continue
        session.delete()
        ended += 1
    return ended
