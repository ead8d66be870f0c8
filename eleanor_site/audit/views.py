"""The change log: who changed what, and is the log whole."""

from __future__ import annotations

import difflib
import json
from datetime import date
from typing import Any

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_safe

from eleanor_site.access import viewer
from eleanor_site.audit import queries
from eleanor_site.audit.models import Entry
from eleanor_site.web import Request, page


@viewer
@require_safe
def changes(request: Request) -> HttpResponse:
    """The log, newest first, with filters in the URL. `?verify=1` checks the chain."""
    given = request.GET
    before = given.get("after", "")
    found = queries.entries(
        actor=given.get("actor", ""),
        object_type=given.get("object", ""),
        action=given.get("action", ""),
        start=_day(given.get("from", "")),
        end=_day(given.get("to", "")),
        before=int(before) if before.isdigit() else None,
    )
    rows = list(found[: queries.PAGE + 1])
    context: dict[str, Any] = {
        "rows": rows[: queries.PAGE],
        "next_after": rows[queries.PAGE - 1].number if len(rows) > queries.PAGE else None,
        "object_types": Entry.objects.values_list("object_type", flat=True).distinct().order_by("object_type"),
        "verified": "verify" in given,
    }
    if "verify" in given:
        context["faults"] = queries.faults()
    return page(request, "audit/changes.html", context, part="rows")


def _day(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        return ""


@viewer
@require_safe
def change(request: Request, number: int) -> HttpResponse:
    entry = Entry.objects.select_related("actor").filter(number=number).first()
    if entry is None:
        raise Http404
    before, after = (_lines(text) for text in (entry.before, entry.after))
    rows = [
        {"kind": {"+": "added", "-": "gone"}.get(line[0], "same"), "text": line[2:]}
        for line in difflib.ndiff(before, after)
        if line[0] != "?"
    ]
    return page(request, "audit/change.html", {"entry": entry, "rows": rows})


def _lines(text: str) -> list[str]:
    return json.dumps(json.loads(text), ensure_ascii=False, indent=2).splitlines() if text else []
