"""Allowances as token buckets in the database, so that they hold across processes."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from eleanor_site.tenants.models import TokenBucket


@dataclass(frozen=True)
class Allowance:
    """`burst` at once, and `per_minute` more each minute."""

    name: str
    burst: int
    per_minute: float


SIGN_IN_BY_ADDRESS = Allowance("sign-in-address", 30, 20)
SIGN_IN_BY_ACCOUNT = Allowance("sign-in-account", 10, 5)
IMPORTS = Allowance("imports", 60, 30)
REPLAYS = Allowance("replays", 60, 30)
PREVIEWS = Allowance("previews", 600, 600)


def take(allowance: Allowance, who: str, amount: int = 1) -> int:
    """Use that many tokens. 0 when there were as many, else the seconds until there will be."""
    key = _key(allowance, who)
    now = timezone.now()
    with transaction.atomic():
        bucket, _created = TokenBucket.objects.select_for_update().get_or_create(
            key=key, defaults={"tokens": float(allowance.burst), "updated_at": now}
        )
        gained = (now - bucket.updated_at).total_seconds() * allowance.per_minute / 60
        bucket.tokens = min(float(allowance.burst), bucket.tokens + max(0.0, gained))
        bucket.updated_at = now
        if bucket.tokens < amount:
            bucket.save()
            return max(1, round((amount - bucket.tokens) * 60 / allowance.per_minute))
        bucket.tokens -= amount
        bucket.save()
    return 0


def give_back(allowance: Allowance, who: str) -> None:
    """Undo a `take` that turned out to be harmless, such as a sign-in that succeeded."""
    with transaction.atomic():
        bucket = TokenBucket.objects.select_for_update().filter(key=_key(allowance, who)).first()
        if bucket is not None:
            bucket.tokens = min(float(allowance.burst), bucket.tokens + 1)
            bucket.save()


def _key(allowance: Allowance, who: str) -> str:
    return hmac.new(settings.SECRET_KEY.encode(), f"{allowance.name}:{who}".encode(), hashlib.sha256).hexdigest()


def forget_full_buckets() -> None:
    """Buckets that nobody touched for a day are full again, and need no row."""
    TokenBucket.objects.filter(updated_at__lt=timezone.now() - timedelta(days=1)).delete()
