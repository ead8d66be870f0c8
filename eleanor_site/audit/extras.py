"""What an app above adds to the page of one change, since only it knows what the change did."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from eleanor_site.audit.models import Entry
from eleanor_site.tenants.models import Tenant


@dataclass(frozen=True)
class Extra:
    """For entries about one type of object: a template, and what it shows (None: nothing for this entry)."""

    object_type: str
    template: str
    context: Callable[[Tenant, Entry], dict[str, Any] | None]


_extras: dict[str, Extra] = {}


def add_extra(extra: Extra) -> None:
    """Offer it; called once at start."""
    _extras[extra.object_type] = extra


def extra_of(entry: Entry) -> Extra | None:
    return _extras.get(entry.object_type)
