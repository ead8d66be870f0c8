"""The history of nudges: those that histories and live runtimes hold, those that replays find, apart and together."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from eleanor_site import downloads
from eleanor_site.access import viewer
from eleanor_site.web import Request, page, wants_part
from rules.models import Replay
from rules.queries import nudge_statistics as statistics
from rules.queries import nudges as queries
from rules.queries import replay_history as history
from rules.queries.nudges import GROUPS, NudgeFilter, filter_of
from rules.queries.replay_aftermath import aftermath_report, counting, is_being_told, is_told
from rules.queries.reviews import quality_by_code
from rules.services.aftermaths import prepare_aftermath

# Whose nudges: recorded ones (the default), those that rules would fire in a replay, or both at each point.
SETS = ("recorded", "replay", "both")


@viewer
@require_safe
def nudge_list(request: Request) -> HttpResponse:
    """Chart, groups and the list, with filters in the URL; pages by key."""
    given = request.GET
    wanted, shown = filter_of(given), _one_of(given.get("set", ""), SETS)
    by, after = _one_of(given.get("group", ""), GROUPS), given.get("after", "")
    replay = _replay(request) if shown != "recorded" else None
    context: dict[str, Any] = {
        "wanted": wanted,
        "set": shown,
        "sets": _sets(request, shown),
        "by": by,
        "replay": replay,
        "filtered": not wanted.is_empty,
        "query": queries.filter_query(wanted),
    }
    if after:
        context |= _rows(replay, wanted, shown, after)
        return page(request, "rules/nudges.html", context, part="rows")
    context |= (
        _rows(replay, wanted, shown, "") | _numbers(request, replay, wanted, shown, by) | _choices(request, shown)
    )
    answer = page(request, "rules/nudges.html", context, part="results")
    # While choosing, the address keeps only what differs from the defaults.
    answer["HX-Replace-Url"] = _address(request, wanted, shown, by)
    return answer


def _address(request: Request, wanted: NudgeFilter, shown: str, by: str) -> str:
    query = QueryDict(queries.filter_query(wanted), mutable=True)
    if shown != SETS[0]:
        query["set"] = shown
        if request.GET.get("replay"):
            query["replay"] = request.GET["replay"]
    if by != GROUPS[0]:
        query["group"] = by
    return f"{request.path}?{query.urlencode()}".removesuffix("?")


def _rows(replay: Replay | None, wanted: NudgeFilter, shown: str, after: str) -> dict[str, Any]:
    if shown == "recorded":
        rows, next_after = queries.nudge_page(wanted, after)
        return {"rows": rows, "next_after": next_after}
    if replay is None:
        return {"findings": [], "next_after": ""}
    found, next_after = history.replay_page(replay, wanted, fired_only=shown == "replay", after=after)
    removed = history.removed_findings(replay, wanted, fired_only=shown == "replay")
    return {"findings": found, "next_after": next_after, "removed": removed}


def _numbers(request: Request, replay: Replay | None, wanted: NudgeFilter, shown: str, by: str) -> dict[str, Any]:
    if shown == "recorded":
        return {
            "chart": statistics.history_chart(request.tenant, wanted),
            "undated": statistics.undated(wanted),
            "groups": statistics.groups(wanted, by),
            "total": queries.total(queries.day_cells(wanted)),
        }
    if replay is None:
        return {}
    chosen = history.chosen_cells(replay, wanted, fired_only=shown == "replay")
    return {
        "chart": history.replay_chart(request.tenant, chosen, wanted),
        "undated": sum(n for cell, n in chosen.items() if cell.day is None),
        "groups": history.replay_groups(chosen, by),
        "total": chosen.total(),
    }


def _choices(request: Request, shown: str) -> dict[str, Any]:
    return {
        "codes": queries.codes(),
        "models": queries.models(),
        "replays": history.finished_replays() if shown != "recorded" else [],
        "groupings": [
            {"key": "rule", "label": _("Rule")},
            {"key": "version", "label": _("Version")},
            {"key": "model", "label": _("Model")},
            {"key": "language", "label": _("Language")},
            {"key": "verdict", "label": _("Verdict") if shown == "recorded" else _("Status")},
        ],
    }


@viewer
@require_http_methods(["GET", "HEAD", "POST"])
def nudge_statistics(request: Request) -> HttpResponse:
    """For each rule and model: how often, what came of it, and what came after firings of a replay.

    A replay that doesn't tell what came after is counted on POST, with its progress here.
    """
    wanted = filter_of(request.GET)
    replay = _replay(request)
    if request.method == "POST":
        if replay is not None:
            prepare_aftermath(tenant=request.tenant, replay=replay)
        return redirect(f"{request.get_full_path()}#aftermath")
    context: dict[str, Any] = {
        "wanted": wanted,
        "query": queries.filter_query(wanted),
        "sets": _sets(request, "statistics"),
        "replay": replay,
        "replays": history.finished_replays(),
        "models": queries.models(),
    }
    if replay is not None:
        context |= _aftermath(replay, wanted)
    if not wants_part(request):
        context["rows"] = statistics.rules_and_models(wanted)
    answer = page(request, "rules/nudge_statistics.html", context, part="came_after")
    if wants_part(request) and "counting" not in context:
        answer.status_code = 286  # nothing changes from here on
    return answer


def _aftermath(replay: Replay, wanted: NudgeFilter) -> dict[str, Any]:
    if is_told(replay):
        report = aftermath_report(replay, wanted.model, wanted.language)
        judged = quality_by_code()
        samples = [{"code": code, "fires": fires, "quality": judged.get(code)} for code, fires in report.fires.items()]
        return {"report": report, "samples": samples}
    if is_being_told(replay):
        return {"counting": counting(replay)}
    return {}


@viewer
@require_safe
def nudge_export(request: Request) -> HttpResponseBase:
    """The recorded nudges that the filters leave, as CSV or JSON Lines, streamed, with a trailer."""
    rows = queries.export_rows(filter_of(request.GET))
    return downloads.table(request, "nudges", queries.EXPORT_COLUMNS, rows)


def _replay(request: Request) -> Replay | None:
    given = request.GET.get("replay", "")
    found = history.chosen_replay(given)
    if found is None and given:
        raise Http404
    return found


def _one_of(text: str, known: tuple[str, ...]) -> str:
    return text if text in known else known[0]


def _sets(request: Request, current: str) -> list[dict[str, Any]]:
    labels = {
        "recorded": _("Recorded"),
        "replay": _("Would fire in a replay"),
        "both": _("Both, point by point"),
    }
    return [{"key": key, "label": label, "current": key == current} for key, label in labels.items()]
