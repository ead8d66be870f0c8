"""Scheduled replays: the list, a new one, one with its runs, and the buttons beside it."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from eleanor_site.access import author, viewer
from eleanor_site.numbers import whole_number
from eleanor_site.problems import Refused
from eleanor_site.web import Request, page, posted
from rules.forms.schedules import ScheduleForm
from rules.models import ReplaySchedule, ScheduledRun
from rules.queries import schedules as queries
from rules.queries.segments import Scope
from rules.services import schedules as services

_MOST = 10**17 - 1


@viewer
@require_safe
def schedule_list(request: Request) -> HttpResponse:
    return page(request, "rules/schedules.html", {"rows": queries.schedule_rows()})


@author
@require_http_methods(["GET", "HEAD", "POST"])
def new_schedule(request: Request) -> HttpResponse:
    """`?replay=` chooses the replay to run again."""
    form = ScheduleForm(posted(request), initial={"replay": request.GET.get("replay", "")})
    if request.method == "GET" and form["replay"].initial in form.replays:
        form.initial["name"] = str(form.replays[form["replay"].initial])
    if request.method == "POST" and form.is_valid():
        try:
            made = services.add_schedule(tenant=request.tenant, by=request.user, **form.chosen())
            return redirect("rules:schedule", request.tenant.slug, made.pk)
        except Refused as refused:
            form.add_error(None, str(refused))
    return page(request, "rules/new_schedule.html", {"form": form}, status=422 if form.errors else 200)


@viewer
@require_safe
def schedule_page(request: Request, schedule: int) -> HttpResponse:
    found = _schedule(schedule)
    context = {"schedule": found, "scope": Scope.parse(found.scope).name(), "runs": queries.runs_of(found)}
    return page(request, "rules/schedule.html", context)


@author
@require_POST
def schedule_action(request: Request, schedule: int) -> HttpResponse:
    """`action` is pause, resume, remove, or baseline with the number of a `run`."""
    found = _schedule(schedule)
    tenant, by = request.tenant, request.user
    match request.POST.get("action", ""):
        case "pause":
            services.switch_schedule(tenant=tenant, schedule=found, by=by, on=False)
        case "resume":
            services.switch_schedule(tenant=tenant, schedule=found, by=by, on=True)
        case "remove":
            services.remove_schedule(tenant=tenant, schedule=found, by=by)
            messages.success(request, _("The schedule is removed. The replays that it started stay."))
            return redirect("rules:schedules", tenant.slug)
        case "baseline":
            number = whole_number(request.POST.get("run", ""), otherwise=0, most=_MOST)
            run = ScheduledRun.objects.filter(pk=number, schedule=found).select_related("replay").first()
            if run is None:
                raise Http404
            services.take_as_baseline(tenant=tenant, run=run, by=by)
            messages.success(request, _("Runs are compared with this replay from now on."))
    return redirect("rules:schedule", tenant.slug, found.pk)


def _schedule(pk: int) -> ReplaySchedule:
    found = queries.schedule(pk)
    if found is None:
        raise Http404
    return found
