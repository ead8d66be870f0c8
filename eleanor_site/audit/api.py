"""Endpoints of the change log."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any

from ninja import Query
from pydantic import BaseModel, Field

from eleanor_site.api_access import LARGEST_PAGE, PAGE, ApiRequest, Day, KeyRouter, rows_after
from eleanor_site.audit.models import Entry
from eleanor_site.audit.queries import entries, faults
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


Text = Annotated[str, Query(max_length=300)]


@router.operation("GET", "/changes", KeyScope.AUDIT_READ, answers=ChangeList)
def list_changes(
    request: ApiRequest,
    actor: Text = "",
    object: Text = "",
    action: Text = "",
    start: Annotated[Day | None, Query(alias="from")] = None,
    end: Annotated[Day | None, Query(alias="to")] = None,
    after: Annotated[str | None, Query(max_length=64)] = None,
    limit: Annotated[int, Field(ge=1, le=LARGEST_PAGE)] = PAGE,
) -> ChangeList:
    """The newest first."""
    found = entries(
        actor=actor,
        object_type=object,
        action=action,
        start=start.isoformat() if start else "",
        end=end.isoformat() if end else "",
    )
    rows, following = rows_after(found, after, limit, "number")
    return ChangeList(items=[Change.of(entry) for entry in rows], next=following)


@router.operation("GET", "/changes/verification", KeyScope.AUDIT_READ, answers=Verification)
def verify_changes(request: ApiRequest) -> Verification:
    """Read the whole log and check its chain."""
    found = [FaultOut(number=fault.number, kind=fault.kind) for fault in faults()]
    return Verification(whole=not found, faults=found)
