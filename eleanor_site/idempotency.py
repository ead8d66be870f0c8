"""Doing a request once however often it is sent: the answer is kept under the client's idempotency key.

What the request does and its kept answer stand or fall in one transaction, so that a crash between the two can't make
the next try do it again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _

from eleanor_site.api_problems import Problem
from eleanor_site.tenants.models import APIKey, IdempotentAnswer

HEADER = "Idempotency-Key"
MOST_CHARACTERS = 255
# A request that began longer ago than any may take has died with its process.
DEAD_AFTER = timedelta(minutes=5)


def once(request: HttpRequest, api_key: APIKey, act: Callable[[], HttpResponse], content: str = "") -> HttpResponse:
    """What `act` answers, or what it answered to the same request before. Runs inside the key's tenant.

    `content` is a digest of the body where that was read as a stream, and isn't kept in memory.

    Raises Problem: `key_reused` when the key came with another request before, `in_progress` while that one is at work.
    A request that is refused frees its key again.
    """
    key = request.headers.get(HEADER)
    if key is None:
        return act()
    if not key or len(key) > MOST_CHARACTERS or not key.isprintable() or not key.isascii():
        detail = _("An idempotency key has 1 to %(n)s printable characters.") % {"n": MOST_CHARACTERS}
        raise Problem("malformed_request", detail)
    asked = _hash(request, content)
    row = _begin(api_key, key, asked)
    if isinstance(row, HttpResponse):
        return row
    try:
        with transaction.atomic():
            answer = act()
            kept = IdempotentAnswer.objects.filter(pk=row.pk, status__isnull=True, began_at=row.began_at)
            if not kept.update(status=answer.status_code, body=answer.content.decode()):
                # Taken for dead and taken over meanwhile: whoever did that does the work.
                raise Problem("in_progress", headers={"Retry-After": "1"})
    except BaseException:
        IdempotentAnswer.objects.filter(pk=row.pk, status__isnull=True, began_at=row.began_at).delete()
        raise
    return answer


def _begin(api_key: APIKey, key: str, asked: str) -> IdempotentAnswer | HttpResponse:
    """A row of our own to work under, or the answer that was given before."""
    now = timezone.now()
    try:
        with transaction.atomic():
            return IdempotentAnswer.objects.create(
                tenant=api_key.tenant, api_key=api_key, key=key, request_hash=asked, began_at=now
            )
    except IntegrityError:
        row = IdempotentAnswer.objects.filter(api_key=api_key, key=key).first()
    if row is None:
        # Refused and freed in this very moment; the client's next try finds the key free.
        raise Problem("in_progress", headers={"Retry-After": "1"})
    if row.request_hash != asked:
        raise Problem("key_reused")
    if row.status is not None:
        answer = HttpResponse(row.body, status=row.status, content_type="application/json; charset=utf-8")
        answer["Idempotency-Replayed"] = "true"
        return answer
    dead = IdempotentAnswer.objects.filter(
        pk=row.pk, status__isnull=True, began_at=row.began_at, began_at__lt=now - DEAD_AFTER
    )
    if not dead.update(began_at=now):
        raise Problem("in_progress", headers={"Retry-After": "1"})
    row.began_at = now
    return row


def _hash(request: HttpRequest, content: str) -> str:
    about = f"{request.method} {request.get_full_path()}\n".encode()
    return hashlib.sha256(about + (content.encode() or request.body)).hexdigest()
