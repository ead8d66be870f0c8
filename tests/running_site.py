"""A whole site as a person starts it, for tests that need web, worker and broker as real processes."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.waiting import until

ROOT = Path(__file__).resolve().parents[1]
SECONDS_TO_START = 120
NOT_INHERITED = ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "ALLOWED_HOSTS", "DJANGO_SETTINGS_MODULE", "PYTHONWARNINGS")


@dataclass(frozen=True)
class RunningSite:
    """Where the site answers, and the password that all its demo people have."""

    url: str
    password: str
    var: Path


@pytest.fixture(scope="session")
def running_site() -> Iterator[RunningSite]:
    """`manage.py up` with the demo data, in a folder of its own, ended with the suite."""
    with tempfile.TemporaryDirectory(prefix="eleanor-site-", ignore_cleanup_errors=True) as folder:
        port = _free_port()
        output = Path(folder) / "output"
        environment = {k: v for k, v in os.environ.items() if k not in NOT_INHERITED}
        environment |= {"ELEANOR_VAR": f"{folder}/var", "ELEANOR_NO_BOOTSTRAP": "1"}
        with output.open("wb") as printed:
            process = subprocess.Popen(
                [sys.executable, "manage.py", "up", "--port", str(port)],
                cwd=ROOT,
                env=environment,
                stdout=printed,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            until(
                lambda: "runs at" in output.read_text() or process.poll() is not None,
                seconds=SECONDS_TO_START,
                what="the start of the site",
            )
            said = output.read_text()
            password = re.search(r"password: (\S+)", said)
            assert password, said
            yield RunningSite(f"http://127.0.0.1:{port}", password[1], Path(folder) / "var")
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=60)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
