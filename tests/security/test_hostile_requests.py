"""Whatever stands in an address or a form, the server never fails."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from django.test import Client
from django_scopes import scope

from eleanor_site.checks import marked_views
from eleanor_site.tenants.models import Tenant, User
from tests.conftest import client_of
from tests.factories import make_chat, make_replay, make_rule, publish

VALUES = [
    "", "0", "-1", "²", "٣", "1" * 30, "9" * 5000, "9999-12-31", "0001-01-01",
    "\x00", "%", "' OR 1=1 --", "é" * 3000, "1-final", "\ud800",
]  # fmt: skip
NAMES = [
    "q", "after", "rule", "status", "lang", "model", "format", "import", "from", "to", "point", "replay", "version",
    "view", "m", "a", "b", "chat", "turn", "nudge", "stage", "state", "actor", "object", "action", "code", "text", "at",
    "verify", "set", "draft", "corpus", "group", "queue", "done", "source", "search", "key", "tenant", "next",
]  # fmt: skip
SEGMENTS = ["0", "1" * 30, "..", "%00", "%F0%9F%99%82", "' OR 1=1", "%ED%A0%80", "a" * 500]


@pytest.fixture
def admin_of_furnished(acme: Tenant, people: dict[str, User]) -> Client:
    make_chat(acme)
    publish(acme, make_rule(acme, "ACME-01"))
    make_replay(acme)
    client = client_of(people["admin"])
    client.raise_request_exception = False
    return client


def paths() -> list[str]:
    found = []
    for route, view in marked_views():
        if getattr(view, "access", "") in ("public", "signed_in") or route.startswith("api/"):
            continue
        found.append("/" + route.replace("<str:tenant>", "acme"))
    return found


def known(path: str, chat: int, replay: int) -> str:
    words = {
        "<int:chat>": str(chat),
        "<int:replay>": str(replay),
        "<str:code>": "ACME-01",
        "<int:number>": "1",
        "<int:job>": "1",
    }
    for word, value in words.items():
        path = path.replace(word, value)
    return path


def test_queries(admin_of_furnished: Client, acme: Tenant, subtests: pytest.Subtests) -> None:
    from chats.models import Chat
    from rules.models import Replay

    with scope(tenant=acme):
        chat, replay = Chat.objects.get().pk, Replay.objects.get().pk
    for path in paths():
        url = known(path, chat, replay)
        if "<" in url:
            continue
        with subtests.test(path):
            for value in VALUES:
                encoded = quote(value, errors="surrogatepass")
                query = "&".join(f"{name}={encoded}" for name in NAMES)
                assert admin_of_furnished.get(f"{url}?{query}").status_code < 500, value[:20]


def test_path_segments(admin_of_furnished: Client, subtests: pytest.Subtests) -> None:
    for path in paths():
        if "<" not in path:
            continue
        with subtests.test(path):
            start = path[: path.index("<")]
            end = path[path.index(">") + 1 :]
            for segment in SEGMENTS:
                url = f"{start}{segment}{end}"
                while "<" in url:
                    url = url[: url.index("<")] + "1" + url[url.index(">") + 1 :]
                assert admin_of_furnished.get(url).status_code < 500, segment[:20]
                assert admin_of_furnished.post(url, {"x": "y"}).status_code < 500, segment[:20]


def test_forms(admin_of_furnished: Client, acme: Tenant, subtests: pytest.Subtests) -> None:
    """Every field that any form has, filled with the same odd value."""
    fields = [
        "code", "title_en", "title_fr", "expression", "prompt_en", "prompt_fr", "stage", "max_nudges", "revision",
        "note", "seen_release", "order", "entry", "pattern", "kind", "argument", "argument_pattern", "rules", "import",
        "title", "remove", "up", "down", "to", "add", "move", "number", "at", "fire", "not", "clause", "build", "chat",
        "version", "message", "value", "queue", "point", "scope", "compare", "left", "right", "email", "role", "name",
        "step_budget", "precision_target", "observe_days", "action", "mode",
    ]  # fmt: skip
    for path in paths():
        url = known(path, 1, 1)
        if "<" in url:
            continue
        with subtests.test(path):
            for value in VALUES[:-1]:
                answer = admin_of_furnished.post(url, dict.fromkeys(fields, value))
                assert answer.status_code < 500, value[:20]
