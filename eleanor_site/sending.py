"""Handing work to the queue after commit. A broker that is down delays the work and never fails the page."""

from __future__ import annotations

from typing import Any

import structlog
from django.db import transaction

log = structlog.get_logger(__name__)


def send_on_commit(task: Any, *ids: int) -> None:
    """Publish the task with these ids once the transaction stands; the sweeper sends it later if that fails."""
    transaction.on_commit(lambda: send(task, *ids))


def send(task: Any, *ids: int) -> bool:
    """Publish now. False, and a log line, when the broker can't be reached."""
    try:
        task.apply_async(args=list(ids), retry=False)
    except Exception as error:  # each transport has its own exceptions for "not reachable"
        log.warning("broker_not_reachable", task=task.name, ids=ids, error=type(error).__name__)
        return False
    return True
