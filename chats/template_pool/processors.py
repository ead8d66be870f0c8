"""On which processors a worker runs, and how much of one it has had."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


class Place:
    """On which processors a worker may run.

    It begins on that of the thread that asks, which sleeps meanwhile and stays there until it has its answer. Left to
    themselves both often wake up on an idle one, and on a virtual machine to wake that takes longer than a render. When
    the answer is late both may go where they like, so that nothing that takes time is ever confined.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._here: int | None = None
        self._anywhere = os.sched_getaffinity(pid) if _current_processor is not None else set()

    def come_here(self) -> None:
        if _current_processor is None:
            return
        here = _current_processor()
        if here != self._here:
            self._here = here
            # Where that isn't allowed it only takes longer.
            with suppress(OSError):
                os.sched_setaffinity(self.pid, (here,))
        with suppress(OSError):
            os.sched_setaffinity(0, (here,))

    def let_go(self) -> None:
        """The calling thread has its answer, or none, and may run anywhere again."""
        if _current_processor is not None:
            with suppress(OSError):
                os.sched_setaffinity(0, self._anywhere)

    def go_anywhere(self) -> None:
        self.let_go()
        if self._here is not None:
            self._here = None
            with suppress(OSError):
                os.sched_setaffinity(self.pid, self._anywhere)


def _processor_call() -> Callable[[], int] | None:
    """The C library's `sched_getcpu`, for which Python has no name; None where the system can't place a process."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    try:
        # Not CDLL: it would let other threads in, and take turns with them, for something that never waits.
        call: Callable[[], int] = ctypes.PyDLL(None).sched_getcpu
    except (OSError, AttributeError):
        return None
    return call


_current_processor = _processor_call()


def cpu_seconds_of(pid: int) -> float:
    """CPU time of a process so far; infinite where the system doesn't tell, so that nobody waits for it."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return float("inf")
