"""Restarting a PostgreSQL that runs on this machine, as an administrator would: fast, and with the same data."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import psycopg

SECONDS = 60.0


def restart(url: str) -> None:
    """End the server behind this address, and start the same command again. Raises RuntimeError when it stays away."""
    with psycopg.connect(url) as connection:
        found = connection.execute("SHOW data_directory").fetchone()
    assert found is not None
    pid_file = Path(str(found[0])) / "postmaster.pid"
    pid = int(pid_file.read_text().split()[0])
    process = Path("/proc") / str(pid)
    command = process.joinpath("cmdline").read_bytes().split(b"\0")[:-1]
    status = process.stat()
    os.kill(pid, signal.SIGINT)
    limit = time.monotonic() + SECONDS
    while pid_file.exists():
        if time.monotonic() > limit:
            raise RuntimeError("PostgreSQL didn't end")
        time.sleep(0.05)
    as_user = status.st_uid if os.getuid() == 0 else None
    subprocess.Popen(
        command,
        user=as_user,
        group=as_user,
        cwd=str(found[0]),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    while True:
        try:
            psycopg.connect(url, connect_timeout=2).close()
            return
        except psycopg.OperationalError as error:
            if time.monotonic() > limit:
                raise RuntimeError("PostgreSQL didn't come back") from error
            time.sleep(0.05)


def stop(url: str) -> None:
    """End a server that was restarted here, since whoever started it first knows another process."""
    try:
        with psycopg.connect(url, connect_timeout=2) as connection:
            found = connection.execute("SHOW data_directory").fetchone()
    except psycopg.OperationalError:
        return
    assert found is not None
    pid_file = Path(str(found[0])) / "postmaster.pid"
    os.kill(int(pid_file.read_text().split()[0]), signal.SIGINT)
    limit = time.monotonic() + SECONDS
    while pid_file.exists() and time.monotonic() < limit:
        time.sleep(0.05)
