"""What a state of a rule does to the stored points: numbers, sets of points, and why at one of them.

The page is a read-only address of its own, which a colleague can open; the editor shows its parts. Numbers while
typing come by POST of what is typed, everything else by GET of a saved state.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from chats.domain.shown_prompt import Run
from chats.queries.previews import Preview, preview
from chats.queries.wrappers import DEFAULT_BUILT_IN, choice, choice_labels
from eleanor_site.access import author, viewer
from eleanor_site.web import Request, page
from rules.diagnostic_sentences import diagnosed, sentence
from rules.domain.language import check
from rules.domain.rule_set import BrokenRule, RuleSpec
from rules.models import Release, Rule, RuleDraft
from rules.queries import effects
from rules.queries.draft_states import DraftState, state_of, version_state
from rules.queries.points import PointName, PointStory, last_message, point_story
from rules.queries.reviews import verdicts_of_points
from rules.queries.rules import edited_set, live_number, stage_of
from rules.queries.scopes import scope_choices, scope_of
from rules.queries.segments import Scope
from rules.services.effects import prepare

SETS = ("newly", "gone", "same", "fires", "near", "shadowed", "capped")
MATCHES = "matches"
"""A set that the headline opens; among the tabs it stands only while it is open."""
PARTS = ("set", "rows", "why", "preview", "chart")
PROMPT_END = 600
"""How much of a prompt is shown before the nudge, in characters."""
TRIED_CODE = "/"
"""Stands for a rule that has no code yet: no real code holds a slash."""


@dataclass(frozen=True)
class Asked:
    """Which points of which state are asked for, as it stands in the address."""

    code: str
    content: RuleDraft
    state: DraftState | None
    scope: Scope
    set_name: str
    clause: int | None
    after: str
    point: PointName | None
    model: str
    in_editor: bool

    def query(self, **changes: Any) -> str:
        """The query string of this state; what is at its default doesn't appear."""
        values = {
            "draft": (self.state.revision or "") if self.state and not self.state.version else "",
            "version": self.state.version or "" if self.state else "",
            "corpus": "" if self.scope.kind == "all" else self.scope,
            "set": self.set_name,
            "clause": "" if self.clause is None else self.clause,
            "point": self.point or "",
            "model": "" if self.model == DEFAULT_BUILT_IN else self.model,
            **changes,
        }
        return urlencode({name: str(value) for name, value in values.items() if str(value) != ""})


@viewer
@require_http_methods(["GET", "HEAD"])
def rule_effect(request: Request, code: str) -> HttpResponse:
    """`?draft=N&corpus=&set=&clause=&point=&model=&after=`; `part` names what HTMX wants of it."""
    rule = Rule.objects.filter(code=code).first()
    state = None if rule is None else _state(request, rule)
    if rule is None or state is None:
        raise Http404
    asked = _asked(request, code, state)
    specs = edited_set(request.tenant, code, asked.content)
    part = request.GET.get("part", "")
    context = {"rule": rule, "asked": asked, "state": state, "code": code, "links": _links(request, asked)}
    context |= _contents(request, asked, specs, part if part in PARTS and request.htmx else "")
    answer = page(request, "rules/effect.html", context, part=part if part in PARTS else "effect")
    if request.htmx and part in ("set", "why"):
        host = "rules:edit" if asked.in_editor else "rules:effect"
        header = "HX-Replace-Url" if request.GET.get("quiet") else "HX-Push-Url"
        answer[header] = f"{reverse(host, args=[request.tenant.slug, code])}?{asked.query()}"
        answer["HX-Trigger-After-Settle"] = "point-opened"
    return answer


def _state(request: Request, rule: Rule) -> DraftState | None:
    """The state that the address names: `draft=N`, `version=N`, or the present one."""
    version = _number(request.GET.get("version", ""))
    if version is not None:
        return version_state(rule, version)
    return state_of(rule, _number(request.GET.get("draft", "")))


def _asked(request: Request, code: str, state: DraftState) -> Asked:
    given = request.GET
    wanted = given.get("set", "")
    return Asked(
        code=code,
        content=state.content,
        state=state,
        scope=scope_of(given.get("corpus", "")),
        set_name=wanted if wanted in (*SETS, MATCHES) else "",
        clause=_number(given.get("clause", "")),
        after=given.get("after", "")[:60],
        point=PointName.parse(given.get("point", "")),
        model=given.get("model", "")[:120] or DEFAULT_BUILT_IN,
        in_editor=given.get("in") == "edit",
    )


