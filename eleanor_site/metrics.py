"""What is measured for `/metrics`: requests of this process, and the rows of work of the whole site."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Iterable

from django.apps import apps
from django.conf import settings
from django.db.models import Count, Min
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django_scopes import scopes_disabled
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from eleanor_site.jobs import Status, Work
from eleanor_site.middleware import Handler

REGISTRY = CollectorRegistry()
REQUESTS = Counter(
    "eleanor_requests", "Answers by route, method and status.", ("route", "method", "status"), registry=REGISTRY
)
SECONDS = Histogram(
    "eleanor_request_seconds",
    "Time to the answer.",
    ("route",),
    buckets=(0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.3, 1, 3, 10),
    registry=REGISTRY,
)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class WorkCollector(Collector):
    """The site's rows of work, read from the database whenever somebody asks. Counts only: no tenant is named."""

    def collect(self) -> Iterable[GaugeMetricFamily]:
        rows = GaugeMetricFamily("eleanor_work", "Rows of work by kind and status.", labels=("kind", "status"))
        oldest = GaugeMetricFamily(
            "eleanor_work_silent_seconds", "Since when the most silent running row showed no life.", labels=("kind",)
        )
        replays = GaugeMetricFamily("eleanor_replays", "Replays by status.", labels=("status",))
        now = timezone.now()
        with scopes_disabled():
            for model in apps.get_models():
                if not issubclass(model, Work):
                    continue
                kind = model._meta.model_name or ""
                unfinished = model._default_manager.exclude(status=Status.DONE)
                found = dict(unfinished.order_by().values_list("status").annotate(n=Count("pk")))
                for status in (Status.QUEUED, Status.RUNNING, Status.FAILED):
                    rows.add_metric((kind, status.value), found.get(status.value, 0))
                running = unfinished.filter(status=Status.RUNNING).aggregate(seen=Min("heartbeat_at"))["seen"]
                oldest.add_metric((kind,), (now - running).total_seconds() if running else 0)
            model = apps.get_model("rules", "Replay")
            for status, n in model._default_manager.order_by().values_list("status").annotate(n=Count("pk")):
                replays.add_metric((status,), n)
        return rows, oldest, replays


REGISTRY.register(WorkCollector())


def measured(get_response: Handler) -> Handler:
    """Middleware: counts each answer under its route, never under its address, which would name tenants and ids."""

    def handle(request: HttpRequest) -> HttpResponseBase:
        started = time.perf_counter()
        response = get_response(request)
        match = request.resolver_match
        route = match.route if match else ""
        method = request.method if request.method in _METHODS else "other"
        REQUESTS.labels(route, method, str(response.status_code)).inc()
        SECONDS.labels(route).observe(time.perf_counter() - started)
        return response

    return handle


def may_read_metrics(request: HttpRequest) -> bool:
    """With the token of METRICS_TOKEN, or from this machine itself and not through a proxy on it."""
    given = request.headers.get("Authorization", "").removeprefix("Bearer ")
    if settings.METRICS_TOKEN and constant_time_compare(given, settings.METRICS_TOKEN):
        return True
    if any(name in request.headers for name in ("X-Forwarded-For", "Forwarded", "X-Real-IP", "X-Forwarded-Proto")):
        return False
    try:
        return ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False
