"""Writing a rule: the new page, the editor, checks while typing, conflicts."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from eleanor_site.access import author, viewer
from eleanor_site.problems import Refused
from eleanor_site.web import Request, page, posted
from rules.diagnostic_sentences import shown
from rules.domain.language import check
from rules.forms import NewRuleForm, RuleForm
from rules.models import Rule, RuleDraft
from rules.models.rules import CONTENT_FIELDS
from rules.queries.codes import code_problem, known_codes, later_codes, taken
from rules.queries.rules import live_number
from rules.services import drafts
from rules.services.drafts import DraftConflict, content_of
from rules.views.rules import find_rule


@author
@require_http_methods(["GET", "HEAD", "POST"])
def new_rule(request: Request) -> HttpResponse:
    form = NewRuleForm(posted(request), initial=_initial(request))
    if request.method == "POST" and form.is_valid():
        try:
            rule = drafts.create_rule(
                tenant=request.tenant, by=request.user, code=form.cleaned_data["code"], content=form.cleaned_data
            )
            messages.success(request, _("Draft of %(code)s saved.") % {"code": rule.code})
            return redirect("rules:edit", request.tenant.slug, rule.code)
        except Refused as refused:
            form.add_error("code", str(refused))
    context = {"form": form, "rule": None, **_checked(request, form)}
    return page(request, "rules/editor.html", context, status=422 if form.errors else 200)


def _initial(request: Request) -> dict[str, Any]:
    """What `?from=copy:CODE` starts with."""
    kind, _colon, code = request.GET.get("from", "").partition(":")
    if kind != "copy":
        return {}
    rule = Rule.objects.filter(code=code).first()
    source = rule and (RuleDraft.objects.filter(rule=rule).first() or drafts.newest_version(rule))
    return content_of(source) if source else {}


@author
@require_http_methods(["GET", "HEAD", "POST"])
def edit_rule(request: Request, code: str) -> HttpResponse:
    """The editor. What is saved is the draft; a conflict shows both sides and keeps what was typed."""
    rule = find_rule(code)
    draft = RuleDraft.objects.filter(rule=rule).first()
    version = drafts.newest_version(rule)
    if request.method != "POST":
        start = draft or version
        initial = {**(content_of(start) if start else {}), "revision": draft.revision if draft else 0}
        return _editor(request, RuleForm(initial=initial), rule, draft)
    form = RuleForm(request.POST)
    if not form.is_valid():
        return _editor(request, form, rule, draft, status=422)
    try:
        saved = drafts.save_draft(
            tenant=request.tenant,
            rule=rule,
            by=request.user,
            revision=form.cleaned_data["revision"],
            content=form.cleaned_data,
        )
    except DraftConflict as conflict:
        return _conflict(request, rule, form, conflict)
    if request.htmx:
        return page(request, "rules/editor.html", {"rule": rule, "draft": saved}, part="saved")
    messages.success(request, _("Draft saved."))
    return redirect("rules:edit", request.tenant.slug, rule.code)


def _editor(request: Request, form: RuleForm, rule: Rule, draft: RuleDraft | None, status: int = 200) -> HttpResponse:
    context = {"form": form, "rule": rule, "draft": draft, "live": live_number(), **_checked(request, form, rule)}
    return page(request, "rules/editor.html", context, status=status)


def _conflict(request: Request, rule: Rule, form: RuleForm, conflict: DraftConflict) -> HttpResponse:
    """Their draft and mine, field by field. Saving goes on from theirs, with what the person chose."""
    theirs = content_of(conflict.theirs) if conflict.theirs.pk else {}
    mine = {name: form.cleaned_data.get(name, "") for name in CONTENT_FIELDS}
    rows = [
        {"field": form[name], "theirs": theirs.get(name, ""), "mine": mine[name]}
        for name in CONTENT_FIELDS
        if theirs.get(name, "") != mine[name]
    ]
    merged = RuleForm(initial={**mine, "revision": conflict.theirs.revision if conflict.theirs.pk else 0})
    context = {"rule": rule, "rows": rows, "theirs": conflict.theirs, "form": merged}
    return page(request, "rules/conflict.html", context, part="conflict", status=409)


def _checked(request: Request, form: RuleForm, rule: Rule | None = None) -> dict[str, Any]:
    source = str(form["expression"].value() or "").replace("\r\n", "\n")
    stage = str(form["stage"].value() or "final")
    return checked_source(source, stage, rule)


def checked_source(source: str, stage: str, rule: Rule | None) -> dict[str, Any]:
    """Diagnostics and painted tokens of an expression, as the code field's component takes them."""
    if not source.strip():
        return {"diagnostics": [], "tokens": [], "source_length": len(source)}
    checked = check(
        source,
        stage="round" if stage == "round" else "final",
        known_codes=known_codes(),
        later_codes=later_codes(rule) if rule else frozenset(),
    )
    return {
        "diagnostics": [shown(d) for d in checked.diagnostics],
        "tokens": paint(source),
        "source_length": len(source),
    }


@author
@require_POST
def check_expression(request: Request) -> HttpResponse:
    """The problems of what is being typed."""
    source = request.POST.get("expression", "").replace("\r\n", "\n")
    rule = Rule.objects.filter(code=request.POST.get("rule", "")).first()
    context = checked_source(source, request.POST.get("stage", "final"), rule)
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
    """What can stand at the caret."""
    from rules.completion_words import described

    text, at = request.GET.get("text", "")[:2000], request.GET.get("at", "0")
    return JsonResponse(described(text, int(at) if at.isdigit() and len(at) < 6 else 0))


@author
@require_POST
def discard_draft(request: Request, code: str) -> HttpResponse:
    rule = find_rule(code)
    drafts.discard_draft(tenant=request.tenant, rule=rule, by=request.user)
    messages.success(request, _("The draft of %(code)s is discarded.") % {"code": code})
    return redirect("rules:list", request.tenant.slug)


def paint(source: str) -> list[dict[str, Any]]:
    """Token spans for the overlay."""
    from rules.domain.language.painting import painted

    return [{"start": start, "end": end, "kind": kind} for start, end, kind in painted(source)]
