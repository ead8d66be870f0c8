"""For machines that watch: is the process there, and can it work."""

from __future__ import annotations

from django.conf import settings
from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from eleanor_site.access import public
from eleanor_site.celery import app


@public
@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok\n", content_type="text/plain")


@public
@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """200 when database and broker answer, else 503; names the broker in use."""
    found = {"database": _database_answers(), "broker": broker_answers()}
    ready = all(found.values())
    return JsonResponse({"ready": ready, **found, "broker_in_use": settings.BROKER.name}, status=200 if ready else 503)


def _database_answers() -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Exception:
        return False
    return True


def broker_answers() -> bool:
    """True when a connection to the broker can be made within a second."""
    try:
        with app.connection_for_write(connect_timeout=1) as sending:
            sending.ensure_connection(max_retries=1, timeout=1)
    except Exception:
        return False
    return True
