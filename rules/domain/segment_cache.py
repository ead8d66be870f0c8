"""Unpacked segments kept by a process: the least recently used go first, and no tenant pushes out another's share.

Keys begin with the tenant, so that nothing is ever found under another tenant's key (rule-engine.md section 5).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Final

DEFAULT_LIMIT: Final = 256 * 1024 * 1024


@dataclass(slots=True)
class _Entry:
    value: Any
    size: int


class SegmentCache:
    """An LRU bounded in bytes. Of several tenants each is sure of an equal part; a lone one may hold it all."""

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self.limit = limit
        self._tenants: dict[Hashable, OrderedDict[Hashable, _Entry]] = {}
        self._lock = threading.Lock()

    def get(self, tenant: Hashable, key: Hashable, load: Callable[[], tuple[Any, int]]) -> Any:
        """What is kept under the tenant's key, or else what `load` gives, with its size in bytes."""
        with self._lock:
            kept = self._tenants.get(tenant)
            if kept is not None and key in kept:
                kept.move_to_end(key)
                return kept[key].value
        # Loading takes long and is done without the lock: at worst two threads load the same.
        value, size = load()
        with self._lock:
            entries = self._tenants.setdefault(tenant, OrderedDict())
            entries[key] = _Entry(value, size)
            entries.move_to_end(key)
            self._make_room(tenant)
        return value

    def peek(self, tenant: Hashable, key: Hashable) -> Any | None:
        """What is kept under the tenant's key, else None."""
        with self._lock:
            kept = self._tenants.get(tenant)
            if kept is None or key not in kept:
                return None
            kept.move_to_end(key)
            return kept[key].value

    def drop(self, tenant: Hashable) -> None:
        """Forget everything of a tenant."""
        with self._lock:
            self._tenants.pop(tenant, None)

    @property
    def size(self) -> int:
        """Bytes that are kept."""
        return sum(self._size_of(tenant) for tenant in self._tenants)

    def _size_of(self, tenant: Hashable) -> int:
        return sum(entry.size for entry in self._tenants[tenant].values())

    def _make_room(self, newest: Hashable) -> None:
        """Take from whoever holds most above an equal share, the oldest entry first; the newest entry stays."""
        while self.size > self.limit:
            share = self.limit // len(self._tenants)
            held = {tenant: self._size_of(tenant) for tenant in self._tenants}
            over = [t for t, size in held.items() if size > share and len(self._tenants[t]) > (t == newest)]
            if not over:
                return
            largest = max(over, key=lambda tenant: held[tenant])
            self._tenants[largest].popitem(last=False)
            if not self._tenants[largest]:
                del self._tenants[largest]
