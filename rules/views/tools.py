"""The tool catalogue: the tenant's own entries, then the built-in ones."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from eleanor_site.access import author, viewer
from eleanor_site.web import Request, page
from rules.domain.tools import BUILT_IN_ENTRIES
from rules.forms import ToolEntryForm
from rules.models import ToolEntry
from rules.services import tools as services


@viewer
@require_safe
def tool_page(request: Request) -> HttpResponse:
    return _page(request, ToolEntryForm())


def _page(request: Request, form: ToolEntryForm, status: int = 200) -> HttpResponse:
    context = {"entries": ToolEntry.objects.order_by("position"), "built_in": BUILT_IN_ENTRIES, "form": form}
    return page(request, "rules/tools.html", context, status=status)


@author
@require_POST
def save_tool(request: Request) -> HttpResponse:
    """Add an entry, or remove or move the one that `entry` names."""
    given = request.POST.get("entry", "")
    entry = ToolEntry.objects.filter(pk=given).first() if given.isdigit() and len(given) < 18 else None
    if entry is not None:
        if "remove" in request.POST:
            services.remove_entry(tenant=request.tenant, entry=entry, by=request.user)
        else:
            step = -1 if "up" in request.POST else 1
            services.move_entry(tenant=request.tenant, entry=entry, step=step, by=request.user)
        return redirect("rules:tools", request.tenant.slug)
    form = ToolEntryForm(request.POST)
    if not form.is_valid():
        return _page(request, form, status=422)
    services.add_entry(tenant=request.tenant, values=form.cleaned_data, by=request.user)
    messages.success(request, _("Entry added. Replays that start from now on use it."))
    return redirect("rules:tools", request.tenant.slug)
