"""What can be done with people and tenants. Each verb is one transaction and one entry in the change log."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _
from django_scopes import scopes_disabled

from eleanor_site.audit.services import record
from eleanor_site.problems import Refused
from eleanor_site.tenants.keys import KeyText, new_key
from eleanor_site.tenants.models import APIKey, IdempotentAnswer, KeyScope, Membership, Role, Tenant, User

MOST_KEYS = 50
LAST_USE_STEP = timedelta(minutes=1)
ANSWERS_KEPT_FOR = timedelta(days=1)


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


@transaction.atomic
def make_api_key(
    *, tenant: Tenant, by: User, name: str, scopes: Sequence[str], expires_at: datetime | None = None
) -> tuple[APIKey, KeyText]:
    """A new key. Its text is given back here and nowhere else: only a hash of it is stored."""
    Tenant.objects.select_for_update().get(pk=tenant.pk)
    chosen = [scope for scope in KeyScope.values if scope in scopes]
    if not chosen:
        raise Refused(_("A key needs at least one scope."))
    if APIKey.objects.filter(tenant=tenant, revoked_at__isnull=True).count() >= MOST_KEYS:
        raise Refused(_("A tenant has at most %(n)s keys. Revoke one that nobody uses.") % {"n": MOST_KEYS})
    text = new_key()
    key = APIKey.objects.create(
        tenant=tenant,
        by=by,
        name=name,
        prefix=text.prefix,
        secret_hash=text.secret_hash,
        scopes=" ".join(chosen),
        expires_at=expires_at,
    )
    record(
        tenant=tenant,
        by=by,
        action="key.make",
        object_type="key",
        object_id=key.pk,
        object_label=str(key),
        after={"scopes": chosen, "expires_at": expires_at},
    )
    return key, text


@transaction.atomic
def revoke_api_key(*, tenant: Tenant, key: APIKey, by: User) -> None:
    """From the next request on the key is refused. Twice is once."""
    key = APIKey.objects.select_for_update().get(pk=key.pk)
    if key.revoked_at is not None:
        return
    key.revoked_at = timezone.now()
    key.save(update_fields=["revoked_at"])
    record(
        tenant=tenant,
        by=by,
        action="key.revoke",
        object_type="key",
        object_id=key.pk,
        object_label=str(key),
        before={"scopes": key.scopes.split(), "last_used_at": key.last_used_at},
    )


def note_use(key: APIKey) -> None:
    """Remember when the key was used, to the minute: not every request is worth a write. No change, so no entry."""
    now = timezone.now()
    if key.last_used_at is None or now - key.last_used_at >= LAST_USE_STEP:
        unseen = Q(last_used_at__isnull=True) | Q(last_used_at__lt=now)
        APIKey.objects.filter(unseen, pk=key.pk).update(last_used_at=now)


def forget_old_answers() -> int:
    """Answers to idempotency keys that nobody will ask for again. Runs without a tenant."""
    old = timezone.now() - ANSWERS_KEPT_FOR
    with scopes_disabled():
        return IdempotentAnswer.objects.filter(began_at__lt=old).delete()[0]
