"""Versions of a wrapper: making one, looking at it, comparing two, and going back to one."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from chats.domain.text_differences import diff_rows
from chats.models import WrapperDraft, WrapperVersion
from chats.queries.previews import chosen_chat, preview
from chats.queries.wrappers import WrapperRow, recipe_of, versions_of, wrapper_row
from chats.services import wrappers as services
from chats.services.wrappers import content_of
from chats.wrapper_forms.conflicts import conflict_rows
from eleanor_site.access import author, publisher, viewer
from eleanor_site.numbers import whole_number
from eleanor_site.problems import Refused
from eleanor_site.web import Request, page


@viewer
@require_safe
def wrapper_versions(request: Request, slug: str) -> HttpResponse:
    row = _row(slug)
    return page(request, "chats/wrapper_versions.html", {"row": row, "versions": versions_of(row.wrapper)})


@author
@require_POST
def make_wrapper_version(request: Request, slug: str) -> HttpResponse:
    """An immutable version of the draft, with a note."""
    row = _row(slug)
    seen = request.POST.get("revision", "")
    note = request.POST.get("note", "").replace("\r\n", "\n").replace("\x00", "")[:2000]
    if "begin_again" in request.POST:
        services.begin_again_on_newest(tenant=request.tenant, wrapper=row.wrapper, by=request.user)
        messages.success(request, _("The draft stands on top of the newest version now."))
        return redirect("chats:edit_wrapper", request.tenant.slug, slug)
    try:
        version = services.make_wrapper_version(
            tenant=request.tenant,
            wrapper=row.wrapper,
            by=request.user,
            revision=whole_number(seen, otherwise=-1, most=10**8 - 1),
            note=note,
        )
    except Refused as refused:
        context = {"row": row, "versions": versions_of(row.wrapper), "problem": str(refused), "note": note}
        return page(request, "chats/wrapper_versions.html", context, status=refused.status)
    messages.success(request, _("Version %(n)s is made.") % {"n": version.number})
    return redirect("chats:wrapper", request.tenant.slug, slug)


@viewer
@require_safe
def wrapper_version(request: Request, slug: str, number: int) -> HttpResponse:
    """One version, and what it changed."""
    row = _row(slug)
    version = _version(row, number)
    before = WrapperVersion.objects.filter(wrapper=row.wrapper, number__lt=number).order_by("-number").first()
    context = {
        "row": row,
        "version": version,
        "before": before,
        "rows": conflict_rows(content_of(before), content_of(version)) if before else [],
        "recipe": recipe_of(version),
    }
    return page(request, "chats/wrapper_version.html", context)


@publisher
@require_POST
def roll_back_wrapper(request: Request, slug: str, number: int) -> HttpResponse:
    row = _row(slug)
    _version(row, number)
    try:
        version = services.roll_back_wrapper(
            tenant=request.tenant,
            wrapper=row.wrapper,
            by=request.user,
            number=number,
            note=request.POST.get("note", "").replace("\x00", "")[:2000],
        )
        messages.success(
            request,
            _("Version %(old)s holds again, as version %(new)s.") % {"old": number, "new": version.number},
        )
    except Refused as refused:
        messages.error(request, str(refused))
    return redirect("chats:wrapper_versions", request.tenant.slug, slug)


@viewer
@require_safe
def compare_wrapper_versions(request: Request, slug: str) -> HttpResponse:
    """`?a=&b=` are version numbers or `draft`: by path, and by what a chat looks like."""
    row = _row(slug)
    a, b = _state(row, request.GET.get("a", "")), _state(row, request.GET.get("b", ""))
    context: dict[str, Any] = {"row": row, "versions": versions_of(row.wrapper), "a": a, "b": b}
    if a is not None and b is not None:
        chat = chosen_chat(request.GET.get("chat", ""), request.GET.get("turn", ""))
        old, new = (preview(chat.record, recipe_of(one), chat.upto) for one in (a, b))
        context |= {
            "chat": chat,
            "rows": [row for row in conflict_rows(content_of(a), content_of(b)) if row.key != "template"],
            "template_rows": diff_rows(a.template, b.template),
            "problem": old.problem or new.problem,
            "output_rows": diff_rows(old.text, new.text) if old.is_good and new.is_good else [],
        }
    return page(request, "chats/wrapper_compare.html", context)


def _state(row: WrapperRow, name: str) -> WrapperVersion | WrapperDraft | None:
    if name == "draft":
        return row.draft
    if not name.isdecimal() or len(name) > 8:
        return None
    return WrapperVersion.objects.select_related("by").filter(wrapper=row.wrapper, number=int(name)).first()


def _version(row: WrapperRow, number: int) -> WrapperVersion:
    found = WrapperVersion.objects.select_related("by").filter(wrapper=row.wrapper, number=number).first()
    if found is None:
        raise Http404
    return found


def _row(slug: str) -> WrapperRow:
    row = wrapper_row(slug)
    if row is None:
        raise Http404
    return row
