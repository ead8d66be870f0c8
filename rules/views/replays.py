"""Replays: start one, watch it, read its report, compare two, take it elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase, JsonResponse, StreamingHttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from eleanor_site import limits
from eleanor_site.access import author, viewer
from eleanor_site.errors import too_many
from eleanor_site.exports import csv_lines, json_lines
from eleanor_site.health import broker_answers
from eleanor_site.problems import Refused
from eleanor_site.web import Request, page, posted, wants_part
from rules.domain.results import STATUSES
from rules.forms.replays import ReplayForm
from rules.models import Replay
from rules.queries import replay_exports as exports
from rules.queries import replays as queries
from rules.queries.segments import Scope
from rules.services import replays as services

_LONGEST_LANGUAGE = 5
_ALL = gettext_lazy("All")
_FACETS: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "status": (
        "status",
        gettext_lazy("Status"),
        {
            "": _ALL,
            "reproduced": gettext_lazy("Reproduced"),
            "different": gettext_lazy("Different"),
            "new": gettext_lazy("New"),
            "recorded_only": gettext_lazy("Recorded only"),
        },
    ),
    "delta": (
        "delta",
        gettext_lazy("Against the other set"),
        {
            "": _ALL,
            "newly": gettext_lazy("Fires newly"),
            "gone": gettext_lazy("No longer fires"),
            "same": gettext_lazy("Fires as before"),
        },
    ),
    "language": (
        "lang",
        gettext_lazy("Language"),
        {"": _ALL, "en": gettext_lazy("English"), "fr": gettext_lazy("French"), "none": gettext_lazy("Unknown")},
    ),
    "verdict": (
        "verdict",
        gettext_lazy("Verdict"),
        {
            "": _ALL,
            "right": gettext_lazy("right"),
            "wrong": gettext_lazy("wrong"),
            "unsure": gettext_lazy("unsure"),
            "missed": gettext_lazy("missed"),
            "none": gettext_lazy("not judged"),
        },
    ),
}
RUNNING = (Replay.Status.QUEUED, Replay.Status.RUNNING)


@viewer
@require_safe
def replay_list(request: Request) -> HttpResponse:
    after = request.GET.get("after", "")
    found = queries.replays().defer("manifest", "counts", "compared_with")
    if after.isdecimal() and len(after) < 18:
        found = found.filter(pk__lt=int(after))
    rows = list(found[: queries.PAGE + 1])
    next_after = rows[queries.PAGE - 1].pk if len(rows) > queries.PAGE else None
    context = {"rows": rows[: queries.PAGE], "next_after": next_after}
    return page(request, "rules/replays.html", context, part="rows")


@author
@require_http_methods(["GET", "HEAD", "POST"])
def new_replay(request: Request) -> HttpResponse:
    """Choose chats and rules, see what it would take, and start."""
    form = ReplayForm(request.tenant, posted(request), initial=_initial(request))
    if request.method == "POST" and form.is_valid():
        wait = limits.take(limits.REPLAYS, request.tenant.slug)
        if wait:
            return too_many(request, wait)
        try:
            replay = services.start_replay(
                tenant=request.tenant,
                by=request.user,
                scope=form.chosen_scope(),
                rules=form.chosen_rules(),
                compared=form.chosen_comparison(),
                defaults=form.chosen_defaults(),
                title=form.cleaned_data["title"].strip(),
            )
            return redirect("rules:replay", request.tenant.slug, replay.pk)
        except Refused as refused:
            form.add_error(None, str(refused))
    context = {"form": form, "estimate": queries.estimate(request.tenant, form.chosen_scope())}
    status = 422 if request.method == "POST" else 200
    return page(request, "rules/new_replay.html", context, part="estimate", status=status)


def _initial(request: Request) -> dict[str, str]:
    """What an address may choose: `?scope=search:3`, `?scope=time&since=`, `?import=7`, `?rules=drafts`."""
    given = request.GET
    scope = given.get("scope", "")
    if not scope and given.get("import", ""):
        scope = f"import:{given['import']}"
    days = {key: given.get(key, "") for key in ("since", "until")}
    return {"scope": scope, **days, "rules": "drafts" if given.get("drafts") else given.get("rules", "")}


@viewer
@require_safe
def replay_page(request: Request, replay: int) -> HttpResponse:
    """Progress and the report. HTMX polls this address, and asks for findings here: for more, and when all is done."""
    found = _replay(replay)
    running = found.status in RUNNING
    wanted = _filter(request)
    part = "items" if "after" in request.GET else "findings" if request.htmx.target == "findings" else "progress"
    polled = wants_part(request) and part == "progress"
    broker_missing = found.status == Replay.Status.QUEUED and not broker_answers()
    state = f"{found.status}-{found.chunks_done}-{int(broker_missing)}"
    if polled and running and request.GET.get("seen") == state:
        return HttpResponse(status=204)
    context: dict[str, Any] = {"replay": found, "running": running, "wanted": wanted, "state": state}
    if not polled:
        items, next_after = queries.finding_page(found, wanted, after=request.GET.get("after", ""))
        context |= {"items": items, "next_after": next_after, "removed": queries.removed_findings(found, wanted)}
    if part != "items" or not wants_part(request):
        rows, other_codes = queries.rule_rows(found)
        facets, languages = queries.breakdown(found, None if polled else wanted)
        context |= {
            "progress": queries.progress(found),
            "rows": rows,
            "languages": languages,
            "facets": _facets(request, facets),
            "other_codes": other_codes,
            "gone_rules": queries.gone_rules(found),
            "compared": queries.compared(found),
            "nothing_done": found.status != Replay.Status.DONE and not found.chunks_done,
            "unknown_columns": range(12 if found.compared_with else 10),
            "failed": queries.failed_chunks(found),
            "broker_missing": broker_missing,
        }
    if not wants_part(request):
        scope = json.loads(found.scope)
        context |= {
            "scope": scope,
            "scope_name": _name_of(scope),
            "same": queries.same_inputs(found),
            "others": queries.others_to_compare(found),
            "facts": queries.input_facts(found),
        }
    answer = page(request, "rules/replay.html", context, part=part)
    if polled and not running:
        answer.status_code = 286
        answer["HX-Trigger"] = "replay-over"
    return answer


def _name_of(scope: dict[str, Any]) -> str:
    """The days of a scope that is a time; the template names the others."""
    named = Scope.read(scope) if scope.get("kind") == "time" else None
    return named.name() if named else ""


def _filter(request: Request) -> queries.FindingFilter:
    """The findings that an address means; what it can't mean is left out."""
    given = request.GET

    def one_of(key: str, known: Sequence[str]) -> str:
        return given[key] if given.get(key) in known else ""

    language = given.get("lang", "").replace("\x00", "")
    return queries.FindingFilter(
        code=given.get("rule", "").replace("\x00", ""),
        status=one_of("status", STATUSES),
        # Addresses used to name a change as a status.
        delta=one_of("delta", queries.DELTAS) or one_of("status", queries.DELTAS),
        language=language if len(language) <= _LONGEST_LANGUAGE else "",
        verdict=one_of("verdict", queries.VERDICTS),
    )


