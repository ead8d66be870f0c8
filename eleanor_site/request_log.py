"""One line a request in the log, without what people typed into addresses."""

from __future__ import annotations

from django.http import HttpRequest
from django_structlog.middlewares import RequestMiddleware


class RequestLog(RequestMiddleware):
    """A query string may hold a searched text or an expression, so only method and path are written."""

    @staticmethod
    def format_request(request: HttpRequest) -> str:
        return f"{request.method} {request.path}"
