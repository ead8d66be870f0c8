"""Uploading conversations, and watching the import."""

from __future__ import annotations

import json

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from chats.domain.formats.text_protocols import PROTOCOLS
from chats.forms import ImportForm
from chats.models import ImportDeletion, ImportJob
from chats.problem_sentences import sections_of
from chats.queries.chats import imports
from chats.services.importing import import_checked, start_import, try_again
from eleanor_site import limits
from eleanor_site.access import author, viewer
from eleanor_site.errors import too_many
from eleanor_site.jobs import Status
from eleanor_site.problems import Refused
from eleanor_site.web import Request, page, posted, posted_files, wants_part

SHOWN = 20


@author
@require_http_methods(["GET", "HEAD", "POST"])
def import_page(request: Request) -> HttpResponse:
    form = ImportForm(posted(request), posted_files(request))
    if request.method == "POST" and form.is_valid():
        wait = limits.take(limits.IMPORTS, request.tenant.slug)
        if wait:
            return too_many(request, wait)
        job = start_import(
            tenant=request.tenant,
            by=request.user,
            file=form.cleaned_data["file"],
            name=form.cleaned_data["file"].name,
            chosen_format=form.cleaned_data["format"],
            options={
                "all_branches": form.cleaned_data["all_branches"],
                "text_protocol": form.cleaned_data["text_protocol"],
                "encoding": form.cleaned_data["encoding"],
                "check_only": "check" in request.POST,
            },
        )
        return redirect("chats:import_job", request.tenant.slug, job.pk)
    context = {"form": form, "jobs": imports()[:SHOWN]}
    return page(request, "chats/import.html", context, status=422 if form.errors else 200)


@viewer
@require_safe
def import_job(request: Request, job: int) -> HttpResponse:
    """Progress while it runs, the report when it is done, and what became of it. HTMX polls the same address."""
    deletion = ImportDeletion.objects.select_related("by").filter(number=job).first()
    if deletion is not None and deletion.status == Status.DONE:
        answer = page(request, "chats/import_deleted.html", {"deletion": deletion}, part="progress")
        answer.status_code = 286 if wants_part(request) else 200
        return answer
    found = _job(job)
    deleting = deletion is not None and deletion.status != Status.FAILED
    running = deleting or found.status in (Status.QUEUED, Status.RUNNING)
    report = json.loads(found.report)
    context = {
        "job": found,
        "deletion": deletion,
        "running": running,
        "sections": sections_of(report),
        "protocol": PROTOCOLS.get(report.get("offered_protocol") or ""),
    }
    answer = page(request, "chats/import_job.html", context, part="progress")
    if wants_part(request) and not running:
        answer.status_code = 286
    return answer


@author
@require_POST
def retry_import(request: Request, job: int) -> HttpResponse:
    """Import what was only checked, or try again what failed."""
    found = _job(job)
    protocol = request.POST.get("text_protocol", "")
    try:
        if found.check_only:
            known = protocol if protocol in PROTOCOLS else ""
            import_checked(tenant=request.tenant, job=found, by=request.user, text_protocol=known)
        else:
            try_again(tenant=request.tenant, job=found, by=request.user)
    except Refused as refused:
        messages.error(request, str(refused))
    return redirect("chats:import_job", request.tenant.slug, job)


def _job(pk: int) -> ImportJob:
    found = ImportJob.objects.select_related("by").filter(pk=pk).first()
    if found is None:
        raise Http404
    return found
