"""The tests that are kept with a rule: adding and removing them."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from eleanor_site.access import author
from eleanor_site.problems import Refused
from eleanor_site.web import Request, page
from rules.models import Rule
from rules.queries.draft_states import state_of
from rules.queries.rule_tests import run_tests
from rules.queries.rules import edited_set
from rules.services import rule_tests


@author
@require_POST
def change_tests(request: Request, code: str) -> HttpResponse:
    """Do what the pressed button says. The editor gets the list of tests again, with results for the saved draft."""
    rule = Rule.objects.filter(code=code).first()
    state = None if rule is None else state_of(rule)
    if rule is None or state is None:
        raise Http404
    problem = ""
    try:
        rule_tests.act(tenant=request.tenant, rule=rule, by=request.user, pressed=request.POST.dict())
    except Refused as refused:
        problem = str(refused)
    if not request.htmx:
        if problem:
            messages.error(request, problem)
        return redirect("rules:rule", request.tenant.slug, code)
    results = run_tests(request.tenant, rule, edited_set(request.tenant, code, state.content))
    context = {
        "rule": rule,
        "tests": {"results": results, "red": sum(not result.passed for result in results)},
        "problem": problem,
        "context_typed": request.POST.get("test_context", "") if problem else "",
    }
    return page(request, "rules/tests.html", context, status=422 if problem else 200)
