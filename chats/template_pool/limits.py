"""Bounds of one request to a template worker."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one request. `cpu_seconds` count what the worker computes, so a busy machine doesn't fail an honest
    template; `wall_seconds` are waited before a worker that has had its share is killed, and twice `wall_seconds` more
    for one that hasn't. `lint_cpu_seconds` and `lint_wall_seconds` are the same for the many renders of a lint."""

    cpu_seconds: float = 1.0
    wall_seconds: float = 3.0
    lint_cpu_seconds: float = 4.0
    lint_wall_seconds: float = 8.0
    memory_bytes: int = 448 * 1024 * 1024
    recursion: int = 400
    request_bytes: int = 4 * 1024 * 1024
    answer_bytes: int = 64 * 1024 * 1024
    waiting_seconds: float = 10.0
    starting_seconds: float = 30.0
    # A worker that still holds more than this after it ran out of memory is replaced.
    kept_bytes: int = 192 * 1024 * 1024
