"""The example client of the README does what the README says, word for word as it stands there."""

from __future__ import annotations

import io
import re
import urllib.error
import urllib.request
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django_scopes import scope

from chats.models import Chat
from eleanor_site.tenants.models import Tenant
from rules.domain.catalogue import default_rule_texts
from rules.models import RecordedNudge
from rules.services.catalogue import install
from rules.services.publishing import publish_drafts
from tests.api.conftest import key_for
from tests.factories import some_author

README = Path(__file__).resolve().parents[2] / "README.md"


@pytest.fixture
def through_django(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Requests of urllib go to the site in this process; the statuses that it answered with."""
    statuses: list[int] = []

    def urlopen(request: urllib.request.Request, timeout: float) -> Any:
        answer = Client().generic(
            request.get_method(),
            request.selector,
            request.data or b"",
            content_type="application/json",
            headers=dict(request.header_items()),
        )
        statuses.append(answer.status_code)
        headers = Message()
        for name, value in answer.items():
            headers[name] = value
        body = io.BytesIO(answer.content)
        if answer.status_code >= 300:
            raise urllib.error.HTTPError(request.full_url, answer.status_code, "", headers, body)
        body.headers = headers  # type: ignore[attr-defined]
        return body

    monkeypatch.setattr(urllib.request, "urlopen", urlopen)
    return statuses


def test_the_agent_loop(acme: Tenant, through_django: list[int], capsys: pytest.CaptureFixture[str]) -> None:
    with scope(tenant=acme):
        codes = [text.code for text in default_rule_texts()]
        by = some_author(acme)
        rules = install(tenant=acme, by=by, codes=codes)
        publish_drafts(tenant=acme, rules=rules, by=by, note="all", seen_release=0)
    source = re.search(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    assert source is not None
    names: dict[str, Any] = {"__name__": "readme"}
    exec(compile(source[1], "README.md", "exec"), names)
    chat = names["run_agent"](names["Eleanor"]("http://testserver", key_for(acme)), "Do the tests pass?")
    assert capsys.readouterr().out.splitlines() == [
        "release 1: assistant: I will run the tests now.",
        "nudged by EAI-GOV-07",
        "release 1: tool: 12 passed",
        "release 1: assistant: All 12 tests pass.",
    ]
    assert through_django.count(304) == 2
    assert max(through_django) == 304
    with scope(tenant=acme):
        stored, nudge = Chat.objects.get(), RecordedNudge.objects.get()
        assert stored.external_id == chat["external_id"]
        assert (nudge.source, nudge.code, nudge.chat_id, nudge.outcome) == ("live", "EAI-GOV-07", stored.pk, "acted")