def _contents(request: Request, asked: Asked, specs: list[RuleSpec], part: str) -> dict[str, Any]:
    """What the wanted part shows, or the whole page."""
    checked = check(asked.content.expression, stage=stage_of(asked.content))
    if checked.tree is None or checked.errors:
        return {"mistakes": [sentence(d) for d in checked.errors]}
    if part == "preview":
        return _preview(request, asked, specs, _story(request, asked, specs))
    if part == "chart":
        return _strip(request, asked, specs)
    if part == "why":
        return _why(request, asked, specs)
    answer = effects.effect(request.tenant, specs, asked.code, scope=asked.scope)
    context = _summary(request, asked, answer)
    if part == "rows" or (answer.effect is not None and part in ("", "set")):
        context |= _points(request, asked, specs, answer)
    # Another tab of the same state has the same warnings; `quiet` is asked for when the state is another one.
    if part == "" or (part == "set" and "quiet" in request.GET):
        context["warnings"] = _warnings(request, asked, specs)
    if asked.point is not None and part in ("", "set"):
        context |= _why(request, asked, specs)
    if part == "":
        context |= _strip(request, asked, specs) | {"scopes": scope_choices()}
        if asked.point is not None:
            context |= _preview(request, asked, specs, context.get("story"))
    return context


# --- numbers


@author
@require_POST
def effect_of_typed(request: Request) -> HttpResponse:
    """While somebody types: the problems of the expression, and the numbers of what is typed, saved or not."""
    given = request.POST
    source = given.get("expression", "").replace("\r\n", "\n")
    stage = "round" if given.get("stage") == "round" else "final"
    rule = Rule.objects.filter(code=given.get("rule", "")).first()
    code = rule.code if rule else given.get("code", "").strip() or TRIED_CODE
    context: dict[str, Any] = {"rule": rule, "code": code, **diagnosed(source, stage, rule)}
    context["other_writer"] = _other_writer(request, rule)
    if not context["errors"] and source.strip():
        cap = _number(given.get("max_nudges", ""))
        content = RuleDraft(stage=stage, max_nudges=min(1 if cap is None else cap, 10_000), expression=source)
        specs = edited_set(request.tenant, code, content)
        scope = scope_of(given.get("corpus", ""))
        asked = Asked(code, content, None, scope, given.get("set", ""), None, "", None, "", in_editor=True)
        answer = effects.effect(request.tenant, specs, code, scope=scope)
        context |= _summary(request, asked, answer) | {"links": _links(request, asked)}
    return page(request, "rules/effect_typed.html", context, part="answer")


def _other_writer(request: Request, rule: Rule | None) -> RuleDraft | None:
    """The draft, when somebody else has saved it since this page was loaded."""
    seen = _number(request.POST.get("revision", ""))
    if rule is None or seen is None:
        return None
    newer = RuleDraft.objects.select_related("by").filter(rule=rule, revision__gt=seen).exclude(by=request.user)
    return newer.first()


def _summary(request: Request, asked: Asked, answer: effects.EffectAnswer) -> dict[str, Any]:
    """The headline, the comparison with live, and what there is to say about the corpus."""
    if answer.state == "preparing" or answer.corpus.missing:
        prepare(request.tenant)
    effect = answer.effect
    context: dict[str, Any] = {"answer": answer, "effect": effect, "live": live_number()}
    if effect is None:
        return context | {"again": "1s" if answer.state in ("preparing", "busy") else ""}
    before = answer.before
    links = _links(request, asked)
    numbers: list[dict[str, Any]] = []
    for key in ("fires", "matches", "shadowed", "capped"):
        value = getattr(effect, key)
        change = value - before[key] if before else 0
        numbers.append({"key": key, "value": value, "gained": max(0, change), "lost": max(0, -change)})
        if links["effect"]:
            numbers[-1] |= {"url": f"{links['effect']}?{asked.query(set=key, clause='', point='')}"}
            numbers[-1]["current"] = asked.set_name == key
    numbers[0] |= {"gained": effect.newly if before else 0, "lost": effect.gone if before else 0}
    others = [{"code": code, "gained": max(0, d), "lost": max(0, -d)} for code, d in effect.others]
    return context | {
        "numbers": numbers,
        "others": others,
        "note": _note(answer),
        "approx": not effect.exact,
        "again": "" if effect.exact else "30ms",
    }


