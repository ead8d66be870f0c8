"""The list of chats: search, filters, saved searches, export."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from chats.models import Chat, SavedSearch
from chats.queries import chats as queries
from chats.queries.chats import PAGE, chats, filter_of, query_of
from chats.queries.narrowing import narrowings
from chats.services.exporting import export_chats
from chats.services.searches import delete_search, save_search
from eleanor_site.access import author, viewer
from eleanor_site.downloads import download
from eleanor_site.numbers import whole_number
from eleanor_site.problems import Refused
from eleanor_site.web import Request, page

SEARCHES_SHOWN = 50


@viewer
@require_safe
def chat_list(request: Request) -> HttpResponse:
    """Newest first, with filters in the URL; pages by key."""
    return _list(request, request.GET)


def _list(request: Request, given: QueryDict, *, status: int = 200, **more: Any) -> HttpResponse:
    wanted = filter_of(given)
    after = given.get("after", "")
    rows = list(chats(wanted, after=whole_number(after, otherwise=None, most=10**17 - 1))[: PAGE + 1])
    context = {
        "rows": rows[:PAGE],
        "next_after": rows[PAGE - 1].pk if len(rows) > PAGE else None,
        "wanted": wanted,
        "filtered": not wanted.is_empty,
        "query": query_of(given),
        "filters": list(QueryDict(query_of(given)).items()),
        "models": queries.known_models(),
        "formats": queries.known_formats(),
        "narrowings": [
            {"key": n.key, "label": n.label, "choices": n.choices(), "value": wanted.value(n.key)} for n in narrowings()
        ],
        "searches": queries.saved_searches()[:SEARCHES_SHOWN],
        "current": _current_search(query_of(given)),
        "anything": bool(rows) or Chat.objects.exists(),
        **more,
    }
    answer = page(request, "chats/list.html", context, part="rows" if after else "results", status=status)
    if not after and request.method == "GET":
        # While typing, the address keeps only what differs from the defaults.
        answer["HX-Replace-Url"] = f"{request.path}?{query_of(given)}".removesuffix("?")
    return answer


def _current_search(query: str) -> SavedSearch | None:
    return SavedSearch.objects.filter(query=query).order_by("id").first() if query else None


@viewer
@require_safe
def export(request: Request) -> HttpResponseBase:
    """The chats that the filters leave, as JSON Lines with a trailer."""
    lines = export_chats(tenant=request.tenant, chats=chats(filter_of(request.GET)))
    return download(lines, f"{request.tenant.slug}-chats.jsonl")


@viewer
@require_safe
def search_list(request: Request) -> HttpResponse:
    """Saved searches with their owner, and how many of their chats are labelled."""
    rows = []
    for search in queries.saved_searches()[:SEARCHES_SHOWN]:
        found = queries.chats_of_search(search)
        labelled = filter_of(QueryDict(f"{search.query}&verdict=any"))
        rows.append({"search": search, "total": found.count(), "labelled": chats(labelled).count()})
    return page(request, "chats/searches.html", {"rows": rows})


@author
@require_POST
def keep_search(request: Request) -> HttpResponse:
    """Save the filters that the form brings along, under a name."""
    name, query = request.POST.get("name", "").replace("\x00", "").strip(), query_of(request.POST)
    try:
        search = save_search(tenant=request.tenant, by=request.user, name=name, query=query)
    except Refused as refused:
        return _list(request, request.POST, status=422, save_problem=str(refused), save_name=name)
    messages.success(request, _("The search “%(name)s” is saved.") % {"name": search.name})
    return redirect(f"{reverse('chats:list', args=[request.tenant.slug])}?{search.query}")


@author
@require_POST
def drop_search(request: Request, search: int) -> HttpResponse:
    found = SavedSearch.objects.filter(pk=search).first()
    if found is None:
        raise Http404
    delete_search(tenant=request.tenant, by=request.user, search=found)
    return redirect("chats:searches", request.tenant.slug)
