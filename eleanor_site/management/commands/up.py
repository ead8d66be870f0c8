"""``manage.py up``: database, demo data, broker, worker and web on this machine (architecture.md section 5.3)."""

import contextlib
import fcntl
import hashlib
import http.client
import os
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command, get_commands
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, connection, connections
from django.db.migrations.executor import MigrationExecutor

from eleanor_site.environment import WEB_PROCESS
from eleanor_site.supervisor import Child, Supervisor

HOST = "127.0.0.1"
PORTS = range(1, 65536)


class Command(BaseCommand):
    help = "Start everything on this machine: database, demo data, broker, worker and web. Ctrl-C stops it."
    requires_system_checks = ()  # `migrate` runs those that concern it, the suite all of them

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=int, default=8000, help="port of the web server (default: 8000)")

    def handle(self, *args: Any, **options: Any) -> None:
        port: int = options["port"]
        try:
            with only_one(settings.VAR_DIR, port):
                require_free(port)
                self._prepare()
                self._supervise(port)
        except OSError as error:
            raise CommandError(f"{error.filename or settings.VAR_DIR} can't be used ({error.strerror}).") from error
        except KeyboardInterrupt:
            raise CommandError("Stopped before anything was started.", returncode=130) from None

    def _prepare(self) -> None:
        try:
            if has_open_migrations():
                self._say("Preparing the database …")
                call_command("migrate", interactive=False, verbosity=0)
            collect_static(settings.STATIC_ROOT)
            if "seed_demo" in get_commands():
                call_command("seed_demo")
        except DatabaseError as error:
            raise CommandError(f"The database can't be used: {first_line(error)}") from error
        finally:
            connections.close_all()

    def _supervise(self, port: int) -> None:
        broker = settings.BROKER
        if broker.name == "files":
            self._say("There is no Redis on this machine: tasks go through files in var/queue, which is slower.")
        supervisor = Supervisor(children(port), say=self._say)
        supervisor.run(
            when_ready=lambda: self._say(f"Eleanor Console runs at http://{HOST}:{port}/ - Ctrl-C stops it.")
        )
        self._say("Stopped.")

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


def children(port: int) -> list[Child]:
    """Return the processes of one checkout: the private Redis if there is one, the worker with beat, and the web."""
    return [*_private_redis(), *_workers(), _beat(), _web(port)]


@contextlib.contextmanager
def only_one(var_dir: Path, port: int) -> Iterator[None]:
    """Hold the checkout's lock: a second ``up`` would share the first one's Redis socket without any error."""
    var_dir.mkdir(parents=True, exist_ok=True)
    with open(var_dir / "up.lock", "a+", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise CommandError(f"Eleanor Console already runs from this folder: {file.read().strip()}.") from None
        file.truncate(0)
        file.write(f"http://{HOST}:{port}/, process {os.getpid()}")
        file.flush()
        yield


def require_free(port: int) -> None:
    """Refuse a port that can't be listened on, with the next one that can."""
    if port not in PORTS:
        raise CommandError(f"{port} is no port: it must be between {PORTS.start} and {PORTS.stop - 1}.")
    problem = _problem_of(port)
    if problem is None:
        return
    free = next((other for other in range(max(port, 1023) + 1, PORTS.stop) if _problem_of(other) is None), None)
    proposal = f" Try: python3 manage.py up --port {free}" if free is not None else ""
    raise CommandError(f"Port {port} {problem}.{proposal}")


def _problem_of(port: int) -> str | None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as candidate:
        candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as gunicorn does: a closed one may linger
        try:
            candidate.bind((HOST, port))
        except PermissionError:
            return "needs the rights of an administrator"
        except OSError:
            return "is in use"
    return None


def has_open_migrations() -> bool:
    """Return whether the code has migrations that the database lacks."""
    executor = MigrationExecutor(connection)
    return bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def collect_static(root: Path) -> None:
    """Collect and compress the static files, unless the files are those of the last time."""
    digest = hashlib.sha256()
    for finder in get_finders():
        for path, storage in finder.list(ignore_patterns=[]):
            found = os.stat(storage.path(path))
            digest.update(f"{path} {found.st_size} {found.st_mtime_ns}\n".encode())
    stamp = root.with_name(f"{root.name}.stamp")
    if root.is_dir() and stamp.is_file() and stamp.read_text(encoding="ascii") == digest.hexdigest():
        return
    stamp.unlink(missing_ok=True)
    call_command("collectstatic", interactive=False, clear=True, verbosity=0)
    stamp.write_text(digest.hexdigest(), encoding="ascii")


def first_line(error: Exception) -> str:
    """Return the first line of what the database said."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _private_redis() -> list[Child]:
    broker = settings.BROKER
    if broker.socket is None:
        return []
    path = str(broker.socket)

    def accepts() -> bool:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            return probe.connect_ex(path) == 0

    return [Child(name="redis", command=broker.server, ready=accepts, foundation=True)]


def _workers() -> list[Child]:
    """One for imports, which may take minutes, and one for everything that somebody waits for."""
    imports = settings.CELERY_TASK_DEFAULT_QUEUE
    others = {route["queue"] for route in settings.CELERY_TASK_ROUTES.values()} - {imports}
    return [_worker("worker", sorted(others)), _worker("importer", [imports])]


def _worker(name: str, queues: Sequence[str]) -> Child:
    return Child(
        name=name,
        command=[
            *(sys.executable, "-m", "celery", "--quiet", "--app", "eleanor_site.celery", "worker"),
            *("--pool", "prefork", "--concurrency", "1", "--queues", ",".join(queues)),
            *("--hostname", f"{name}@%h", "--loglevel", "WARNING", "--without-gossip", "--without-mingle"),
        ],
        # In a container everything runs as root, and this worker takes nothing but JSON from its own checkout.
        environment={"PYTHONWARNINGS": "ignore:You're running the worker with superuser:UserWarning"},
        orphan_signal=signal.SIGQUIT,  # ends now and hands its task back, instead of finishing it first
    )


def _beat() -> Child:
    """A child of its own: inside a worker nobody would notice its end, and with it all recovery ends."""
    return Child(
        name="beat",
        command=[
            *(sys.executable, "-m", "celery", "--quiet", "--app", "eleanor_site.celery", "beat"),
            *("--schedule", str(settings.VAR_DIR / "celerybeat-schedule")),
            *("--pidfile=", "--loglevel", "WARNING"),
        ],
    )


def _web(port: int) -> Child:
    def answers() -> bool:
        request = http.client.HTTPConnection(HOST, port, timeout=1)
        try:
            request.request("GET", "/healthz")
            request.getresponse()
            return True  # whatever it says: a page tells more than a missing address
        except (OSError, http.client.HTTPException):
            return False
        finally:
            request.close()

    return Child(
        name="web",
        command=[
            *(sys.executable, "-m", "gunicorn", "eleanor_site.wsgi", "--bind", f"{HOST}:{port}"),
            *("--worker-class", "gthread", "--workers", "1", "--threads", "8", "--no-control-socket"),
            *("--graceful-timeout", "5", "--log-level", "warning"),
        ],
        environment=dict(WEB_PROCESS),
        ready=answers,
        orphan_signal=signal.SIGQUIT,
    )