def _note(answer: effects.EffectAnswer) -> str:
    """Exact or not, of which chats, as of when, and how long it took."""
    effect, corpus = answer.effect, answer.corpus
    assert effect is not None
    if effect.exact:
        how = _("exact")
    elif effect.low is None:
        how = _("estimate")
    else:
        how = _("estimate, fires between %(low)s and %(high)s") % {"low": effect.low, "high": effect.high}
    when = [date_format(corpus.as_of, "SHORT_DATE_FORMAT")] if corpus.as_of else []
    return " · ".join([how, corpus.name, *when, _("%(n)s ms") % {"n": round(answer.ms)}])


def _warnings(request: Request, asked: Asked, specs: list[RuleSpec]) -> list[dict[str, Any]]:
    found = effects.corpus_warnings(request.tenant, specs, asked.code, scope=asked.scope)
    source = asked.content.expression
    return [{"start": d.start, "end": d.end, "message": sentence(d), "clause": source[d.start : d.end]} for d in found]


# --- sets


def _points(request: Request, asked: Asked, specs: list[RuleSpec], answer: effects.EffectAnswer) -> dict[str, Any]:
    """Tabs with counts, the open set's rows, and the clauses of near misses."""
    name = asked.set_name or _first_set(answer)
    tenant, links = request.tenant, _links(request, asked)
    found = effects.point_page(
        tenant, specs, asked.code, name, scope=asked.scope, clause=asked.clause, after=asked.after
    )
    clauses = effects.near_misses(tenant, specs, asked.code, scope=asked.scope)
    counts: dict[str, int | None] = {key: getattr(answer.effect, key, None) for key in (*SETS, MATCHES)}
    counts["near"] = sum(clause.missed for clause in clauses)
    labels = _set_labels()
    tabs = [
        {
            "key": key,
            "label": labels[key],
            "count": counts[key],
            "current": key == name,
            "url": f"{links['effect']}?{asked.query(set=key, clause='', point='')}",
        }
        for key in (*SETS, *([MATCHES] if name == MATCHES else []))
    ]
    said = verdicts_of_points([row.version.pk for row in found.rows], asked.code)
    rows = [
        {
            "row": row,
            "name": (point := PointName(row.chat.pk, row.version.number, row.message, row.stage)),
            "url": f"{links['effect']}?{asked.query(set=name, point=point)}",
            "current": point == asked.point,
            "verdicts": said.get((row.version.pk, row.message, row.stage), []),
        }
        for row in found.rows
    ]
    following = f"{links['effect']}?{asked.query(set=name, point='', after=found.next_after)}"
    return {
        "tabs": tabs,
        "set_name": name,
        "set_label": labels[name],
        "found": found,
        "rows": rows,
        "more_url": following if found.next_after else "",
        "clauses": [
            {
                "clause": c,
                "current": c.number == asked.clause,
                "url": f"{links['effect']}?{asked.query(set='near', clause=c.number, point='')}",
            }
            for c in sorted(clauses, key=lambda c: -c.missed)
        ]
        if name == "near"
        else [],
        "every_clause_url": f"{links['effect']}?{asked.query(set='near', clause='', point='')}",
    }


def _first_set(answer: effects.EffectAnswer) -> str:
    """What somebody most likely wants to see: what changes, else what fires, else what nearly does."""
    effect = answer.effect
    if effect is None:
        return "fires"
    if answer.before is not None and (effect.newly or effect.gone):
        return "newly" if effect.newly else "gone"
    return "fires" if effect.fires else "near"


def _set_labels() -> dict[str, str]:
    return {
        "newly": _("Newly fires"),
        "gone": _("No longer fires"),
        "same": _("Same as live"),
        "fires": _("Fires"),
        "near": _("Near misses"),
        "shadowed": _("Shadowed"),
        "capped": _("Capped"),
        MATCHES: _("Matches"),
    }


# --- one point


