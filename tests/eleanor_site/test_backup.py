"""A backup made while somebody writes, put into an empty site: the same rows and files, and a whole change log."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

ROOT = Path(__file__).resolve().parents[2]
NOT_INHERITED = ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "ALLOWED_HOSTS", "DJANGO_SETTINGS_MODULE", "PYTHONWARNINGS")

# Makes rules, one transaction each, until it is ended; the log has an entry for each.
WRITER = """
from django_scopes import scope
from eleanor_site.tenants.models import Tenant, User
from rules.services.drafts import create_rule
from django.core.files.base import ContentFile
from chats.services.importing import start_import
tenant, by = Tenant.objects.create(slug="demo", name="Demo"), User.objects.create_user("admin@demo.example")
with scope(tenant=tenant):
    for n in range(100_000):
        create_rule(tenant=tenant, by=by, code=f"W-{n}", content={"prompt_en": f"Go on, {n}."})
        start_import(tenant=tenant, by=by, file=ContentFile(b"{}", name="x"), name=f"{n}.jsonl", send=False)
        print(n, flush=True)
"""
# What must be alike on both sides, and files that rows name but the folder lacks.
STATE = """
import json
from pathlib import Path
from django.conf import settings
from django.db import connection
from django_scopes import scopes_disabled
from chats.models import ImportJob
from rules.models import Rule
from eleanor_site.audit.models import Entry
with scopes_disabled():
    names = list(ImportJob.objects.all().values_list("file", flat=True))
    print(json.dumps({
        "missing": [name for name in names if not (Path(settings.MEDIA_ROOT) / name).is_file()],
        "imports": len(names),
        "rules": Rule.objects.all().count(),
        "created": Entry.objects.filter(action="rule.create").count(),
    }))
    if Rule.objects.all().count():
        rule = Rule(tenant_id=Rule.objects.all()[0].tenant_id, code="AFTER")
        rule.save()  # ids go on where they ended
"""


class Site:
    """A site of its own, as commands see it."""

    def __init__(self, var: Path, database: str | None = None) -> None:
        self.var = var
        self.environment = {k: v for k, v in os.environ.items() if k not in NOT_INHERITED}
        self.environment |= {"ELEANOR_VAR": str(var), "ELEANOR_NO_BOOTSTRAP": "1"}
        if database:
            self.environment["DATABASE_URL"] = database

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *arguments: str) -> tuple[int, str]:
        process = self.start(*arguments)
        said, _none = process.communicate(timeout=300)
        return process.returncode, said

    def state(self) -> dict[str, object]:
        status, said = self.run("shell", "-v", "0", "-c", STATE)
        assert status == 0, said
        found: dict[str, object] = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
        return found


@pytest.fixture
def sites(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Site, Site]]:
    """Two empty sites: on SQLite, or on two databases of one PostgreSQL server."""
    if request.param == "sqlite":
        yield Site(tmp_path / "here"), Site(tmp_path / "there")
        return
    url = request.getfixturevalue("postgres_url")
    names = [f"backup_{side}_{secrets.token_hex(4)}" for side in ("here", "there")]
    with psycopg.connect(url, autocommit=True) as server:
        for name in names:
            server.execute(f'CREATE DATABASE "{name}"')
    here, there = (urlunsplit(urlsplit(url)._replace(path=f"/{name}")) for name in names)
    yield Site(tmp_path / "here", here), Site(tmp_path / "there", there)
    with psycopg.connect(url, autocommit=True) as server:
        for name in names:
            server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


databases = pytest.mark.parametrize(
    "sites", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)], indirect=True
)


@databases
def test_a_backup_while_somebody_writes(sites: tuple[Site, Site], tmp_path: Path) -> None:
    here, there = sites
    assert here.run("migrate", "-v", "0")[0] == 0
    archive = tmp_path / "backup.tar"
    writer = here.start("shell", "-v", "0", "-c", WRITER)
    try:
        assert writer.stdout is not None
        # Log lines stand between the numbers.
        assert any(line.strip() == "3" for line in writer.stdout), "the writer ended"
        status, said = here.run("backup", str(archive))
        assert status == 0, said
    finally:
        writer.kill()
        writer.communicate()
    assert archive.stat().st_mode & 0o077 == 0
    again, said = here.run("backup", str(archive))
    assert (again, "exists already" in said) == (1, True)

    status, said = there.run("restore", str(archive))
    assert status == 0, said
    assert re.search(r"demo: \d+ entries, 0 faults", said)
    state = there.state()
    assert state["missing"] == []
    # Each rule has its entry in the log: the copy is one moment, not rules of one and entries of another.
    assert state["rules"] == state["created"]
    assert int(str(state["rules"])) >= 3
    twice, said = there.run("restore", str(archive))
    assert (twice, "isn't empty" in said) == (1, True)


def test_a_damaged_backup_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    here, there = Site(tmp_path / "here"), Site(tmp_path / "there")
    assert here.run("migrate", "-v", "0")[0] == 0
    archive = tmp_path / "backup.tar"
    assert here.run("backup", str(archive))[0] == 0
    for damage in (flipped, cut, with_a_path_out):
        damaged = tmp_path / f"{damage.__name__}.tar"
        shutil.copy(archive, damaged)
        damage(damaged)
        status, said = there.run("restore", str(damaged))
        assert status == 1, said
        assert "Error" in said
        assert not (there.var / "eleanor.sqlite3").exists()
        assert not (tmp_path / "outside").exists()


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40_000])


def with_a_path_out(path: Path) -> None:
    with tarfile.open(path, "a") as archive:
        archive.addfile(tarfile.TarInfo("media/../../../outside"))
