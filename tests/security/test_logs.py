"""What the log holds: ids and paths, never what people wrote."""

from __future__ import annotations

import logging

import pytest
from django.test import Client

from eleanor_site.tenants.models import Tenant
from tests.api.conftest import ApiClient, key_for
from tests.factories import make_chat


def test_searched_and_sent_texts_are_not_logged(author: Client, acme: Tenant, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        make_chat(acme, {"role": "user", "content": "my-secret-message"}, {"role": "assistant", "content": "ok"})
        author.get("/t/acme/chats/?q=my-secret-search")
        author.get("/t/acme/rules/check/completions?text=my-secret-expression&at=3")
        author.post("/t/acme/rules/check/expression", {"expression": "my-secret-draft"})
        author.get("/t/acme/no-such-page?q=my-secret-address")
    assert "my-secret" not in caplog.text
    assert "/t/acme/chats/" in caplog.text


def test_line_breaks_in_input_forge_no_line(viewer: Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        viewer.get("/t/acme/%0aforged line")
    lines = [line for record in caplog.records for line in record.getMessage().splitlines()]
    assert not any(line.startswith("forged line") for line in lines)


def test_one_line_tells_of_a_refused_request(acme: Tenant, caplog: pytest.LogCaptureFixture) -> None:
    client = ApiClient(key_for(acme))
    for path, body, status in (("/evaluate", {}, 422), ("/rules/none/archive", None, 404), ("/release", {}, 405)):
        caplog.clear()
        with caplog.at_level(logging.INFO):
            assert client.send("POST", path, body).status_code == status
        code = f"'code': {status}"  # the digits alone may stand in an id or a time as well
        told = [record for record in caplog.records if code in record.getMessage() or record.levelname != "INFO"]
        assert len(told) == 1, [record.getMessage() for record in told]
