"""Writing a rule: the new page, the editor with its autosave, checks while typing, and conflicts."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from chats.domain.shown_prompt import TOKEN
from chats.queries.wrappers import DEFAULT_BUILT_IN, choice_labels
from eleanor_site.access import author, viewer
from eleanor_site.numbers import whole_number
from eleanor_site.problems import Refused
from eleanor_site.web import Request, page, posted
from rules.builder_fields import NEW_ROWS, builder_rows, built_source
from rules.completion_words import described
from rules.diagnostic_sentences import diagnosed
from rules.domain.language import check
from rules.forms.rules import CONFLICT_PREFIX, NewRuleForm, RuleForm
from rules.models import ReleaseEntry, Rule, RuleDraft
from rules.models.rules import CONTENT_FIELDS
from rules.queries import effects
from rules.queries.codes import code_problem, known_codes, taken
from rules.queries.observed import observed_lines
from rules.queries.rule_tests import run_tests
from rules.queries.rules import edited_set, live_number, published_version
from rules.queries.scopes import scope_choices, scope_of
from rules.queries.segments import Scope
from rules.services import drafts, rule_tests
from rules.services.drafts import DraftConflict, content_of
from rules.services.publishing import live_entry


@author
@require_http_methods(["GET", "HEAD", "POST"])
def new_rule(request: Request) -> HttpResponse:
    form = NewRuleForm(posted(request), initial=_initial(request))
    if request.method == "POST":
        rewritten = _rewritten(request)
        if rewritten is not None:
            return _page(request, _with_expression(NewRuleForm, request, rewritten), None)
        if form.is_valid():
            try:
                rule = drafts.create_rule(
                    tenant=request.tenant, by=request.user, code=form.cleaned_data["code"], content=form.cleaned_data
                )
                messages.success(request, _("Draft of %(code)s saved.") % {"code": rule.code})
                return redirect(f"{reverse('rules:edit', args=[request.tenant.slug, rule.code])}{_scope_kept(request)}")
            except Refused as refused:
                form.add_error("code", str(refused))
    return _page(request, form, None, status=422 if form.errors else 200)


def _initial(request: Request) -> dict[str, Any]:
    """What `?from=copy:CODE` starts with; `from=search:ID` only chooses the chats that are looked at."""
    kind, _colon, code = request.GET.get("from", "").partition(":")
    if kind != "copy":
        return {}
    rule = Rule.objects.filter(code=code).first()
    source = rule and (RuleDraft.objects.filter(rule=rule).first() or published_version(rule))
    return content_of(source) if source else {}


def _scope_kept(request: Request) -> str:
    scope = scope_of(request.POST.get("corpus", ""))
    return "" if scope.kind == "all" else f"?{urlencode({'corpus': str(scope)})}"


@author
@require_http_methods(["GET", "HEAD", "POST"])
def edit_rule(request: Request, code: str) -> HttpResponse:
    """The editor. What is saved is the draft; a conflict shows base, theirs and mine, and keeps what was typed."""
    rule = _find(code)
    draft = RuleDraft.objects.select_related("by").filter(rule=rule).first()
    if request.method != "POST":
        start = draft or published_version(rule)
        initial = {**(content_of(start) if start else {}), "revision": draft.revision if draft else 0}
        return _page(request, RuleForm(initial=initial), rule, draft)
    rewritten = _rewritten(request)
    if rewritten is not None:
        return _page(request, _with_expression(RuleForm, request, rewritten), rule, draft)
    form = RuleForm(request.POST)
    if not form.is_valid():
        context = {"rule": rule, "form": form, "draft": draft, "problems": form.errors}
        if request.htmx:
            return page(request, "rules/editor.html", context, part="saved", status=422)
        return _page(request, form, rule, draft, status=422)
    by_itself = "by_itself" in request.POST
    try:
        saved = drafts.save_draft(
            tenant=request.tenant,
            rule=rule,
            by=request.user,
            revision=form.cleaned_data["revision"],
            content=form.cleaned_data,
            by_itself=by_itself,
            based_on=_based_on(request),
        )
    except DraftConflict as conflict:
        if request.htmx and by_itself:
            seen = {"rule": rule, "draft": conflict.theirs, "conflict": conflict}
            return page(request, "rules/editor.html", seen, part="saved", status=409)
        return _conflict(request, rule, form, conflict)
    if request.htmx:
        return _saved(request, rule, saved)
    if any(name in request.POST for name in rule_tests.BUTTONS):
        try:
            rule_tests.act(tenant=request.tenant, rule=rule, by=request.user, pressed=request.POST.dict())
        except Refused as refused:
            messages.error(request, str(refused))
        return redirect(f"{reverse('rules:edit', args=[request.tenant.slug, rule.code])}#tests")
    if _based_on(request) is not None:
        return redirect("rules:publish", request.tenant.slug, rule.code)
    if "show_effect" in request.POST:
        return redirect("rules:effect", request.tenant.slug, rule.code)
    messages.success(request, _("Draft saved."))
    return redirect("rules:edit", request.tenant.slug, rule.code)


def _based_on(request: Request) -> int | None:
    """The version that somebody made one with the draft, coming from the publish page."""
    number = request.POST.get("based_on", "")
    return whole_number(number, otherwise=None, most=10**8 - 1)


def _saved(request: Request, rule: Rule, draft: RuleDraft) -> HttpResponse:
    """After a save: the bar, the tests, the prompt's warnings, and where the sets of this state are."""
    given = request.POST
    query = _query(rule, draft.revision, given.get("corpus", ""), given.get("set", ""), given.get("point", ""))
    context = {
        "rule": rule,
        "draft": draft,
        "tests": _tests(request, rule, draft),
        "tokens_in_prompts": _tokens_in(draft.prompt_en, draft.prompt_fr),
        "set_query": f"{query}&" if query else "",
    }
    answer = page(request, "rules/editor.html", context, part="saved")
    here = reverse("rules:edit", args=[request.tenant.slug, rule.code])
    answer["HX-Replace-Url"] = f"{here}?{query}"
    answer["HX-Trigger"] = "draft-saved"
    return answer


