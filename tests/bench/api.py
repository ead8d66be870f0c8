"""`python -m tests.bench api [--json]`: `evaluate` and live use over HTTP, against one gunicorn process on SQLite.

Batches are measured as contexts a second that one client gets; the baseline is the engine alone, in this process, on
the same contexts. Single contexts are sent at a fixed rate from a clock, so that a slow answer doesn't slow the next
one down, and timed from the moment when they were due.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import queue
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BATCH = 500
PREPARE = """
from django_scopes import scope
from eleanor_site.tenants.models import KeyScope, Tenant, User
from eleanor_site.tenants.services import make_api_key
from rules.domain.catalogue import default_rule_texts
from rules.services.catalogue import install
from rules.services.drafts import create_rule
from rules.services.publishing import publish_drafts
tenant = Tenant.objects.create(slug="bench", name="Bench")
by = User.objects.create_user("bench@example.org")
with scope(tenant=tenant):
    rules = install(tenant=tenant, by=by, codes=[text.code for text in default_rule_texts()])
    user = "ctx.final_text.matches('(?i)(unable to|cannot|je ne peux pas|impossible de) ') && ctx.tool_calls_total < 3"
    content = {"expression": user, "prompt_en": "Try."}
    rules.append(create_rule(tenant=tenant, by=by, code="USER-01", content=content))
    publish_drafts(tenant=tenant, rules=rules, by=by, note="bench", seen_release=0)
    print("KEY", make_api_key(tenant=tenant, by=by, name="bench", scopes=KeyScope.values)[1].text)
