"""The tool catalogue: the tenant's own entries, then the built-in ones; what each takes, and what a change would do."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from eleanor_site.access import author, viewer
from eleanor_site.web import Request, page, wants_part
from rules.domain.manifest import CatalogueEntry
from rules.domain.tools import BUILT_IN_ENTRIES
from rules.forms.tools import CatalogueEntryForm
from rules.models import ToolEntry
from rules.queries.manifests import catalogue_entries
from rules.queries.tools import catalogue_use, tool_effect
from rules.services import tools as services

STEPS = {"up": -1, "down": 1}


@viewer
@require_safe
def tool_page(request: Request) -> HttpResponse:
    """`?edit=ID` puts an entry into the form."""
    edited = _entry(request.GET.get("edit", ""))
    return _page(request, CatalogueEntryForm(instance=edited), edited)


def _page(request: Request, form: CatalogueEntryForm, edited: ToolEntry | None, status: int = 200) -> HttpResponse:
    use = catalogue_use(request.tenant, catalogue_entries())
    rows = list(ToolEntry.objects.order_by("position"))
    context = {
        "entries": list(zip(rows, use.own, strict=True)),
        "built_in": list(zip(BUILT_IN_ENTRIES, use.built_in, strict=True)),
        "unknown": use.unknown,
        "form": form,
        "edited": edited,
    }
    return page(request, "rules/tools.html", context, status=status)


@author
@require_safe
def try_tool(request: Request) -> HttpResponse:
    """The effect of a change before it is made: `?entry=ID&remove|up|down=1`, or the fields of a new or edited entry.

    HTMX asks again until the numbers are exact.
    """
    given = request.GET
    row = _entry(given.get("entry", ""))
    action = next((name for name in ("remove", *STEPS) if name in given), "change" if row else "add")
    if row is None and action not in ("add", "change"):
        raise Http404
    form = CatalogueEntryForm(given, instance=row) if action in ("add", "change") else None
    if form is not None and not form.is_valid():
        return _page(request, form, row, status=422)
    after = _changed(action, row, form.entry() if form is not None else None)
    found = tool_effect(request.tenant, after)
    context: dict[str, Any] = {"action": action, "entry": row, "form": form, "effect": found}
    answer = page(request, "rules/tool_change.html", context, part="effect")
    if wants_part(request) and found.exact:
        answer.status_code = 286
    return answer


def _changed(action: str, row: ToolEntry | None, entry: CatalogueEntry | None) -> list[CatalogueEntry]:
    """The catalogue after the change."""
    entries = catalogue_entries()
    if row is None:
        assert entry is not None
        return [*entries, entry]
    at = list(ToolEntry.objects.order_by("position").values_list("pk", flat=True)).index(row.pk)
    if action == "change":
        assert entry is not None
        entries[at] = entry
    elif action == "remove":
        del entries[at]
    else:
        moved = entries.pop(at)
        entries.insert(max(0, min(at + STEPS[action], len(entries))), moved)
    return entries


@author
@require_POST
def save_tool(request: Request) -> HttpResponse:
    """Add an entry; or change, remove or move the one that `entry` names."""
    entry = _entry(request.POST.get("entry", ""))
    if entry is not None and "change" not in request.POST:
        if "remove" in request.POST:
            services.remove_entry(tenant=request.tenant, entry=entry, by=request.user)
        else:
            step = STEPS["up"] if "up" in request.POST else STEPS["down"]
            services.move_entry(tenant=request.tenant, entry=entry, step=step, by=request.user)
        messages.success(request, _("Saved. Columns are made anew in the background."))
        return redirect("rules:tools", request.tenant.slug)
    form = CatalogueEntryForm(request.POST, instance=entry)
    if not form.is_valid():
        return _page(request, form, entry, status=422)
    if entry is None:
        services.add_entry(tenant=request.tenant, values=form.cleaned_data, by=request.user)
    else:
        services.change_entry(tenant=request.tenant, entry=entry, values=form.cleaned_data, by=request.user)
    messages.success(request, _("Saved. Columns are made anew in the background."))
    return redirect("rules:tools", request.tenant.slug)


def _entry(given: str) -> ToolEntry | None:
    """The tenant's entry of this number; None for what names none."""
    if not given.isascii() or not given.isdecimal() or len(given) > 17:
        return None
    return ToolEntry.objects.filter(pk=given).first()
