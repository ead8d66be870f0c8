"""Keys and a small client for the API's tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from eleanor_site import api_access
from eleanor_site.tenants.models import KeyScope, Tenant
from eleanor_site.tenants.services import make_api_key
from tests.factories import some_author

ALL = tuple(KeyScope.values)


class ApiClient:
    """Sends JSON with a key; answers are Django's, so that `.json()` and headers are at hand."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.client = Client()

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        return self.client.generic(
            method,
            f"/api/v1{path}",
            content,
            content_type="application/json",
            headers={"Authorization": f"Bearer {self.key}", **{k.replace("_", "-"): v for k, v in headers.items()}},
        )

    def get(self, path: str, **headers: str) -> Any:
        return self.send("GET", path, **headers)

    def post(self, path: str, body: Any, **headers: str) -> Any:
        return self.send("POST", path, body, **headers)


def key_for(tenant: Tenant, *scopes: str) -> str:
    """The text of a new key with these scopes; all of them when none are named."""
    _key, text = make_api_key(tenant=tenant, by=some_author(tenant), name="test", scopes=scopes or ALL)
    return text.text


@pytest.fixture(autouse=True)
def fresh_leases() -> None:
    """Tokens that an earlier test took ahead belong to a database that is gone."""
    api_access._leases.forget()


@pytest.fixture
def api(acme: Tenant) -> ApiClient:
    """A key of acme with every scope."""
    return ApiClient(key_for(acme))


@pytest.fixture
def api_with(acme: Tenant) -> Callable[..., ApiClient]:
    return lambda *scopes: ApiClient(key_for(acme, *scopes))
