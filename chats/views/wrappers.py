"""Wrappers: the list, a new one, one wrapper's page, and which wrapper suits a model."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from chats.domain.chat_templates.files import TemplateFileError
from chats.domain.recipes import recipe_to_texts
from chats.queries.previews import chosen_chat, preview
from chats.queries.resolving import which_wrapper
from chats.queries.wrapper_lint import lint_states
from chats.queries.wrappers import (
    DEFAULT_BUILT_IN,
    WrapperRow,
    built_in_choice,
    built_ins,
    choice_of,
    versions_of,
    wrapper_row,
    wrapper_rows,
)
from chats.services import wrappers as services
from chats.wrapper_forms.new import NewWrapperForm, WhichForm
from chats.wrapper_forms.shown import change_rows, group_views
from chats.wrapper_forms.state import state_of
from chats.wrapper_sentences import file_sentence, remark_sentence
from eleanor_site.access import author, viewer
from eleanor_site.errors import too_many
from eleanor_site.limits import PREVIEWS, take
from eleanor_site.problems import Refused
from eleanor_site.web import Request, page, posted, posted_files


@viewer
@require_safe
def wrapper_list(request: Request) -> HttpResponse:
    """The tenant's own wrappers, then the built-ins, which are there without copying."""
    archived = request.GET.get("state") == "archived"
    rows = wrapper_rows(archived=archived)
    states = lint_states(rows)
    shown = [{"row": row, "lint": states[row.wrapper.pk]} for row in rows]
    context = {"rows": shown, "archived": archived, "built_ins": built_ins()}
    return page(request, "chats/wrappers.html", context)


@author
@require_http_methods(["GET", "HEAD", "POST"])
def new_wrapper(request: Request) -> HttpResponse:
    """From a built-in, a pasted or uploaded template, or another wrapper (`?from=KEY`)."""
    form = NewWrapperForm(posted(request), posted_files(request), initial=_initial(request))
    if request.method == "POST" and form.is_valid():
        try:
            recipe, remarks = form.recipe()
            wrapper = services.create_wrapper(
                tenant=request.tenant,
                by=request.user,
                name=form.cleaned_data["name"],
                slug=form.cleaned_data["slug"] or services.slug_for(form.cleaned_data["name"]),
                content={**recipe_to_texts(recipe), "model_name": form.cleaned_data["model_name"]},
            )
        except TemplateFileError as error:
            form.add_error("file" if form.cleaned_data.get("file") else "template", file_sentence(error))
        except Refused as refused:
            form.add_error("slug", str(refused))
        else:
            for remark in remarks:
                messages.warning(request, remark_sentence(remark))
            messages.success(request, _("The wrapper %(name)s is saved as a draft.") % {"name": wrapper.name})
            return redirect("chats:edit_wrapper", request.tenant.slug, wrapper.slug)
    return page(request, "chats/wrapper_new.html", {"form": form}, status=422 if form.errors else 200)


def _initial(request: Request) -> dict[str, Any]:
    return {"source": request.GET.get("from", "") or DEFAULT_BUILT_IN, "name": request.GET.get("name", "")[:120]}


@viewer
@require_safe
def wrapper_page(request: Request, slug: str) -> HttpResponse:
    """What holds: settings or template, differences to the base, the prompt, versions. Built-ins have a page, too."""
    built_in = built_in_choice(slug)
    if built_in is not None:
        chosen, row = built_in, None
    else:
        row = _row(slug)
        chosen = choice_of(row.wrapper, row.content)
    chat = chosen_chat(request.GET.get("chat", ""), request.GET.get("turn", ""))
    state = state_of(chosen.recipe)
    context: dict[str, Any] = {
        "row": row,
        "chosen": chosen,
        "chat": chat,
        "preview": preview(chat.record, chosen.recipe, chat.upto),
        "changes": change_rows(chosen.recipe),
        "groups": [] if chosen.recipe.is_template else group_views(state),
        "versions": versions_of(row.wrapper) if row else [],
    }
    return page(request, "chats/wrapper.html", context)


@author
@require_POST
def archive_wrapper(request: Request, slug: str) -> HttpResponse:
    """Put away or bring back."""
    wrapper = _row(slug).wrapper
    if "restore" in request.POST:
        services.restore_wrapper(tenant=request.tenant, wrapper=wrapper, by=request.user)
        messages.success(request, _("%(name)s is back.") % {"name": wrapper.name})
    else:
        services.archive_wrapper(tenant=request.tenant, wrapper=wrapper, by=request.user)
        messages.success(request, _("%(name)s is archived.") % {"name": wrapper.name})
    return redirect("chats:wrappers", request.tenant.slug)


@author
@require_POST
def discard_wrapper_draft(request: Request, slug: str) -> HttpResponse:
    wrapper = _row(slug).wrapper
    name = wrapper.name
    gone = services.discard_wrapper_draft(tenant=request.tenant, wrapper=wrapper, by=request.user)
    messages.success(request, _("The draft of %(name)s is discarded.") % {"name": name})
    return (
        redirect("chats:wrappers", request.tenant.slug)
        if gone
        else redirect("chats:wrapper", request.tenant.slug, slug)
    )


@viewer
@require_http_methods(["GET", "HEAD", "POST"])
def which(request: Request) -> HttpResponse:
    """Which wrapper suits a model. Short things may stand in the address; a template is posted."""
    form = (
        WhichForm(request.POST or None, request.FILES or None)
        if request.method == "POST"
        else WhichForm(request.GET if {"file_name", "architecture"} & set(request.GET) else None)
    )
    context: dict[str, Any] = {"form": form}
    if form.is_bound and form.is_valid():
        wait = take(PREVIEWS, f"{request.user.pk}") if form.cleaned_data.get("template") else 0
        if wait:
            return too_many(request, wait)
        try:
            context["answer"] = which_wrapper(**form.facts())
        except TemplateFileError as error:
            form.add_error("file", file_sentence(error))
    status = 422 if form.is_bound and form.errors else 200
    return page(request, "chats/wrapper_which.html", context, part="answer", status=status)


def _row(slug: str) -> WrapperRow:
    row = wrapper_row(slug)
    if row is None:
        raise Http404
    return row
