"""Problem documents of the API (RFC 9457): a stable `code`, a sentence, and for wrong input the path of each field.

Codes are part of the API: clients may branch on them, so they never change their meaning. Sentences may change.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

import structlog
from django.conf import settings
from django.core.exceptions import BadRequest, ObjectDoesNotExist, RequestDataTooBig, SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, UnreadablePostError
from django.http.multipartparser import MultiPartParserError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from ninja.errors import AuthenticationError, HttpError, ValidationError
from pydantic import BaseModel

from eleanor_site.middleware import Handler
from eleanor_site.problems import Refused

log = structlog.get_logger(__name__)

MEDIA_TYPE: Final = "application/problem+json"
PREFIX: Final = "/api/"

CODES: Final[Mapping[str, tuple[int, Any]]] = {
    "malformed_request": (400, gettext_lazy("The request can't be read.")),
    "malformed_json": (400, gettext_lazy("The body isn't JSON.")),
    "no_key": (401, gettext_lazy("There is no valid API key in the Authorization header.")),
    "scope_missing": (403, gettext_lazy("The key doesn't have the scope that this needs.")),
    "not_found": (404, gettext_lazy("There is nothing at this address, or it isn't yours to see.")),
    "method_not_allowed": (405, gettext_lazy("This address doesn't take that method.")),
    "conflict": (409, gettext_lazy("Somebody else changed the same thing meanwhile.")),
    "in_progress": (409, gettext_lazy("A request with this idempotency key is still at work.")),
    "too_large": (413, gettext_lazy("The body is larger than allowed.")),
    "invalid": (422, gettext_lazy("Some fields are wrong.")),
    "refused": (422, gettext_lazy("This can't be done as things stand.")),
    "key_reused": (422, gettext_lazy("This idempotency key belongs to another request.")),
    "too_many_requests": (429, gettext_lazy("Too many requests. Try again later.")),
    "server_error": (500, gettext_lazy("Something failed on our side.")),
    "unavailable": (503, gettext_lazy("The service can't work right now.")),
}
_BY_STATUS: Final = {
    400: "malformed_request",
    401: "no_key",
    403: "scope_missing",
    404: "not_found",
    405: "method_not_allowed",
    409: "conflict",
    413: "too_large",
    422: "invalid",
    429: "too_many_requests",
    503: "unavailable",
}


class FieldProblem(BaseModel):
    """One wrong field: its path from the top of the body (or the name of the parameter), and a stable code."""

    path: str
    code: str
    message: str


class ProblemDocument(BaseModel):
    """What every answer of 400 and above holds."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    request_id: str
    errors: list[FieldProblem] = []


class Problem(Exception):
    """Raised by an endpoint that answers with a problem document."""

    def __init__(
        self,
        code: str,
        detail: str = "",
        *,
        errors: Sequence[FieldProblem] = (),
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(code)
        self.code = code
        self.detail = detail
        self.errors = list(errors)
        self.headers = dict(headers or {})
        self.more = more


def wrong(path: str, code: str, message: str) -> Problem:
    """422 about one field."""
    return Problem("invalid", errors=[FieldProblem(path=path, code=code, message=message)])


def answer(problem: Problem, request: str = "") -> HttpResponse:
    """The document, which names the request: by its id, or the one that is at work."""
    status, title = CODES[problem.code]
    document = ProblemDocument(
        type=f"urn:eleanor:problem:{problem.code}",
        title=str(title),
        status=status,
        code=problem.code,
        detail=problem.detail or str(title),
        request_id=request or request_id(),
        errors=problem.errors,
    )
    content = {**document.model_dump(), **problem.more}
    response = HttpResponse(json.dumps(content, ensure_ascii=False), status=status, content_type=MEDIA_TYPE)
    for name, value in problem.headers.items():
        response[name] = value
    if status == 401:
        response["WWW-Authenticate"] = "Bearer"
    return response


def request_id() -> str:
    return str(structlog.contextvars.get_contextvars().get("request_id", ""))


def problem_of(error: Exception) -> Problem | None:
    """The problem that an exception stands for; None for one that is a mistake of ours."""
    match error:
        case Problem():
            return error
        case Refused():
            return Problem("conflict" if error.status == 409 else "refused", str(error))
        case ValidationError():
            return _invalid(error)
        case Http404() | ObjectDoesNotExist():
            # The latter: somebody removed it between the look at it and the lock on it.
            return Problem("not_found")
        case AuthenticationError():
            return Problem("no_key")
        case RequestDataTooBig():
            megabytes = (settings.DATA_UPLOAD_MAX_MEMORY_SIZE or 0) // (1024 * 1024)
            return Problem("too_large", _("A body has at most %(n)s MB.") % {"n": megabytes})
        case SuspiciousOperation() | BadRequest() | MultiPartParserError() | UnreadablePostError():
            return Problem("malformed_request")
        case HttpError(__cause__=Problem() as problem):
            # The library wraps what a parser raises.
            return problem
        case HttpError():
            return Problem(_BY_STATUS.get(error.status_code, "malformed_request"), error.message)
    return None


def handle(request: HttpRequest, error: Any) -> HttpResponse:
    """The API's handler of every exception."""
    problem = problem_of(error)
    if problem is None:
        reference = uuid.uuid4().hex[:12]
        log.exception("api_error", reference=reference, path=request.path, error=type(error).__name__)
        problem = Problem("server_error", _("Tell your admin this reference: %(reference)s") % {"reference": reference})
    return answer(problem)


def _invalid(error: ValidationError) -> Problem:
    errors = []
    for item in error.errors:
        place, *steps = item["loc"]
        if place == "path":
            # An id that can't be one is as unknown as any other.
            return Problem("not_found")
        if place == "body":
            # The first step is the name of our own parameter.
            steps = steps[1:]
        errors.append(FieldProblem(path=path_of(steps), code=str(item["type"]), message=str(item["msg"])))
    return Problem("invalid", errors=errors)


def path_of(steps: Sequence[Any]) -> str:
    """`("nudges", 3, "code")` as `nudges[3].code`."""
    path = ""
    for step in steps:
        if isinstance(step, int):
            path += f"[{step}]"
        else:
            # A key may hold anything that a client sends; a document of problems stays readable text.
            text = str(step).encode("utf-8", "backslashreplace").decode()
            path += f".{text}" if path else text
    return path


def request_id_header(get_response: Handler) -> Handler:
    """Middleware, inside of the one that makes the id: whoever reports a problem can name the request."""

    def handle_request(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        response.headers.setdefault("X-Request-ID", request_id())
        return response

    return handle_request


def problems_as_documents(get_response: Handler) -> Handler:
    """Middleware: whatever refuses a request to the API on its way there, the client reads a problem document."""

    def handle_request(request: HttpRequest) -> HttpResponseBase:
        if not request.path.startswith(PREFIX):
            return get_response(request)
        response = get_response(request)
        if response.status_code >= 400 and not response.headers.get("Content-Type", "").startswith(MEDIA_TYPE):
            code = _BY_STATUS.get(response.status_code, "server_error")
            document = answer(Problem(code), response.headers.get("X-Request-ID", ""))
            document.status_code = response.status_code
            for name in ("Allow", "Retry-After", "Vary", "X-Request-ID"):
                if name in response.headers:
                    document[name] = response.headers[name]
            document["Cache-Control"] = "no-store"
            # The answer that it stands for has its line in the log.
            document._has_been_logged = getattr(response, "_has_been_logged", False)  # type: ignore[attr-defined]
            return document
        return response

    return handle_request
