"""Frozen corpora: the list, one of them, and freezing what a search finds."""

from __future__ import annotations

from django.http import Http404, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_safe

from chats.models import Corpus
from chats.queries.chats import chats, corpora, filter_of, query_of
from chats.queries.corpora import chats_in, check, members
from chats.services.corpora import freeze
from chats.services.exporting import export_versions
from eleanor_site.access import author, viewer
from eleanor_site.downloads import download
from eleanor_site.problems import Refused
from eleanor_site.web import Request, page

SHOWN = 100


@viewer
@require_safe
def corpus_list(request: Request) -> HttpResponse:
    return page(request, "chats/corpora.html", {"rows": corpora()[:SHOWN]})


@author
@require_http_methods(["GET", "HEAD", "POST"])
def freeze_corpus(request: Request) -> HttpResponse:
    """`GET` says what would be frozen; `POST` does it, under the name that was typed."""
    given = request.POST if request.method == "POST" else request.GET
    found = chats(filter_of(given))
    name, problem = given.get("name", "").replace("\x00", "").strip(), ""
    if request.method == "POST":
        try:
            corpus = freeze(tenant=request.tenant, by=request.user, name=name, chats=found)
            return redirect("chats:corpus", request.tenant.slug, corpus.pk)
        except Refused as refused:
            problem = str(refused)
    context = {
        "name": name,
        "problem": problem,
        "chat_count": found.count(),
        "query": query_of(given),
        "filters": list(QueryDict(query_of(given)).items()),
    }
    return page(request, "chats/freeze.html", context, status=422 if problem else 200)


@viewer
@require_safe
def corpus_page(request: Request, corpus: int) -> HttpResponse:
    found = _corpus(corpus)
    context = {"corpus": found, "check": check(found), "rows": chats_in(found)[:SHOWN], "shown": SHOWN}
    return page(request, "chats/corpus.html", context)


@viewer
@require_safe
def corpus_export(request: Request, corpus: int) -> HttpResponseBase:
    found = _corpus(corpus)
    lines = export_versions(tenant=request.tenant, versions=members(found))
    return download(lines, f"{request.tenant.slug}-corpus-{found.pk}.jsonl")


def _corpus(pk: int) -> Corpus:
    found = Corpus.objects.select_related("by").filter(pk=pk).first()
    if found is None:
        raise Http404
    return found
