"""Deleting imports and chats, and for how long chats are kept. Only admins do; each says first what will go."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods

from chats.forms import RetentionForm
from chats.import_removal import contents_of
from chats.models import Chat, ImportJob
from chats.queries.removal import corpora_with, uploads_of
from chats.retention import limit_of, older_than
from chats.services import retention
from chats.services.retention import delete_chat, delete_import, keep_chats_for
from eleanor_site.access import admin
from eleanor_site.jobs import Status
from eleanor_site.problems import Refused
from eleanor_site.web import Request, page, posted


@admin
@require_http_methods(["GET", "HEAD", "POST"])
def delete_import_page(request: Request, job: int) -> HttpResponse:
    """`GET` says what would be deleted, `POST` does it."""
    found = ImportJob.objects.select_related("by").filter(pk=job).first()
    if found is None:
        raise Http404
    problem = ""
    if request.method == "POST":
        try:
            deletion = delete_import(tenant=request.tenant, by=request.user, job=found)
        except Refused as refused:
            problem = str(refused)
        else:
            if deletion.status != Status.DONE:
                return redirect("chats:import_job", request.tenant.slug, job)
            sentence = ngettext(
                "The import is deleted, with its file and one chat.",
                "The import is deleted, with its file and %(n)s chats.",
                deletion.chats,
            )
            messages.success(request, sentence % {"n": deletion.chats})
            return redirect("chats:import", request.tenant.slug)
    contents = contents_of(found)
    context = {
        "job": found,
        "contents": contents,
        "by_worker": len(contents.chats) + contents.cut + contents.kept > retention.AT_ONCE,
        "corpora": corpora_with(contents.versions),
        "problem": problem,
    }
    return page(request, "chats/delete_import.html", context, status=409 if problem else 200)


@admin
@require_http_methods(["GET", "HEAD", "POST"])
def delete_chat_page(request: Request, chat: int) -> HttpResponse:
    """`GET` says what would be deleted, `POST` does it."""
    found = Chat.objects.filter(pk=chat).first()
    if found is None:
        raise Http404
    problem = ""
    if request.method == "POST":
        try:
            delete_chat(tenant=request.tenant, by=request.user, chat=found)
        except Refused as refused:
            problem = str(refused)
        else:
            messages.success(request, _("The chat is deleted."))
            return redirect("chats:list", request.tenant.slug)
    versions = frozenset(found.versions.values_list("pk", flat=True))
    context = {
        "chat": found,
        "uploads": uploads_of(versions),
        "corpora": corpora_with(versions),
        "problem": problem,
    }
    return page(request, "chats/delete_chat.html", context, status=409 if problem else 200)


@admin
@require_http_methods(["GET", "HEAD", "POST"])
def retention_page(request: Request) -> HttpResponse:
    """Days that chats are kept. A number that deletes stored chats is asked about once more, with how many go."""
    form = RetentionForm(posted(request), initial={"days": request.tenant.keep_chats_days})
    asked: dict[str, object] = {}
    if request.method == "POST" and form.is_valid():
        days = form.cleaned_data["days"]
        count = older_than(limit_of(days)).count() if days else 0
        if not count or request.POST.get("confirmed") == str(days):
            keep_chats_for(tenant=request.tenant, by=request.user, days=days)
            messages.success(request, _("Saved."))
            return redirect("chats:retention", request.tenant.slug)
        asked = {"asked": days, "count": count}
    kept = request.tenant.keep_chats_days
    context = {
        "form": form,
        "kept": kept,
        "waiting": older_than(limit_of(kept, timezone.now())).count() if kept else 0,
        **asked,
    }
    return page(request, "chats/retention.html", context, status=422 if form.errors else 200)
