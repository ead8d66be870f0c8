"""Endpoints of the change log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from datetime import date, datetime
from typing import Annotated, Any

from django.http import Http404, StreamingHttpResponse
from ninja import Query
from pydantic import BaseModel

from eleanor_site.api_access import ApiRequest, KeyRouter, rows_after
from eleanor_site.api_files import TABLES, FileForm, file_answer
from eleanor_site.api_values import PAGE, After, Day, Limit, Number, Text
from eleanor_site.audit.models import Entry
from eleanor_site.audit.queries import EXPORT_COLUMNS, EntryFilter, entries, export_rows, faults, is_whole
from eleanor_site.exports import csv_lines, json_lines
from eleanor_site.tenants.models import KeyScope

router = KeyRouter(tags=["changes"])


class Change(BaseModel):
    """One entry of the change log. `hash` covers all of it and the `previous_hash`."""

    number: int
    at: datetime
    actor: str
    action: str
    object_type: str
    object_id: str
    object_label: str
    before: Any
    after: Any
    note: str
    request_id: str
    previous_hash: str
    hash: str

    @classmethod
    def of(cls, entry: Entry) -> Change:
        return cls(
            number=entry.number,
            at=entry.at,
            actor=entry.actor_label,
            action=entry.action,
            object_type=entry.object_type,
            object_id=entry.object_id,
            object_label=entry.object_label,
            before=json.loads(entry.before) if entry.before else None,
            after=json.loads(entry.after) if entry.after else None,
            note=entry.note,
            request_id=entry.request_id,
            previous_hash=entry.previous_hash,
            hash=entry.hash,
        )


class ChangeAnswer(BaseModel):
    """`whole`: the entry's hash covers what it says, and it follows the entry before it."""

    change: Change
    whole: bool


class ChangeList(BaseModel):
    items: list[Change]
    next: str | None


class FaultOut(BaseModel):
    number: int
    kind: str


class Verification(BaseModel):
    """Whether the chain of the log is whole, and every place where it isn't."""

    whole: bool
    faults: list[FaultOut]


From = Annotated[Day | None, Query(alias="from")]
To = Annotated[Day | None, Query(alias="to")]


@router.operation("GET", "/changes", KeyScope.AUDIT_READ, answers=ChangeList)
def list_changes(
    request: ApiRequest,
    actor: Text = "",
    object: Text = "",
    object_id: Text = "",
    action: Text = "",
    q: Text = "",
    start: From = None,
    end: To = None,
    after: After = None,
    limit: Limit = PAGE,
) -> ChangeList:
    """The newest first. `object` is a kind of thing, `q` is looked for in notes and names."""
    found = entries(**asdict(_filter(actor, object, object_id, action, q, start, end)))
    rows, following = rows_after(found, after, limit, "number")
    return ChangeList(items=[Change.of(entry) for entry in rows], next=following)


@router.operation("GET", "/changes/export", KeyScope.AUDIT_READ, answers=None, files=TABLES)
def export_changes(
    request: ApiRequest,
    format: FileForm = "jsonl",
    actor: Text = "",
    object: Text = "",
    object_id: Text = "",
    action: Text = "",
    q: Text = "",
    start: From = None,
    end: To = None,
) -> StreamingHttpResponse:
    """The entries that the filters leave, oldest first, with their hashes: the chain can be checked elsewhere."""
    rows = export_rows(_filter(actor, object, object_id, action, q, start, end))
    lines: Iterator[bytes] = (
        csv_lines(EXPORT_COLUMNS, ([row[name] for name in EXPORT_COLUMNS] for row in rows))
        if format == "csv"
        else json_lines(rows)
    )
    return file_answer(lines, format, f"{request.tenant.slug}-changes")


@router.operation("GET", "/changes/verification", KeyScope.AUDIT_READ, answers=Verification)
def verify_changes(request: ApiRequest) -> Verification:
    """Read the whole log and check its chain."""
    found = [FaultOut(number=fault.number, kind=fault.kind) for fault in faults()]
    return Verification(whole=not found, faults=found)


@router.operation("GET", "/changes/{number}", KeyScope.AUDIT_READ, answers=ChangeAnswer)
def get_change(request: ApiRequest, number: Number) -> ChangeAnswer:
    """One entry, and whether it is as it was written."""
    entry = Entry.objects.filter(number=number).first()
    if entry is None:
        raise Http404
    return ChangeAnswer(change=Change.of(entry), whole=is_whole(entry))


def _filter(
    actor: str, object: str, object_id: str, action: str, text: str, start: date | None, end: date | None
) -> EntryFilter:
    days = (day.isoformat() if day else "" for day in (start, end))
    return EntryFilter(actor, object, object_id, action, text, *days)
