"""The worker of a fault run: the real one, which kills itself, slows down or finds the disk full when it is told to.

An order is a file in the folder FAULT_ORDERS, named PLACE.ACTION.NUMBER. Whoever comes to the place first carries it
out, once: `before` the chunk is computed, `inside` the transaction that writes it, `after` it stands but before the
message is acknowledged, or `segment`, inside the transaction that writes a segment.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import django

django.setup()

from eleanor_site import jobs  # noqa: E402
from eleanor_site.celery import app  # noqa: E402
from rules import text_files  # noqa: E402
from rules.chunks import replays, segments  # noqa: E402

__all__ = ["app"]

ORDERS = Path(os.environ["FAULT_ORDERS"])
SLOW_SECONDS = 2.5
jobs.STALE_AFTER = timedelta(seconds=2)


def at(place: str) -> None:
    """Carry out the next order for this place, if there is one."""
    for order in sorted(ORDERS.glob(f"{place}.*")):
        try:
            order.rename(ORDERS / "done" / order.name)
        except FileNotFoundError:
            continue  # somebody else was faster
        action = order.name.split(".")[1]
        if action == "slow":
            time.sleep(SLOW_SECONDS)
        else:
            if action == "worker":
                os.kill(os.getppid(), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)
        return


def patched(module: Any, name: str, *, before: str = "", after: str = "") -> None:
    """Let the function of a module pass these places."""
    original = getattr(module, name)

    def passing(*args: Any, **given: Any) -> Any:
        if before:
            at(before)
        result = original(*args, **given)
        if after:
            at(after)
        return result

    setattr(module, name, passing)


patched(replays, "compute", before="before")
patched(replays, "_settle", after="inside")
patched(replays, "write", after="after")
patched(segments, "_retire_emptied", after="segment")


class _FullDisk:
    """`tempfile` as the text files see it: while the order stands, files lie on a device that is always full."""

    @staticmethod
    def mkstemp(**given: Any) -> tuple[int, str]:
        handle, name = tempfile.mkstemp(**given)
        if (ORDERS / "disk-full").exists():
            os.close(handle)
            handle = os.open("/dev/full", os.O_WRONLY)
        return handle, name


text_files.tempfile = _FullDisk  # type: ignore[attr-defined]