def _query(rule: Rule, revision: int, corpus: str, set_name: str, point: str) -> str:
    scope = scope_of(corpus)
    values = {
        "draft": str(revision) if revision else "",
        "corpus": "" if scope.kind == "all" else str(scope),
        "set": set_name,
        "point": point,
    }
    return urlencode({name: value for name, value in values.items() if value})


def _page(
    request: Request, form: RuleForm, rule: Rule | None, draft: RuleDraft | None = None, status: int = 200
) -> HttpResponse:
    """The editor with whatever the form holds."""
    source = str(form["expression"].value() or "").replace("\r\n", "\n")
    stage = str(form["stage"].value() or "final")
    given = request.GET
    named = given.get("draft", "")
    revision = draft.revision if draft else 0
    corpus = given.get("corpus") or request.POST.get("corpus", "") or _searched(given.get("from", ""))
    context: dict[str, Any] = {
        "form": form,
        "rule": rule,
        "draft": draft,
        "live": live_number(),
        "builder": builder_rows(source, known_codes()),
        "new_rows": [(key, label) for key, (label, _form) in NEW_ROWS.items()],
        "scopes": scope_choices(),
        "scope": str(scope_of(corpus)),
        "models": choice_labels(),
        "model": given.get("model", DEFAULT_BUILT_IN),
        "set_name": given.get("set", ""),
        "point": given.get("point", ""),
        "tokens_in_prompts": _tokens_in(*(str(form[n].value() or "") for n in ("prompt_en", "prompt_fr"))),
        **diagnosed(source, stage, rule),
    }
    if rule is not None:
        state = RuleDraft(tenant=request.tenant, rule=rule, **_content(form))
        context["tests"] = _tests(request, rule, state)
        query = _query(rule, revision, corpus, given.get("set", ""), given.get("point", ""))
        context["set_query"] = f"{query}&" if query else ""
        entry = live_entry(rule)
        context["nudging"] = entry is not None and entry.mode == ReleaseEntry.Mode.LIVE
        if named.isdecimal() and len(named) < 10 and int(named) not in (revision, 0):
            context["named_revision"] = int(named)
    part = "builder" if request.htmx and ("build" in request.POST or "rebuild" in request.POST) else None
    return page(request, "rules/editor.html", context, part=part, status=status)


def _searched(origin: str) -> str:
    kind, _colon, number = origin.partition(":")
    return origin if kind == "search" and number.isdecimal() else ""


def _content(form: RuleForm) -> dict[str, Any]:
    """The form's values as they stand, good or not; numbers that aren't any count as one."""
    values = {name: form[name].value() for name in CONTENT_FIELDS}
    cap = str(values["max_nudges"])
    values["max_nudges"] = whole_number(cap, otherwise=1, most=10**5 - 1)
    return {name: str(v or "").replace("\r\n", "\n") if name != "max_nudges" else v for name, v in values.items()}


def _tests(request: Request, rule: Rule, state: RuleDraft) -> dict[str, Any]:
    results = run_tests(request.tenant, rule, edited_set(request.tenant, rule.code, state))
    return {"results": results, "red": sum(not result.passed for result in results)}


def _tokens_in(*prompts: str) -> list[str]:
    """Control tokens of models that a prompt spells out: a model would read them as what they stand for."""
    return list(dict.fromkeys(token for prompt in prompts for token in TOKEN.findall(prompt)))


# --- the builder and repairs, which change the expression and save nothing


def _rewritten(request: Request) -> str | None:
    """The expression after a button of the builder or a repair was pressed; None when neither was."""
    given = request.POST
    source = given.get("expression", "").replace("\r\n", "\n")
    if "repair" in given:
        return _repaired(source, given.get("stage", "final"), given["repair"])
    # A changed control of the builder says `rebuild`; so do its buttons, beside what they do.
    action = given.get("build") or given.get("rebuild", "")
    if not action:
        return None
    if action == "read":
        return source
    built = built_source({key: str(value) for key, value in given.items()}, action)
    return source if built is None else built


