"""A whole site for benchmarks over HTTP and through the queue: database, Redis, worker and web, all of them real."""

from __future__ import annotations

import contextlib
import http.client
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from eleanor_site.environment import WEB_PROCESS
from tests import postgres_server, redis_server

TENANT = "bench"
SECONDS_TO_START = 60.0


@dataclass(frozen=True)
class Row:
    """A line of the table. `ratio` is to `baseline`; `limit` says what limits the value."""

    name: str
    value: float
    unit: str
    baseline: str = ""
    ratio: float | None = None
    goal: str = ""
    missed: bool = False
    limit: str = ""

    def as_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("name", "value", "unit", "baseline", "ratio")}


def shown(row: Row) -> str:
    ratio = f"{row.ratio:8.1f} x {row.baseline}" if row.ratio is not None else ""
    mark = "MISSED " if row.missed else ""
    return f"{row.name:<52}{row.value:>13,.1f} {row.unit:<10}{mark}{row.goal:<14}{ratio:<34}{row.limit}"


@contextlib.contextmanager
def configured(database: str, var: Path | None) -> Iterator[Path]:
    """Django, configured for this process and those that it starts. `var` is kept; without one a folder is made."""
    folder = var or Path(tempfile.mkdtemp(prefix="eleanor-bench-"))
    with contextlib.ExitStack() as stack:
        if var is None:
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
        environment = {
            "ELEANOR_VAR": str(folder),
            "DJANGO_SETTINGS_MODULE": "eleanor_site.settings",
            "REDIS_URL": stack.enter_context(redis_server.running()),
        }
        os.environ.pop("DATABASE_URL", None)
        if database == "postgres":
            environment["DATABASE_URL"] = stack.enter_context(postgres_server.running())
        os.environ.update(environment)
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        yield folder


def furnished(conversations: int, corpus: Path | None) -> Any:
    """The tenant with the benchmark's rules live and, unless it has chats already, the corpus loaded."""
    from django.core.management import call_command
    from django_scopes import scope

    from chats.models import Chat
    from eleanor_site.tenants.models import Role, Tenant
    from rules.chunks.preparing import find_bits
    from rules.domain.catalogue import default_rule_texts
    from rules.models import Release
    from rules.services.catalogue import install
    from tests.factories import make_person, make_rule, publish
    from tests.golden.corpus import KNOWN_SEED, USER_RULE
    from tests.rules.domain.corpora import corpus_maker

    tenant, _made = Tenant.objects.get_or_create(slug=TENANT, defaults={"name": "Bench"})
    with scope(tenant=tenant):
        has_chats = Chat.objects.exists()
        has_rules = Release.objects.filter(status="live").exists()
    if not has_rules:
        person = make_person("bench", tenant, Role.ADMIN)
        with scope(tenant=tenant):
            codes = [text.code for text in default_rule_texts()]
            rules = install(tenant=tenant, by=person, codes=codes)
            at = codes.index("EAI-GOV-08") + 1
            rules.insert(at, make_rule(tenant, "USER-01", expression=USER_RULE, max_nudges=1))
            publish(tenant, *rules)
    if not has_chats:
        with tempfile.TemporaryDirectory() as folder:
            path = corpus
            if path is None:
                path = Path(folder)
                with open(path / "conversations.jsonl", "w", encoding="utf-8") as lines:
                    import json

                    for chat, _points in corpus_maker().generate(conversations, KNOWN_SEED):
                        lines.write(json.dumps(chat, ensure_ascii=False) + "\n")
            call_command("load_corpus", str(path), tenant=TENANT, stdout=sys.stderr)
    with scope(tenant=tenant):
        find_bits(tenant)
    return tenant


# --- the web


class Browser:
    """A signed-in person at the other end of a connection that is kept open."""

    def __init__(self, port: int, cookies: dict[str, str]) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self.cookies = cookies

    def get(self, path: str) -> tuple[str, float]:
        return self._send("GET", path, None)

    def post(self, path: str, given: dict[str, str]) -> tuple[str, float]:
        return self._send("POST", path, urlencode(given))

    def _send(self, method: str, path: str, body: str | None) -> tuple[str, float]:
        """The page, and the milliseconds until it was there in full."""
        headers = {
            "Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items()),
            "X-CSRFToken": self.cookies.get("csrftoken", ""),
            "Content-Type": "application/x-www-form-urlencoded",
            "HX-Request": "true",
        }
        started = time.perf_counter()
        self._connection.request(method, path, body=body, headers=headers)
        answer = self._connection.getresponse()
        text = answer.read().decode()
        taken = (time.perf_counter() - started) * 1000
        if answer.status not in (200, 286):
            raise RuntimeError(f"{method} {path}: {answer.status} {text[:400]}")
        return text, taken


@contextlib.contextmanager
def web(folder: Path) -> Iterator[tuple[int, int]]:
    """The web server as `manage.py up` runs it: its port and the id of the process that answers."""
    from django.core.management import call_command

    call_command("collectstatic", interactive=False, verbosity=0)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        *(sys.executable, "-m", "gunicorn", "eleanor_site.wsgi", "--bind", f"127.0.0.1:{port}"),
        *("--worker-class", "gthread", "--workers", "1", "--threads", "8", "--no-control-socket"),
        *("--log-level", "warning", "--keep-alive", "60", "--timeout", "120"),
    ]
    environment = {**os.environ, **WEB_PROCESS}
    with open(folder / "web.log", "wb") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        _until_it_answers(port)
        children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
        yield port, int(children[0])
    finally:
        server.terminate()
        server.wait()


def _until_it_answers(port: int) -> None:
    limit = time.monotonic() + SECONDS_TO_START
    while True:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/healthz")
            connection.getresponse().read()
            return
        except OSError as error:
            if time.monotonic() > limit:
                raise RuntimeError("the web server didn't start") from error
            time.sleep(0.1)


def signed_in(port: int) -> Browser:
    """The admin of the tenant, with a session that is made in the database."""
    from importlib import import_module

    from django.conf import settings
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
    from django.middleware.csrf import _get_new_csrf_string

    from eleanor_site.tenants.models import Role, User

    user = User.objects.filter(memberships__tenant__slug=TENANT, memberships__role=Role.ADMIN).order_by("pk").first()
    assert user is not None
    session = import_module(settings.SESSION_ENGINE).SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    token = _get_new_csrf_string()
    return Browser(port, {settings.SESSION_COOKIE_NAME: session.session_key, settings.CSRF_COOKIE_NAME: token})


# --- the worker


@contextlib.contextmanager
def worker(folder: Path, concurrency: int) -> Iterator[None]:
    """A worker for all queues; it has taken its first task when this goes on."""
    command = [
        *(sys.executable, "-m", "celery", "--quiet", "--app", "eleanor_site.celery", "worker"),
        *("--pool", "prefork", "--concurrency", str(concurrency), "--queues", "interactive,imports,replays"),
        *("--loglevel", "ERROR", "--without-gossip", "--without-mingle", "--without-heartbeat"),
    ]
    with open(folder / "worker.log", "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait()
