"""The HTTP API, mounted at `/api/v1` (product.md section 11): a router a subject, each operation behind a key scope."""

from __future__ import annotations

from typing import Any

from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError
from ninja.openapi.schema import OpenAPISchema

from chats.api import ROUTERS as CHATS
from eleanor_site import api_problems
from eleanor_site.api_bodies import StrictParser
from eleanor_site.audit.api import router as changes
from rules.api import ROUTERS as RULES

DESCRIPTION = """
Fetch the live release, evaluate, and report nudges and chats; read and change what the pages show.

Each request carries a key of the tenant: `Authorization: Bearer ek_…`. What a key may do is said by its scopes; the one
that an operation needs stands beside it as `x-key-scope`. Errors are problem documents (RFC 9457) with a stable `code`
and, for wrong input, the path of each field. Lists go on with `after`, the `next` of the page before. A request with an
`Idempotency-Key` is done once, however often it is sent.
"""


class ConsoleAPI(NinjaAPI):
    """Says in its description what kind of document a problem is."""

    def get_openapi_schema(self, **given: Any) -> OpenAPISchema:
        schema = super().get_openapi_schema(**given)
        for operations in schema["paths"].values():
            for operation in operations.values():
                for status, answer in operation["responses"].items():
                    if int(status) >= 400:
                        answer["content"].pop("application/json", None)
        return schema


api = ConsoleAPI(
    title="Eleanor Console",
    version="1",
    description=DESCRIPTION,
    urls_namespace="api",
    openapi_url="/openapi.json",
    docs_url="/docs",
    parser=StrictParser(),
)
for kind in (Exception, HttpError, AuthenticationError, ValidationError):
    api.add_exception_handler(kind, api_problems.handle)
for router in (*RULES, *CHATS, changes):
    api.add_router("", router)