def _facets(request: Request, found: Sequence[queries.Facet]) -> list[dict[str, Any]]:
    """The filters as links with their counts; choices that nothing is left of are left out, and so are lone ones."""
    shown = []
    for facet in found:
        key, label, names = _FACETS[facet.name]
        current = request.GET.get(key, "") if request.GET.get(key, "") in facet.counts else ""
        choices = []
        for value, count in facet.counts.items():
            if not count and value not in ("", current):
                continue
            query = request.GET.copy()
            for gone in ("after", key):
                query.pop(gone, None)
            if value:
                query[key] = value
            choices.append(
                {
                    "label": names.get(value, value),
                    "count": count,
                    "url": f"{request.path}?{query.urlencode()}#findings" if query else f"{request.path}#findings",
                    "current": value == current,
                }
            )
        is_choice = len(choices) > 2 or current or (facet.name == "language" and len(choices) > 1)
        if is_choice:
            shown.append({"key": key, "label": label, "choices": choices})
    return shown


@viewer
@require_safe
def compare_replays(request: Request) -> HttpResponse:
    """`?a=&b=`: inputs that differ first, then each rule, then the points. `anyway=1` lines up unequal corpora."""
    a, b = _named(request, "a"), _named(request, "b")
    anyway = request.GET.get("anyway") == "1"
    context: dict[str, Any] = {"a": a, "b": b, "choices": queries.finished(), "anyway": anyway}
    if a is not None and b is not None:
        found = queries.comparison(a, b, anyway=anyway)
        context["found"] = found
        code = request.GET.get("rule", "")
        if found.lined_up:
            rows, next_after = queries.changed_points(a, b, code=code, after=request.GET.get("after", ""))
            context |= {"rows": rows, "next_after": next_after, "code": code}
    return page(request, "rules/compare.html", context, part="rows" if "after" in request.GET else None)


