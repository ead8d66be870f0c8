"""The history of nudges that the stored chats hold."""

from __future__ import annotations

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from eleanor_site.access import viewer
from eleanor_site.web import Request, page
from rules.queries import nudges as queries


@viewer
@require_safe
def nudge_list(request: Request) -> HttpResponse:
    """Newest first, with filters in the URL; pages by key."""
    given = request.GET
    after = given.get("after", "")
    found = queries.nudges(code=given.get("rule", ""), language=given.get("lang", ""), model=given.get("model", ""))
    if after.isdigit():
        found = found.filter(pk__lt=int(after))
    rows = list(found[: queries.PAGE + 1])
    context = {
        "rows": rows[: queries.PAGE],
        "next_after": rows[queries.PAGE - 1].pk if len(rows) > queries.PAGE else None,
        "codes": queries.codes(),
    }
    return page(request, "rules/nudges.html", context, part="rows")
