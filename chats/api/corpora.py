"""Frozen corpora: chat versions under a name, which never change."""

from __future__ import annotations

from datetime import datetime

from django.http import Http404, HttpResponse, QueryDict, StreamingHttpResponse
from pydantic import BaseModel, Field

from chats.api.chats import ChatList, ChatSummary
from chats.api.filters import ChatFilters
from chats.models import Corpus
from chats.queries.chats import chats, corpora, filter_of
from chats.queries.corpora import chats_in, check, members
from chats.services.corpora import freeze
from chats.services.exporting import export_versions
from eleanor_site.api_access import ApiRequest, KeyRouter, json_answer, rows_after
from eleanor_site.api_files import JSON_LINES, file_answer
from eleanor_site.api_values import PAGE, After, Id, Limit, Strict
from eleanor_site.tenants.models import KeyScope

router = KeyRouter(tags=["corpora"])


class FreezeIn(Strict):
    name: str = Field(min_length=1, max_length=120, examples=["Support, March"])
    filters: ChatFilters = ChatFilters()


class CorpusOut(BaseModel):
    """A corpus. `digest` names exactly these chat versions; `missing` ones were deleted or redacted since."""

    id: int
    name: str
    digest: str
    chats: int
    missing: int
    by: str | None
    created_at: datetime

    @classmethod
    def of(cls, corpus: Corpus) -> CorpusOut:
        return cls(
            id=corpus.pk,
            name=corpus.name,
            digest=corpus.digest,
            chats=corpus.chat_count,
            missing=corpus.missing,
            by=corpus.by.email if corpus.by else None,
            created_at=corpus.created_at,
        )


class CorpusList(BaseModel):
    items: list[CorpusOut]
    next: str | None


class CorpusCheckOut(BaseModel):
    """What is there of a corpus, read again: chat versions that are held and that are gone, and its digest."""

    held: int
    missing: int
    same_digest: bool


@router.operation("GET", "/corpora", KeyScope.CHATS_READ, answers=CorpusList)
def list_corpora(request: ApiRequest, after: After = None, limit: Limit = PAGE) -> CorpusList:
    """The newest first."""
    rows, following = rows_after(corpora(), after, limit)
    return CorpusList(items=[CorpusOut.of(row) for row in rows], next=following)


@router.operation("POST", "/corpora", KeyScope.CHATS_WRITE, answers=CorpusOut, status=201, idempotent=True)
def freeze_corpus(request: ApiRequest, body: FreezeIn) -> HttpResponse:
    """Name the newest versions of these chats for good. As `corpus:ID` it is a scope of replays."""
    found = chats(filter_of(QueryDict(body.filters.query())))
    made = freeze(tenant=request.tenant, by=request.person, name=body.name.strip(), chats=found)
    return json_answer(CorpusOut.of(made), status=201)


@router.operation("GET", "/corpora/{id}", KeyScope.CHATS_READ, answers=CorpusOut)
def get_corpus(request: ApiRequest, id: Id) -> CorpusOut:
    """One corpus."""
    return CorpusOut.of(_corpus(id))


@router.operation("GET", "/corpora/{id}/check", KeyScope.CHATS_READ, answers=CorpusCheckOut)
def check_corpus(request: ApiRequest, id: Id) -> CorpusCheckOut:
    """Read all its chat versions, and compare their digest with its own."""
    found = check(_corpus(id))
    return CorpusCheckOut(held=found.held, missing=found.missing, same_digest=found.same_digest)


@router.operation("GET", "/corpora/{id}/chats", KeyScope.CHATS_READ, answers=ChatList)
def list_corpus_chats(request: ApiRequest, id: Id, after: After = None, limit: Limit = PAGE) -> ChatList:
    """Its chats, in the order in which they came in."""
    rows, following = rows_after(chats_in(_corpus(id)), after, limit, rising=True)
    return ChatList(items=[ChatSummary.of(chat, listed=True) for chat in rows], next=following)


@router.operation("GET", "/corpora/{id}/export", KeyScope.CHATS_READ, answers=None, files=(JSON_LINES,))
def export_corpus(request: ApiRequest, id: Id) -> StreamingHttpResponse:
    """Its chat versions, one a line in the exchange form, then a trailer with their number and digest."""
    found = _corpus(id)
    lines = export_versions(tenant=request.tenant, versions=members(found))
    return file_answer(lines, "jsonl", f"{request.tenant.slug}-corpus-{found.pk}")


def _corpus(pk: int) -> Corpus:
    found = Corpus.objects.select_related("by").filter(pk=pk).first()
    if found is None:
        raise Http404
    return found
