"""Handing work to the queue after commit. A broker that is down delays the work and never fails the page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import structlog
from django.db import transaction

log = structlog.get_logger(__name__)


_held_back: ContextVar[bool] = ContextVar("held_back", default=False)


@contextmanager
def held_back() -> Iterator[None]:
    """Publish nothing inside: for work that is set up before a broker runs. The sweeper finds its rows later."""
    token = _held_back.set(True)
    try:
        yield
    finally:
        _held_back.reset(token)


def send_on_commit(task: Any, *ids: int) -> None:
    """Publish the task with these ids once the transaction stands; the sweeper sends it later if that fails."""
    transaction.on_commit(lambda: send(task, *ids))


def send(task: Any, *ids: int) -> bool:
    """Publish now. False, and a log line, when the broker can't be reached."""
    if _held_back.get():
        return False
    try:
        task.apply_async(args=list(ids), retry=False)
    except Exception as error:  # each transport has its own exceptions for "not reachable"
        log.warning("broker_not_reachable", task=task.name, ids=ids, error=type(error).__name__)
        return False
    return True
