"""Searches that people keep under a name."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import Http404, HttpResponse, QueryDict
from pydantic import BaseModel, Field

from chats.api.filters import ChatFilters, filters_of
from chats.models import SavedSearch
from chats.queries.chats import chats, chats_of_search, filter_of
from chats.services.searches import delete_search, save_search
from eleanor_site.api_access import ApiRequest, KeyRouter, json_answer, rows_after
from eleanor_site.api_values import PAGE, After, Id, Limit, Strict
from eleanor_site.tenants.models import KeyScope

router = KeyRouter(tags=["searches"])


class SearchIn(Strict):
    name: str = Field(min_length=1, max_length=120, examples=["Stopped early, French"])
    filters: ChatFilters = ChatFilters()


class SearchOut(BaseModel):
    """A saved search. `filters` holds those that are set; `query` is the same as the list's page has it."""

    id: int
    name: str
    filters: dict[str, Any]
    query: str
    by: str | None
    created_at: datetime

    @classmethod
    def of(cls, search: SavedSearch) -> SearchOut:
        return cls(
            id=search.pk,
            name=search.name,
            filters=filters_of(search.query),
            query=search.query,
            by=search.by.email if search.by else None,
            created_at=search.created_at,
        )


class SearchList(BaseModel):
    items: list[SearchOut]
    next: str | None


class SearchAnswer(BaseModel):
    """A saved search with the number of chats that it finds now, and how many of them have a verdict."""

    search: SearchOut
    chats: int
    labelled: int


@router.operation("GET", "/searches", KeyScope.CHATS_READ, answers=SearchList)
def list_searches(request: ApiRequest, after: After = None, limit: Limit = PAGE) -> SearchList:
    """The newest first."""
    rows, following = rows_after(SavedSearch.objects.select_related("by").order_by("-pk"), after, limit)
    return SearchList(items=[SearchOut.of(row) for row in rows], next=following)


@router.operation("POST", "/searches", KeyScope.CHATS_WRITE, answers=SearchAnswer, status=201, idempotent=True)
def keep_search(request: ApiRequest, body: SearchIn) -> HttpResponse:
    """Keep filters under a name that no other search has. As `search:ID` it is a scope of replays and effects."""
    made = save_search(tenant=request.tenant, by=request.person, name=body.name.strip(), query=body.filters.query())
    return json_answer(_answer(made), status=201)


@router.operation("GET", "/searches/{id}", KeyScope.CHATS_READ, answers=SearchAnswer)
def get_search(request: ApiRequest, id: Id) -> SearchAnswer:
    """One search, and how many chats it finds."""
    return _answer(_search(id))


@router.operation("DELETE", "/searches/{id}", KeyScope.CHATS_WRITE, answers=None, status=204)
def drop_search(request: ApiRequest, id: Id) -> HttpResponse:
    """Forget a search; the chats stay."""
    delete_search(tenant=request.tenant, by=request.person, search=_search(id))
    return HttpResponse(status=204)


def _search(pk: int) -> SavedSearch:
    found = SavedSearch.objects.select_related("by").filter(pk=pk).first()
    if found is None:
        raise Http404
    return found


def _answer(search: SavedSearch) -> SearchAnswer:
    labelled = filter_of(QueryDict(f"{search.query}&verdict=any"))
    return SearchAnswer(
        search=SearchOut.of(search), chats=chats_of_search(search).count(), labelled=chats(labelled).count()
    )