def _repaired(source: str, stage: str, number: str) -> str:
    found = diagnosed(source, stage, None)["diagnostics"]
    at = whole_number(number, otherwise=-1)
    repair = found[at]["repair"] if 0 <= at < len(found) else None
    return source if repair is None else source[: repair["start"]] + repair["text"] + source[repair["end"] :]


def _with_expression(kind: type[RuleForm], request: Request, expression: str) -> RuleForm:
    """An unbound form with everything that was posted, and this expression."""
    given = request.POST
    initial = {name: given.get(name, "") for name in (*CONTENT_FIELDS, "revision", "code")}
    return kind(initial={**initial, "expression": expression})


# --- conflicts


def _conflict(request: Request, rule: Rule, form: RuleForm, conflict: DraftConflict) -> HttpResponse:
    """Base, theirs and mine, field by field, with a choice. Saving goes on from theirs, with what was chosen."""
    theirs = content_of(conflict.theirs)
    mine = {name: form.cleaned_data.get(name, "") for name in CONTENT_FIELDS}
    rows = []
    for name in CONTENT_FIELDS:
        base = conflict.base.get(name, "")
        if theirs[name] != mine[name]:
            # A field that only one of the two changed is theirs or mine without a question.
            chosen = "mine" if mine[name] != base else "theirs"
            rows.append(
                {
                    "name": name,
                    "prefix": CONFLICT_PREFIX,
                    "label": form.fields[name].label,
                    "base": base,
                    "theirs": theirs[name],
                    "mine": mine[name],
                    "chosen": chosen,
                    "both": theirs[name] != base and mine[name] != base,
                }
            )
    current = conflict.theirs.revision if conflict.theirs.pk else 0
    context = {"rule": rule, "rows": rows, "theirs": conflict.theirs, "mine": mine, "revision": current}
    scope = scope_of(request.POST.get("corpus", ""))
    context["corpus"] = str(scope)
    context["sides"] = [
        {"label": label, "effect": _effect_of(request, rule, values, scope)}
        for label, values in ((_("Theirs"), theirs), (_("Mine"), mine))
    ]
    answer = page(request, "rules/conflict.html", context, part="conflict", status=409)
    answer["HX-Retarget"], answer["HX-Reswap"] = "#rule-form", "outerHTML"
    return answer


def _effect_of(request: Request, rule: Rule, values: dict[str, Any], scope: Scope) -> effects.EffectAnswer | None:
    """What this content does to the stored points; None while its expression has an error."""
    content = RuleDraft(tenant=request.tenant, rule=rule, **values)
    if check(content.expression).errors:
        return None
    return effects.effect(request.tenant, edited_set(request.tenant, rule.code, content), rule.code, scope=scope)


@author
@require_POST
def restore_revision(request: Request, code: str) -> HttpResponse:
    """Make a kept state of the draft the draft again; the present one stays a state of its own."""
    rule = _find(code)
    draft = RuleDraft.objects.filter(rule=rule).first()
    number = request.POST.get("number", "")
    try:
        drafts.restore_revision(
            tenant=request.tenant,
            rule=rule,
            by=request.user,
            number=whole_number(number, otherwise=-1, most=10**9 - 1),
            revision=draft.revision if draft else 0,
        )
        messages.success(request, _("State %(n)s is the draft again.") % {"n": number})
    except Refused as refused:
        messages.error(request, str(refused))
    return redirect("rules:edit", request.tenant.slug, code)


# --- small answers while typing


@author
@require_POST
def check_expression(request: Request) -> HttpResponse:
    """The problems of what is being typed."""
    source = request.POST.get("expression", "").replace("\r\n", "\n")
    rule = Rule.objects.filter(code=request.POST.get("rule", "")).first()
    context = diagnosed(source, request.POST.get("stage", "final"), rule)
    return page(request, "rules/check.html", context, part="problems")


@author
@require_safe
def check_code(request: Request) -> HttpResponse:
    """Whether a code is free and has the right shape, while it is being typed."""
    code = request.GET.get("code", "")
    problem = "" if not code else code_problem(code) or taken(code)
    return page(request, "rules/check.html", {"code": code, "problem": problem}, part="code")


@viewer
@require_safe
def completions(request: Request) -> HttpResponse:
    """What can stand at the caret, with the values that the stored points have there."""
    text, at = request.GET.get("text", "")[:2000], request.GET.get("at", "0")
    stage = "round" if request.GET.get("stage") == "round" else "final"
    caret = whole_number(at, otherwise=0, most=10**5 - 1)
    lines = observed_lines(request.tenant, stage)
    return JsonResponse(described(text, caret, codes=sorted(known_codes()), observed=lines))


@author
@require_POST
def discard_draft(request: Request, code: str) -> HttpResponse:
    rule = _find(code)
    drafts.discard_draft(tenant=request.tenant, rule=rule, by=request.user)
    messages.success(request, _("The draft of %(code)s is discarded.") % {"code": code})
    return redirect("rules:list", request.tenant.slug)


def _find(code: str) -> Rule:
    rule = Rule.objects.filter(code=code).first()
    if rule is None:
        raise Http404
    return rule
