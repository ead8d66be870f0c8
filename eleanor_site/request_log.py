"""One line a request in the log, without what people typed into addresses."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django_structlog.middlewares import RequestMiddleware


class RequestLog(RequestMiddleware):
    """A query string may hold a searched text or an expression, so only method and path are written."""

    @staticmethod
    def format_request(request: HttpRequest) -> str:
        return f"{request.method} {request.path}"

    def handle_response(self, request: HttpRequest, response: HttpResponse) -> None:
        """Django would write a line of its own for each answer of 400 and above."""
        super().handle_response(request, response)
        if 400 <= response.status_code < 500:
            response._has_been_logged = True  # type: ignore[attr-defined]
