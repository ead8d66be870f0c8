"""The short form of the fault run: workers are killed and Redis emptied, and nothing is lost or counted twice."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from eleanor_site import broker


@pytest.mark.redis
@pytest.mark.skipif(broker.redis_binary() is None, reason="no Redis: install the package redis-server")
def test_nothing_is_lost_or_doubled_when_workers_are_killed() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "ELEANOR_VAR"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults", "--short", "sqlite"],
        cwd=Path(__file__).resolve().parents[2],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 kills" in done.stdout
    assert "0 lost, 0 doubled" in done.stdout
