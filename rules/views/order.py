"""Another order of the live rules, with its effect, by buttons and numbers alone."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from eleanor_site.access import publisher
from eleanor_site.numbers import whole_number
from eleanor_site.problems import Refused
from eleanor_site.web import Request, go_to, page
from rules.domain.rule_set import RuleSpec
from rules.queries import effects
from rules.queries.rules import RuleRow, live_number, rule_rows, rule_set
from rules.services import proposals, publishing


@publisher
@require_http_methods(["GET", "HEAD", "POST"])
def order(request: Request) -> HttpResponse:
    """`order` lists rule ids; `up-ID`, `down-ID` and `to-ID` with `move` move one. `save` and `add` decide."""
    rows = [row for row in rule_rows() if row.position is not None]
    ids = _order_posted(request, [row.rule.pk for row in rows])
    if request.method == "POST" and ("save" in request.POST or "add" in request.POST):
        try:
            return _decided(request, ids)
        except Refused as refused:
            messages.error(request, str(refused))
            return _page(request, rows, ids, status=refused.status)
    return _page(request, rows, ids)


def _decided(request: Request, ids: list[int]) -> HttpResponse:
    tenant, by, slug = request.tenant, request.user, request.tenant.slug
    if "add" in request.POST:
        proposals.set_order(tenant=tenant, by=by, order=ids)
        messages.success(request, _("The order is part of the open release."))
        return go_to(request, "rules:open_release", slug)
    seen = request.POST.get("seen_release", "")
    release = publishing.reorder(
        tenant=tenant,
        order=ids,
        by=by,
        seen_release=whole_number(seen, otherwise=-1, most=10**9 - 1),
        note=request.POST.get("note", ""),
    )
    messages.success(request, _("Release %(n)s is live.") % {"n": release.number})
    return go_to(request, "rules:list", slug)


def _page(request: Request, rows: list[RuleRow], ids: list[int], status: int = 200) -> HttpResponse:
    rank = {pk: i for i, pk in enumerate(ids)}
    moved = sorted(rows, key=lambda row: rank.get(row.rule.pk, len(rank)))
    answer = effects.order_effect(request.tenant, _specs(request, moved)) if rows else None
    figures = {row.code: row for row in answer.rows} if answer else {}
    context: dict[str, Any] = {
        "rows": [{"row": row, "figures": figures.get(row.rule.code)} for row in moved],
        "changed": moved != rows,
        "answer": answer,
        "live": live_number(),
        "note": request.POST.get("note", ""),
        "language": get_language(),
    }
    return page(request, "rules/order.html", context, part="rows", status=status)


def _specs(request: Request, rows: list[RuleRow]) -> list[RuleSpec]:
    """The live rules in the order of these rows; observed and paused ones take no point."""
    place = {row.rule.code: number for number, row in enumerate(rows)}
    return sorted(rule_set(request.tenant, drafts=False), key=lambda spec: place[spec.code])


def _order_posted(request: Request, current: list[int]) -> list[int]:
    posted = [int(v) for v in request.POST.getlist("order") if v.isdecimal() and len(v) < 18 and int(v) in current]
    ids = list(dict.fromkeys([*posted, *current]))
    for name, value in request.POST.items():
        word, _dash, number = name.partition("-")
        if not number.isdecimal() or len(number) > 17 or int(number) not in ids:
            continue
        at = ids.index(int(number))
        to = {"up": at - 1, "down": at + 1}.get(word, at)
        wanted = str(value)
        # Enter in a number field presses the form's first button, which means: every number that was changed.
        chosen = request.POST.get("move", number if "apply" in request.POST else "")
        if word == "to" and chosen == number and wanted.isdecimal() and len(wanted) < 6:
            to = int(wanted) - 1
        ids.insert(max(0, min(to, len(ids) - 1)), ids.pop(at))
    return ids
