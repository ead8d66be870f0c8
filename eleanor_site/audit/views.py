"""The change log: who changed what, what came of it, and is the log whole."""

from __future__ import annotations

import difflib
import json
from dataclasses import asdict
from typing import Any

from django.http import Http404, HttpResponse, HttpResponseBase, QueryDict
from django.views.decorators.http import require_safe

from eleanor_site import downloads
from eleanor_site.access import viewer
from eleanor_site.audit import queries
from eleanor_site.audit.extras import extra_of
from eleanor_site.audit.models import Entry
from eleanor_site.days import day_from
from eleanor_site.numbers import whole_number
from eleanor_site.web import Request, page

FILTERS = ("actor", "object", "id", "action", "q", "from", "to")


@viewer
@require_safe
def changes(request: Request) -> HttpResponse:
    """The log, newest first, with filters in the URL. `?verify=1` checks the chain."""
    given = request.GET
    after = given.get("after", "")
    wanted = _filter(given)
    before = whole_number(after, otherwise=None, most=10**17 - 1)
    found = queries.entries(**asdict(wanted), before=before)
    rows = list(found[: queries.PAGE + 1])
    context: dict[str, Any] = {
        "rows": rows[: queries.PAGE],
        "next_after": rows[queries.PAGE - 1].number if len(rows) > queries.PAGE else None,
        "wanted": wanted,
        "filtered": wanted != queries.EntryFilter(),
        "query": _query(given),
        "object_types": queries.object_types(),
        "actions": queries.actions(),
        "verified": "verify" in given,
    }
    if "verify" in given:
        context |= {"faults": queries.faults(), "checked": queries.newest()}
    answer = page(request, "audit/changes.html", context, part="rows" if after else "results")
    if not after:
        # While typing, the address keeps only what differs from the defaults.
        answer["HX-Replace-Url"] = f"{request.path}?{_query(given)}".removesuffix("?")
    return answer


@viewer
@require_safe
def change(request: Request, number: int) -> HttpResponse:
    """One entry: before and after, its place in the chain, and what an app above knows of it."""
    entry = Entry.objects.select_related("actor").filter(number=number).first()
    if entry is None:
        raise Http404
    before, after = (_lines(text) for text in (entry.before, entry.after))
    rows = [
        {"kind": {"+": "added", "-": "gone"}.get(line[0], "same"), "text": line[2:]}
        for line in difflib.ndiff(before, after)
        if line[0] != "?"
    ]
    extra = extra_of(entry)
    more = extra.context(request.tenant, entry) if extra else None
    context = {
        "entry": entry,
        "rows": rows,
        "whole": queries.is_whole(entry),
        "extra": extra.template if extra and more is not None else None,
        **(more or {}),
    }
    return page(request, "audit/change.html", context)


@viewer
@require_safe
def export(request: Request) -> HttpResponseBase:
    """The entries that the filters leave, oldest first, with their hashes: the chain can be checked elsewhere."""
    rows = queries.export_rows(_filter(request.GET))
    return downloads.table(request, "changes", queries.EXPORT_COLUMNS, rows)


def _filter(given: QueryDict) -> queries.EntryFilter:
    def text(key: str) -> str:
        return given.get(key, "").strip().replace("\x00", "")

    return queries.EntryFilter(
        actor=text("actor"),
        object_type=text("object"),
        object_id=text("id"),
        action=text("action"),
        text=text("q"),
        start=_day(text("from")),
        end=_day(text("to")),
    )


def _query(given: QueryDict) -> str:
    query = QueryDict(mutable=True)
    for key in FILTERS:
        value = given.get(key, "").strip()
        if value:
            query[key] = value
    return query.urlencode()


def _day(text: str) -> str:
    day = day_from(text)
    return day.isoformat() if day else ""


def _lines(text: str) -> list[str]:
    return json.dumps(json.loads(text), ensure_ascii=False, indent=2).splitlines() if text else []