@viewer
@require_safe
def export_replay(request: Request, replay: int) -> HttpResponseBase:
    """`?format=csv` or `?format=jsonl`, with the filters of the page; streamed, with a trailer."""
    found = _replay(replay)
    rows = exports.rows(request.tenant, found, _filter(request))
    kind = "jsonl" if request.GET.get("format") == "jsonl" else "csv"
    lines: Iterator[bytes] = (
        json_lines(row.as_json() for row in rows)
        if kind == "jsonl"
        else csv_lines(exports.HEADER, (row.as_cells() for row in rows))
    )
    answer = StreamingHttpResponse(
        lines, content_type="application/x-ndjson" if kind == "jsonl" else "text/csv; charset=utf-8"
    )
    answer["Content-Disposition"] = f'attachment; filename="replay-{found.pk}.{kind}"'
    return answer


@viewer
@require_safe
def replay_manifest(request: Request, replay: int) -> HttpResponse:
    """All that is needed to run it again, here or elsewhere: `manage.py replay MANIFEST --tenant SLUG`."""
    found = _replay(replay)
    answer = JsonResponse(exports.manifest_document(found), json_dumps_params={"ensure_ascii": False, "indent": 1})
    answer["Content-Disposition"] = f'attachment; filename="replay-{found.pk}.manifest.json"'
    return answer


@author
@require_POST
def stop_replay(request: Request, replay: int) -> HttpResponse:
    services.stop_replay(tenant=request.tenant, replay=_replay(replay), by=request.user)
    messages.info(request, _("Stopped. What is done stays; you can resume the rest."))
    return redirect("rules:replay", request.tenant.slug, replay)


@author
@require_POST
def resume_replay(request: Request, replay: int) -> HttpResponse:
    services.resume_replay(tenant=request.tenant, replay=_replay(replay), by=request.user)
    return redirect("rules:replay", request.tenant.slug, replay)


@author
@require_POST
def set_baseline(request: Request, replay: int) -> HttpResponse:
    services.make_baseline(tenant=request.tenant, replay=_replay(replay), by=request.user, on="off" not in request.POST)
    return redirect("rules:replay", request.tenant.slug, replay)


def _replay(pk: int) -> Replay:
    replay = Replay.objects.select_related("by").filter(pk=pk).first()
    if replay is None:
        raise Http404
    return replay


def _named(request: Request, name: str) -> Replay | None:
    """The replay that a parameter names; 404 for one that isn't there."""
    given = request.GET.get(name, "")
    if not given:
        return None
    if not given.isascii() or not given.isdecimal() or len(given) > 17:
        raise Http404
    return _replay(int(given))
