"""Who may call an endpoint: each names one key scope, runs inside the key's tenant, and takes from its allowance."""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Final, TypeVar

import structlog
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django_scopes import scope as tenant_scope
from ninja import Router
from ninja.security import HttpBearer
from ninja.signature.utils import get_typed_signature
from pydantic import BaseModel

from eleanor_site import limits
from eleanor_site.api_problems import MEDIA_TYPE, Problem, ProblemDocument, wrong
from eleanor_site.idempotency import HEADER, MOST_CHARACTERS, once
from eleanor_site.limits import Allowance
from eleanor_site.tenants.models import APIKey, KeyScope, Tenant, User
from eleanor_site.tenants.queries import working_key
from eleanor_site.tenants.services import note_use

API: Final = Allowance("api", 6_000, 6_000)
Endpoint = Callable[..., Any]
Row = TypeVar("Row", bound=Model)


class ApiRequest(HttpRequest):
    """A request with a key: `tenant` is the key's, and `person` who made the key answers for what it does."""

    auth: APIKey
    tenant: Tenant
    person: User


class KeyAuth(HttpBearer):
    """The `Authorization: Bearer ek_…` header, for endpoints that need this scope."""

    openapi_bearerFormat = "ek_PREFIX_SECRET"

    def __init__(self, scope: KeyScope) -> None:
        self.scope = scope
        super().__init__()

    def authenticate(self, request: HttpRequest, token: str) -> APIKey:
        key = working_key(token)
        if key is None:
            raise Problem("no_key")
        if not key.allows(self.scope):
            raise Problem("scope_missing", scope=self.scope.value)
        wait = _leases.take(key.tenant)
        if wait:
            raise Problem("too_many_requests", headers={"Retry-After": str(wait)})
        note_use(key)
        structlog.contextvars.bind_contextvars(tenant=key.tenant.slug, api_key=key.prefix)
        return key


class Leases:
    """Tokens taken from the database some at a time, so that not every request has to wait for a write.

    A process that ends loses at most SIZE tokens of a tenant; what isn't used within SECONDS is lost as well.
    """

    SIZE: Final = 25
    SECONDS: Final = 10.0

    def __init__(self) -> None:
        self._left: dict[int, tuple[int, float]] = {}
        self._lock = threading.Lock()

    def take(self, tenant: Tenant) -> int:
        """Use one token. 0 when there was one, else the seconds until there will be."""
        now = time.monotonic()
        with self._lock:
            left, until = self._left.get(tenant.pk, (0, 0.0))
            if left > 0 and now < until:
                self._left[tenant.pk] = left - 1, until
                return 0
        wait = limits.take(API, str(tenant.pk), self.SIZE)
        if wait:
            # Close to the end of the allowance tokens are taken one by one.
            return limits.take(API, str(tenant.pk))
        with self._lock:
            self._left[tenant.pk] = self.SIZE - 1, now + self.SECONDS
        return 0

    def forget(self) -> None:
        with self._lock:
            self._left.clear()


_leases = Leases()


class KeyRouter(Router):
    """A router whose operations each name the scope that a key needs."""

    def operation(
        self,
        method: str,
        path: str,
        scope: KeyScope,
        *,
        answers: Any,
        status: int = 200,
        idempotent: bool = False,
        files: Sequence[str] = (),
        extra: dict[str, Any] | None = None,
    ) -> Callable[[Endpoint], Endpoint]:
        """Register an endpoint. An idempotent one has to give a finished `HttpResponse` (`json_answer`).

        `files` are the media types of one whose answer is a file, with `answers` None.
        """
        problems = (400, 401, 403, 404, 409, 413, 422, 429, 500)
        described: dict[str, Any] = {"x-key-scope": scope.value, **(extra or {})}
        described.setdefault("responses", {}).update(dict.fromkeys(problems, _PROBLEM_CONTENT))
        if idempotent:
            described["parameters"] = [*described.get("parameters", []), IDEMPOTENCY_PARAMETER]
        if files:
            described["responses"][status] = {"description": "A file", "content": dict.fromkeys(files, _FILE)}

        def register(view: Endpoint) -> Endpoint:
            @wraps(view)
            def inside(request: ApiRequest, *args: Any, **kwargs: Any) -> Any:
                request.tenant, request.person = request.auth.tenant, request.auth.by
                with tenant_scope(tenant=request.tenant):
                    if idempotent:
                        return once(request, request.auth, lambda: view(request, *args, **kwargs))
                    return view(request, *args, **kwargs)

            # Annotations are texts of the endpoint's own module.
            inside.__signature__ = get_typed_signature(view)  # type: ignore[attr-defined]
            self.add_api_operation(
                path,
                [method],
                inside,
                auth=KeyAuth(scope),
                response={status: answers, problems: ProblemDocument},
                openapi_extra=described,
                summary=view.__name__.replace("_", " ").capitalize(),
                description=f"{inspect.getdoc(view) or ''}\n\nNeeds the scope `{scope.value}`.".strip(),
            )
            return view

        return register


_PROBLEM_CONTENT: Final = {
    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}},
}
_FILE: Final = {"schema": {"type": "string"}}
IDEMPOTENCY_PARAMETER: Final = {
    "in": "header",
    "name": HEADER,
    "required": False,
    "description": "A name of your own for this request. Sent again under it within a day, it does nothing twice.",
    "schema": {"type": "string", "minLength": 1, "maxLength": MOST_CHARACTERS, "pattern": "^[ -~]+$"},
}


def json_answer(value: BaseModel, status: int = 200) -> HttpResponse:
    return HttpResponse(value.model_dump_json(), status=status, content_type="application/json; charset=utf-8")


def rows_after(
    rows: QuerySet[Row], after: str | None, limit: int, field: str = "pk", *, rising: bool = False
) -> tuple[list[Row], str | None]:
    """One page of rows that are sorted by falling or rising `field`, and the cursor of the next one. Raises Problem."""
    if after is not None:
        if not (after.isascii() and after.isdecimal() and len(after) < 19):
            raise wrong("after", "cursor", "take the value of `next` from the page before")
        rows = rows.filter(**{f"{field}__{'gt' if rising else 'lt'}": int(after)})
    found = list(rows[: limit + 1])
    more = len(found) > limit
    return found[:limit], str(getattr(found[limit - 1], field)) if more else None


def take_from(allowance: Allowance, tenant: Tenant) -> None:
    """Use one token of the tenant's. Raises Problem, which says when to come back, when there is none."""
    wait = limits.take(allowance, tenant.slug)
    if wait:
        raise Problem("too_many_requests", headers={"Retry-After": str(wait)})