"""
TEXT = (
    "the order was cancelled and I will check the remaining tasks next would you like me to continue with a test file "
    "please confirm il reste à faire la documentation je vais vérifier la base done all tests pass we cannot reach it"
)


@dataclass(frozen=True)
class Row:
    name: str
    value: float
    unit: str
    baseline: float | None = None

    @property
    def ratio(self) -> float | None:
        return self.value / self.baseline if self.baseline else None


def contexts(count: int) -> list[dict[str, Any]]:
    """Seeded contexts with answers of about 600 characters, all of them different."""
    chance = random.Random(7)
    words_known = TEXT.split()

    def text(words: int) -> str:
        made = [chance.choice(words_known) + ("." if chance.random() < 0.1 else "") for _ in range(words)]
        return " ".join(made)

    return [
        {
            "final_text": text(110),
            "user_text": text(20),
            "finish_reason": "stop",
            "tools_available": True,
            "tool_calls_total": chance.choice((0, 0, 2)),
            "tool_calls_since_user": 1,
            "mutated": chance.random() < 0.2,
        }
        for _ in range(count)
    ]


@contextmanager
def server() -> Iterator[tuple[int, str]]:
    """The port of a web process as `up` starts it, and a key."""
    folder = Path(tempfile.mkdtemp(prefix="eleanor-bench-"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    environment = {k: v for k, v in os.environ.items() if k not in ("DATABASE_URL", "DJANGO_SETTINGS_MODULE")}
    environment |= {
        "ELEANOR_VAR": str(folder),
        "ELEANOR_NO_BOOTSTRAP": "1",
        "LOG_LEVEL": "ERROR",
        "DATABASE_CONN_MAX_AGE": "600",
    }
    manage = [sys.executable, str(ROOT / "manage.py")]
    web: subprocess.Popen[bytes] | None = None
    try:
        for command in (["migrate", "-v", "0"], ["collectstatic", "--noinput", "-v", "0"]):
            subprocess.run([*manage, *command], env=environment, check=True, stdout=subprocess.DEVNULL)
        said = subprocess.run(
            [*manage, "shell", "-v", "0", "-c", PREPARE], env=environment, check=True, capture_output=True, text=True
        )
        key = next(line.split()[1] for line in said.stdout.splitlines() if line.startswith("KEY "))
        web = subprocess.Popen(
            [
                *(sys.executable, "-m", "gunicorn", "eleanor_site.wsgi", "--bind", f"127.0.0.1:{port}"),
                *("--worker-class", "gthread", "--workers", "1", "--threads", "8", "--log-level", "error"),
            ],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _wait(port)
        yield port, key
    finally:
        if web is not None:
            web.send_signal(signal.SIGTERM)
            web.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _wait(port: int) -> None:
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("the web process didn't start")


class Caller:
    """One kept-alive connection."""

    def __init__(self, port: int, key: str) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self.headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def post(self, path: str, body: bytes) -> Any:
        self.connection.request("POST", f"/api/v1{path}", body, self.headers)
        answer = self.connection.getresponse()
        content = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{path}: {answer.status} {content[:300]!r}")
        return content


def engine_rate(given: list[dict[str, Any]]) -> float:
    """Contexts a second of the engine alone."""
    from rules.domain.catalogue import default_rule_texts
    from rules.domain.context import TurnContext
    from rules.domain.deciding import decide
    from rules.domain.rule_set import RuleSpec, compile_rules

    rules = compile_rules(
        [
            RuleSpec(code=t.code, stage=t.stage, max_nudges=t.max_nudges, expression=t.expression, prompt=t.prompt_en)
            for t in default_rule_texts()
        ]
    )
    made = [TurnContext(**context) for context in given]
    started = time.perf_counter()
    for context in made:
        decide(rules, context, "final")
    return len(made) / (time.perf_counter() - started)


def batch_rate(caller: Caller, given: list[dict[str, Any]]) -> float:
    bodies = [
        json.dumps({"batch": [{"context": context} for context in given[at : at + BATCH]]}).encode()
        for at in range(0, len(given), BATCH)
    ]
    caller.post("/evaluate", bodies[0])
    started = time.perf_counter()
    for body in bodies:
        caller.post("/evaluate", body)
    return len(given) / (time.perf_counter() - started)


def single_times(port: int, key: str, given: list[dict[str, Any]], rate: int) -> list[float]:
    """Milliseconds from the moment when each request was due to its answer."""
    due: queue.Queue[tuple[float, bytes] | None] = queue.Queue()
    times: list[float] = []
    troubles: list[BaseException] = []

    def work() -> None:
        caller = Caller(port, key)
        while (item := due.get()) is not None:
            at, body = item
            try:
                caller.post("/evaluate", body)
            except BaseException as error:
                troubles.append(error)
                return
            times.append((time.perf_counter() - at) * 1000)

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    started = time.perf_counter() + 0.1
    for n, context in enumerate(given):
        at = started + n / rate
        time.sleep(max(0.0, at - time.perf_counter()))
        due.put((at, json.dumps({"context": context}).encode()))
    for _worker in workers:
        due.put(None)
    for worker in workers:
        worker.join()
    if troubles:
        raise troubles[0]
    return times


def measure(seconds: int, rate: int) -> list[Row]:
    given = contexts(4 * BATCH)
    alone = engine_rate(given)
    with server() as (port, key):
        caller = Caller(port, key)
        batches = statistics.median(batch_rate(caller, given) for _ in range(5))
        single_times(port, key, given[: 2 * rate], rate)
        times = sorted(single_times(port, key, (given * 10)[: seconds * rate], rate))
        nudges = json.dumps({"nudges": [{"code": "EAI-GOV-07", "turn": n} for n in range(100)]}).encode()
        caller = Caller(port, key)  # the other one was closed while it had nothing to say
        started = time.perf_counter()
        for _ in range(10):
            caller.post("/nudges", nudges)
        taken = 1000 / (time.perf_counter() - started)
    p99 = times[min(len(times) - 1, round(len(times) * 0.99))]
    return [
        Row("the engine alone, 11 rules", alone, "contexts/s"),
        Row(f"evaluate, batches of {BATCH}, 12 rules", batches, "contexts/s", alone),
        Row(f"evaluate, one context, {rate} a second, median", statistics.median(times), "ms"),
        Row(f"evaluate, one context, {rate} a second, p99", p99, "ms"),
        Row("nudges taken, batches of 100", taken, "nudges/s"),
    ]


def run(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench api")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--rate", type=int, default=50)
    arguments = parser.parse_args(argv)
    for row in measure(arguments.seconds, arguments.rate):
        if arguments.json:
            content = {"name": row.name, "value": row.value, "unit": row.unit}
            print(json.dumps({**content, "baseline": row.baseline, "ratio": row.ratio}))
        else:
            ratio = f"{row.ratio:6.2f} x the engine alone" if row.ratio is not None else ""
            print(f"{row.name:52} {row.value:10.1f} {row.unit:11} {ratio}")
    return 0
