"""Waiting for what another process does: for a condition, with a limit, never for a time."""

import time
from collections.abc import Callable

STEP = 0.02


def until(condition: Callable[[], object], *, seconds: float = 30.0, what: str = "the condition") -> None:
    """Return as soon as ``condition`` holds; fail when it doesn't within ``seconds``."""
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, f"{what} didn't come true within {seconds:g} s"
        time.sleep(STEP)
