"""A real Redis for tests: the one of this machine or the wheel's, on a socket of its own, without a port."""

import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from eleanor_site import broker

SECONDS_TO_START = 10


@pytest.fixture
def redis_url() -> Iterator[str]:
    """The address of a private, empty Redis, as REDIS_URL takes it."""
    with running() as url:
        yield url


@contextlib.contextmanager
def running() -> Iterator[str]:
    """Yield the address of a Redis that runs until the end of the block."""
    binary = broker.redis_binary()
    if binary is None:
        pytest.skip("no Redis: install the package redis-server (there is no wheel for this Python and machine)")
    folder = Path(tempfile.mkdtemp(prefix="eleanor-redis-"))  # short: pytest's own folders are too deep for a socket
    path = folder / "redis.sock"
    server = subprocess.Popen(broker.redis_command(binary, socket=path, data=folder), start_new_session=True)
    try:
        limit = time.monotonic() + SECONDS_TO_START
        while not _accepts(path):
            if server.poll() is not None or time.monotonic() > limit:
                raise RuntimeError("Redis didn't start")
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(0.02)
        yield f"redis+socket://{quote(str(path))}"
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _accepts(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0