def _story(request: Request, asked: Asked, specs: list[RuleSpec]) -> PointStory | None:
    if asked.point is None:
        return None
    try:
        return point_story(request.tenant, asked.point, specs, asked.code)
    except BrokenRule:
        return None


def _why(request: Request, asked: Asked, specs: list[RuleSpec]) -> dict[str, Any]:
    story = _story(request, asked, specs)
    return {"story": story, "point_gone": asked.point is not None and story is None}


def _preview(request: Request, asked: Asked, specs: list[RuleSpec], story: PointStory | None) -> dict[str, Any]:
    """The end of the point's conversation as the chosen model reads it, with the nudge at its end."""
    context: dict[str, Any] = {"models": choice_labels(), "model": asked.model}
    if story is None:
        return context
    prompt = next(spec.prompt for spec in specs if spec.code == asked.code)
    chosen = choice(asked.model) or choice(DEFAULT_BUILT_IN)
    assert chosen is not None
    upto = last_message(story.record, story.decision.point.message)
    return context | {
        "story": story,
        "nudge": prompt,
        "shown": _end_of(preview(story.record, chosen.recipe, upto, prompt or None)),
        "side_by_side": urlencode({"m": chosen.key, "chat": story.chat.pk, "nudge": asked.code}),
    }


def _end_of(whole: Preview) -> Preview:
    """The last part of a prompt: the nudge, and what a reader needs to see where it stands."""
    left = PROMPT_END
    kept: list[Run] = []
    for run in reversed(whole.runs):
        if left <= 0:
            break
        kept.append(run if run.added else replace(run, text=run.text[-left:]))
        left -= 0 if run.added else len(run.text)
    shown = sum(len(run.text) for run in kept)
    return replace(whole, runs=kept[::-1], cut=whole.cut + sum(len(run.text) for run in whole.runs) - shown)


def _strip(request: Request, asked: Asked, specs: list[RuleSpec]) -> dict[str, Any]:
    """28 days of firings as a chart, None without any in these days, and how many others there are."""
    until = timezone.now().date()
    found = effects.daily(request.tenant, specs, asked.code, until=until, scope=asked.scope)
    return {"chart": _chart(request, asked, found.days), "daily": found}


def _chart(request: Request, asked: Asked, days: list[effects.Day]) -> dict[str, Any] | None:
    """Firings a day with the live version as outline and the releases as markers."""
    if not any(day.fires or day.before for day in days):
        return None
    top = max(max(day.fires, day.before) for day in days)
    at = {day.date: number for number, day in enumerate(days)}
    releases = [
        {
            "day": at[release.published_at.date()],
            "label": _("Release %(n)s") % {"n": release.number},
            "url": reverse("rules:release", args=[request.tenant.slug, release.number]),
        }
        for release in Release.objects.filter(published_at__isnull=False).order_by("number")
        if release.published_at is not None and release.published_at.date() in at
    ]
    fires = sum(day.fires for day in days)
    sentence_of_chart = _("%(fires)s firings in %(days)s days, %(before)s of the live version.") % {
        "fires": fires,
        "days": len(days),
        "before": sum(day.before for day in days),
    }
    return {
        "id": "strip",
        "title": _("Firings a day, by the start of the chat"),
        "sentence": sentence_of_chart,
        "unit": _("points"),
        "max": top,
        "days": [
            {
                "label": date_format(day.date, "SHORT_DATE_FORMAT"),
                "total": day.fires,
                "segments": [{"series": 1, "start": 0, "value": day.fires, "label": asked.code}] if day.fires else [],
            }
            for day in days
        ],
        "series": [{"number": 1, "label": asked.code, "total": fires}],
        "releases": releases[-6:],
        "ticks": [{"value": 0, "label": "0"}, {"value": top, "label": str(top)}],
        "outline": [day.before for day in days],
    }


# --- addresses


def _links(request: Request, asked: Asked) -> dict[str, str]:
    slug = request.tenant.slug
    if asked.code == TRIED_CODE or (asked.state is None and not Rule.objects.filter(code=asked.code).exists()):
        return {"effect": "", "edit": ""}
    own, editor = (reverse(name, args=[slug, asked.code]) for name in ("rules:effect", "rules:edit"))
    return {"effect": own, "here": f"{own}?{asked.query()}", "edit": f"{editor}?{asked.query()}"}


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None
