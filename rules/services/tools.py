"""Changing the tenant's own tool catalogue. Points hang on it, so columns are made anew after each change."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from eleanor_site.audit.services import record
from eleanor_site.tenants.models import Tenant, User
from rules.models import ToolEntry
from rules.services.segments import prepare_segments


@transaction.atomic
def add_entry(*, tenant: Tenant, values: dict[str, Any], by: User) -> ToolEntry:
    """A new entry behind the tenant's others."""
    before = _patterns()
    entry = ToolEntry.objects.create(tenant=tenant, position=len(before) + 1, **values)
    _record(tenant, by, "tools.add", entry, before)
    return entry


@transaction.atomic
def change_entry(*, tenant: Tenant, entry: ToolEntry, values: dict[str, Any], by: User) -> ToolEntry:
    """Other content at the same place."""
    before = _patterns()
    ToolEntry.objects.filter(pk=entry.pk).update(**values)
    entry.refresh_from_db()
    _record(tenant, by, "tools.change", entry, before)
    return entry


@transaction.atomic
def remove_entry(*, tenant: Tenant, entry: ToolEntry, by: User) -> None:
    before = _patterns()
    ToolEntry.objects.filter(pk=entry.pk).delete()
    _renumber(list(ToolEntry.objects.order_by("position")))
    _record(tenant, by, "tools.remove", entry, before)


@transaction.atomic
def move_entry(*, tenant: Tenant, entry: ToolEntry, step: int, by: User) -> None:
    before = _patterns()
    rows = list(ToolEntry.objects.select_for_update().order_by("position"))
    at = next(i for i, row in enumerate(rows) if row.pk == entry.pk)
    rows.insert(max(0, min(at + step, len(rows) - 1)), rows.pop(at))
    _renumber(rows)
    _record(tenant, by, "tools.order", entry, before)


def _renumber(rows: list[ToolEntry]) -> None:
    for position, row in enumerate(rows, start=1):
        row.position = position
    ToolEntry.objects.bulk_update(rows, ["position"])


def _patterns() -> list[str]:
    """The catalogue as the change log shows it."""
    return [_line(entry) for entry in ToolEntry.objects.order_by("position")]


def _line(entry: ToolEntry) -> str:
    parts = [f"{entry.pattern} {entry.kind}"]
    if entry.argument:
        parts.append(f"{entry.argument} ~ {entry.argument_pattern}")
    parts += ["repeatable"] if entry.repeatable else []
    parts += [f"{name}: {value}" for name in ("success", "failure") if (value := getattr(entry, f"{name}_pattern"))]
    return " · ".join(parts)


def _record(tenant: Tenant, by: User, action: str, entry: ToolEntry, before: list[str]) -> None:
    record(
        tenant=tenant,
        by=by,
        action=action,
        object_type="tools",
        object_id=entry.pk or 0,
        object_label=entry.pattern,
        before=before,
        after=_patterns(),
    )
    prepare_segments(tenant)
