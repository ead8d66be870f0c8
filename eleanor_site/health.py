"""For machines that watch: is the process there, and can it work."""

from __future__ import annotations

from django.conf import settings
from django.db import connection
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from eleanor_site.access import public
from eleanor_site.celery import app
from eleanor_site.metrics import REGISTRY, may_read_metrics


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


@public
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Requests, rows of work and replays, as Prometheus reads them. For others there is no such address."""
    if not may_read_metrics(request):
        raise Http404
    return HttpResponse(generate_latest(REGISTRY), content_type=CONTENT_TYPE_LATEST)


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
