"""The HTTP API, mounted at `/api/v1` (product.md section 11): one router an app, each operation behind one key scope."""

from __future__ import annotations

from ninja import NinjaAPI

from eleanor_site import api_problems

api = NinjaAPI(title="Eleanor Console", version="1", urls_namespace="api", openapi_url="/openapi.json", docs_url="/docs")

api.add_exception_handler(Exception, api_problems.handle)
