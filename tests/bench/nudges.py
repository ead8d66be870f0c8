"""`python -m tests.bench nudges [--json] [--nudges N]`: pages of the nudge history with a million nudges in the tenant.

Makes a database of its own: a SQLite file in a temporary folder, or a schema in DATABASE_URL's server when run under
`python -m tests.postgres_server`. Each page is asked for through the whole stack, signed in; p95 in milliseconds over
the rounds, beside the target of 300, and the processor's time of the middle round, which tells what a page costs on a
machine that does other things as well. The depth rows divide a deep page by one near the start, by that time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from typing import Any

ROUNDS = 21
TARGET_MS = 300.0
MARK = "bench"

PAGES = {
    "group by model": "group=model",
    "group by verdict": "group=verdict",
    "one rule": "rule=EAI-GOV-07",
    "a rare model": "model=model-9",
    "French": "lang=fr",
    "observed": "source=observe",
    "ignored": "outcome=ignored",
    "a week": "from=2026-02-02&to=2026-02-08",
    "rule, model and language": "rule=EAI-GOV-07&model=model-3&lang=fr",
    "judged wrong": "verdict=wrong",
    "not judged": "verdict=none",
}
SQLITE_ROWS = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {count})"
COLUMNS = (
    "tenant_id, code, source, chat_id, chat_version_id, message, point, turn, stage, version_id, model, language, "
    "outcome, at, external_key, chat_key, created_at"
)


def run(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench nudges")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--nudges", type=int, default=1_000_000)
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="eleanor-bench-") as folder:
        os.environ["ELEANOR_VAR"] = folder
        os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
        import django

        django.setup()
        rows = _measure(options.nudges)
    for row in rows:
        if options.json:
            print(json.dumps(row))
        else:
            ratio = "" if row["ratio"] is None else f"{row['ratio']:.2f}"
            busy = f"{row['cpu']:8.1f} ms busy" if "cpu" in row else ""
            print(f"{row['name']:<44} {row['value']:>10.1f} {row['unit']:<8} {ratio:>6} {busy}")
    return 0 if all(row["ratio"] is None or row["ratio"] <= 1 for row in rows if row["unit"] == "ms") else 1


def _measure(count: int) -> list[dict[str, Any]]:
    from django.conf import settings
    from django.core.management import call_command
    from django.db import connection
    from django.test import Client

    settings.ALLOWED_HOSTS = ["*"]
    if connection.vendor == "postgresql":
        _own_database()
    call_command("migrate", verbosity=0)
    slug, person = _tenant()
    started = time.perf_counter()
    _fill(slug, count)
    rows = [_row(f"{count:,} nudges written, counts kept", (time.perf_counter() - started) * 1e6 / count, "µs each")]
    client = Client()
    client.force_login(person)
    keys = _keys(slug)
    base = f"/t/{slug}/nudges/"
    rows.append(_page(client, f"first page, with chart and groups ({connection.vendor})", base))
    for name, query in PAGES.items():
        rows.append(_page(client, name, f"{base}?{query}"))
    near = _page(client, "more rows, near the start", f"{base}?after={keys[0.001]}", part=True)
    rows.append(near)
    for depth in (0.5, 0.99):
        deep = _page(client, f"more rows, {depth:.0%} deep", f"{base}?after={keys[depth]}", part=True)
        rows += [deep, _row(f"  beside near the start, {depth:.0%} deep", deep["cpu"] / near["cpu"], "times")]
    rows.append(_page(client, "overview", f"/t/{slug}/"))
    rows.append(_page(client, "by rule and model", f"{base}rules"))
    return rows


def _row(name: str, value: float, unit: str, baseline: float | None = None) -> dict[str, Any]:
    ratio = value / baseline if baseline else None
    return {"name": name, "value": value, "unit": unit, "baseline": baseline, "ratio": ratio}


def _own_database() -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(f"DROP SCHEMA IF EXISTS {MARK} CASCADE")
        cursor.execute(f"CREATE SCHEMA {MARK}")
    connection.close()
    connection.settings_dict.setdefault("OPTIONS", {})["options"] = f"-c search_path={MARK}"


def _tenant() -> tuple[str, Any]:
    from eleanor_site.tenants.models import Role
    from tests.factories import make_person, make_tenant

    tenant = make_tenant("bench")
    return tenant.slug, make_person("reader", tenant, Role.ADMIN)


def _fill(slug: str, count: int) -> None:
    """A thousand chats over ninety days, and the nudges in one statement; a few hundred of them judged."""
    from django.db import connection, transaction
    from django.utils import timezone
    from django_scopes import scope

    from chats.models import Chat, ChatVersion
    from eleanor_site.tenants.models import Tenant, User
    from rules.models import Verdict

    tenant = Tenant.objects.get(slug=slug)
    with scope(tenant=tenant), transaction.atomic():
        chats = Chat.objects.bulk_create(
            Chat(tenant=tenant, format="x", identity=str(n), title=f"Chat {n}", version_count=1, turn_count=5)
            for n in range(1000)
        )
        first_chat = chats[0].pk
        versions = ChatVersion.objects.bulk_create(
            ChatVersion(tenant=tenant, chat=chat, number=1, content="{}", content_hash=str(chat.pk)) for chat in chats
        )
        first_version = versions[0].pk
        with connection.cursor() as cursor:
            cursor.execute(_insert(connection.vendor, count, tenant.pk, first_chat, first_version), [timezone.now()])
        person = User.objects.get()
        Verdict.objects.bulk_create(
            Verdict(
                tenant=tenant,
                by=person,
                chat_id=first_chat + n,
                chat_version_id=first_version + n,
                message=2 * n,
                stage="final",
                code=f"EAI-GOV-{n % 11 + 1:02}",
                value=("right", "wrong", "unsure")[n % 3],
            )
            for n in range(300)
        )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def _insert(vendor: str, count: int, tenant: int, chat: int, version: int) -> str:
    """Codes, models and outcomes are spread unevenly and don't follow each other."""
    if vendor == "postgresql":
        rows, source = "", f"generate_series(0, {count - 1}) AS n(i)"
        at = f"timestamptz '2026-01-01 00:00Z' + i * interval '7776000 seconds' / {count}"
        code = "'EAI-GOV-' || lpad((i % 11 + 1)::text, 2, '0')"
    else:
        rows, source = SQLITE_ROWS.format(count=count), "n"
        at = f"strftime('%%Y-%%m-%%d %%H:%%M:%%S', '2026-01-01', '+' || (i * 7776000 / {count}) || ' seconds')"
        code = "printf('EAI-GOV-%%02d', i %% 11 + 1)"
    modulo = "%%"
    at, code = at.replace("%%", modulo) if vendor == "sqlite" else at, code.replace(" % ", f" {modulo} ")
    values = (
        f"{tenant}, {code}, CASE WHEN i {modulo} 997 = 0 THEN 'observe' WHEN i {modulo} 5 = 0 THEN 'live' "
        f"ELSE 'import' END, {chat} + i {modulo} 1000, {version} + i {modulo} 1000, 2 * i + 1, 2 * i, i {modulo} 5, "
        f"'final', NULL, 'model-' || (CASE WHEN i {modulo} 4999 = 0 THEN 9 ELSE (i / 3) {modulo} 6 END), "
        f"CASE WHEN (i / 7) {modulo} 3 = 0 THEN 'fr' ELSE 'en' END, "
        f"CASE (i / 11) {modulo} 4 WHEN 0 THEN 'acted' WHEN 1 THEN 'finished' WHEN 2 THEN 'ignored' ELSE '' END, "
        f"{at}, '', NULL, %s"
    )
    insert = f"INSERT INTO rules_recordednudge ({COLUMNS}) SELECT {values} FROM {source}"
    return f"{rows} {insert}" if rows else insert


def _keys(slug: str) -> dict[float, str]:
    """Keys at some depths of the list, read off the index."""
    from django_scopes import scope

    from eleanor_site.tenants.models import Tenant
    from rules.models import RecordedNudge
    from rules.queries.nudges import key_of

    with scope(tenant=Tenant.objects.get(slug=slug)):
        found = RecordedNudge.objects.order_by("-sorted_at", "-id")
        total = found.count()
        return {depth: key_of(found[int(total * depth)]) for depth in (0.001, 0.5, 0.99)}


def _page(client: Any, name: str, address: str, *, part: bool = False) -> dict[str, Any]:
    headers = {"HX-Request": "true"} if part else {}
    times, busy = [], []
    for _round in range(ROUNDS + 1):
        started, used = time.perf_counter(), time.process_time()
        answer = client.get(address, headers=headers)
        times.append((time.perf_counter() - started) * 1000)
        busy.append((time.process_time() - used) * 1000)
        assert answer.status_code == 200, f"{address}: {answer.status_code}"
    # The first one fills caches.
    row = _row(name, statistics.quantiles(times[1:], n=20)[-1], "ms", TARGET_MS)
    return row | {"cpu": statistics.median(busy[1:])}
