"""What the description allows, and what it forbids, sent to every endpoint: never a failure of ours, and answers as
described (product.md goal P1)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from django_scopes import scope
from hypothesis import HealthCheck, Phase, settings
from schemathesis.specs.openapi import checks as openapi_checks

from chats.models import Chat
from chats.services.corpora import freeze
from chats.services.searches import save_search
from eleanor_site import api_access, limits
from eleanor_site.api import api as ninja_api
from eleanor_site.audit.queries import faults
from eleanor_site.limits import Allowance
from eleanor_site.tenants.models import Tenant
from rules.services.proposals import add_to_open
from rules.services.reviewing import queue_of_firings
from rules.services.tools import add_entry
from tests.api.conftest import key_for
from tests.factories import (
    make_chat,
    make_replay,
    make_rule,
    make_schedule,
    make_wrapper,
    next_run,
    publish,
    some_author,
)

# The suite tries a few; SCHEMA_FUZZ_EXAMPLES=500 is for an evening.
EXAMPLES = int(os.environ.get("SCHEMA_FUZZ_EXAMPLES", "3"))
# The key is put in by us, whatever a case says about it; test_access.py tries requests without one. And a request
# may fit the description and be refused all the same: a cursor that no page gave, a rule that isn't there.
NOT_OURS = [
    openapi_checks.ignored_auth,
    openapi_checks.missing_required_header,
    openapi_checks.positive_data_acceptance,
]
schema: Any = schemathesis.openapi.from_dict(ninja_api.get_openapi_schema())
schema.app = get_wsgi_application()


@pytest.fixture
def furnished(acme: Tenant, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A tenant with something behind most ids that a fuzzer tries first; the text of a key that may do anything."""
    # A request through WSGI ends with its database connection closed, and with it the transaction of the test.
    request_started.disconnect(close_old_connections)
    request_finished.disconnect(close_old_connections)
    monkeypatch.setattr(api_access, "API", Allowance("api", 10**6, 10**6))
    monkeypatch.setattr(limits, "REPLAYS", Allowance("replays", 10**6, 10**6))
    monkeypatch.setattr(limits, "PREVIEWS", Allowance("previews", 10**6, 10**6))
    monkeypatch.setattr(limits, "IMPORTS", Allowance("imports", 10**6, 10**6))
    make_chat(acme)
    rule = make_rule(acme, "0")
    publish(acme, rule)
    replay = make_replay(acme)
    next_run(acme, make_schedule(acme, replay).pk)
    make_wrapper(acme, "0")
    by = some_author(acme)
    with scope(tenant=acme):
        add_to_open(tenant=acme, by=by, rules=[rule])
        add_entry(tenant=acme, values={"pattern": "x", "kind": "read"}, by=by)
        freeze(tenant=acme, by=by, name="0", chats=Chat.objects.all())
        save_search(tenant=acme, by=by, name="0", query="")
        queue_of_firings(tenant=acme, by=by, name="0", replay=replay, code="0", limit=5)
    yield key_for(acme)
    request_started.connect(close_old_connections)
    request_finished.connect(close_old_connections)


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_no_input_makes_it_fail(case: Any, furnished: str, acme: Tenant) -> None:
    case.headers = {**(case.headers or {}), "Authorization": f"Bearer {furnished}"}
    case.call_and_validate(excluded_checks=NOT_OURS)
    with scope(tenant=acme):
        assert faults() == []
