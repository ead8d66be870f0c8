"""Rules: the list, drafts, versions, and checking what is being written."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from django.db.models import QuerySet
from django.http import Http404, HttpResponse
from django.utils.translation import gettext as _
from ninja import Query
from pydantic import BaseModel, Field

from eleanor_site.api_access import ApiRequest, KeyRouter, json_answer, rows_after
from eleanor_site.api_problems import wrong
from eleanor_site.api_values import PAGE, After, Limit, Number, Revision, Strict
from eleanor_site.tenants.models import KeyScope
from rules.api.live_types import Code, Stage
from rules.api.loading import rule_of, version_of
from rules.completion_words import described
from rules.diagnostic_sentences import sentence
from rules.domain.language import check
from rules.domain.language.diagnostics import Diagnostic
from rules.models import Rule, RuleDraft, RuleVersion
from rules.queries.codes import code_problem, known_codes, taken
from rules.queries.observed import observed_lines
from rules.queries.rules import RuleRow, published_version, rule_rows
from rules.services import drafts

router = KeyRouter(tags=["rules"])


class RuleContentOut(BaseModel):
    title_en: str
    title_fr: str
    explanation_en: str
    explanation_fr: str
    stage: Stage
    max_nudges: int
    expression: str
    prompt_en: str
    prompt_fr: str

    @classmethod
    def of(cls, row: RuleVersion | RuleDraft) -> RuleContentOut:
        return cls(**{name: getattr(row, name) for name in cls.model_fields})


class RuleContentIn(Strict):
    """Fields that are left out stay as they are. An expression with an error can be saved, but not published."""

    title_en: str | None = Field(default=None, max_length=120)
    title_fr: str | None = Field(default=None, max_length=120)
    explanation_en: str | None = Field(default=None, max_length=5000)
    explanation_fr: str | None = Field(default=None, max_length=5000)
    stage: Stage | None = None
    max_nudges: Annotated[int, Field(ge=0, le=32767)] | None = None
    expression: str | None = Field(default=None, max_length=10_000)
    prompt_en: str | None = Field(default=None, max_length=20_000)
    prompt_fr: str | None = Field(default=None, max_length=20_000)


class RuleSummary(BaseModel):
    """A rule as the list shows it. `position` is null for one that no live release holds."""

    code: str
    state: Literal["live", "observe", "paused", "draft", "archived"]
    position: int | None
    version: int | None
    has_draft: bool
    content: RuleContentOut

    @classmethod
    def of(cls, row: RuleRow) -> RuleSummary:
        return cls(
            code=row.rule.code,
            state=row.state,
            position=row.position,
            version=row.version.number if row.version else None,
            has_draft=row.draft is not None,
            content=RuleContentOut.of(row.content),
        )


class RuleList(BaseModel):
    items: list[RuleSummary]


class DraftOut(BaseModel):
    revision: int
    based_on: int
    content: RuleContentOut

    @classmethod
    def of(cls, row: RuleDraft) -> DraftOut:
        return cls(revision=row.revision, based_on=row.based_on, content=RuleContentOut.of(row))


class RuleAnswer(BaseModel):
    rule: RuleSummary
    draft: DraftOut | None


class VersionOut(BaseModel):
    number: int
    note: str
    by: str | None
    approved_by: str | None
    points: int | None = Field(description="Points of its stage when it was published, null where nobody had counted.")
    fires: int | None
    created_at: datetime
    content: RuleContentOut

    @classmethod
    def of(cls, row: RuleVersion) -> VersionOut:
        return cls(
            number=row.number,
            note=row.note,
            by=row.by.email if row.by else None,
            approved_by=row.approved_by.email if row.approved_by else None,
            points=row.points,
            fires=row.fires,
            created_at=row.created_at,
            content=RuleContentOut.of(row),
        )


class VersionList(BaseModel):
    items: list[VersionOut]
    next: str | None


class NewRule(Strict):
    """A code that no rule has yet, and what the draft begins with. With `copy_of` that is what the other rule holds."""

    code: str = Field(min_length=1, max_length=64)
    content: RuleContentIn = RuleContentIn()
    copy_of: Code | None = Field(default=None, description="The code of a rule to copy.")
    note: str = Field(default="", max_length=2000)


class DraftIn(Strict):
    """`revision` is the one that you saw, 0 when there was no draft.

    `based_on` is the version that you made one with the draft, after somebody else had published it meanwhile.
    """

    revision: Revision
    content: RuleContentIn
    based_on: Number | None = None


class CheckIn(Strict):
    expression: str = Field(max_length=10_000)
    stage: Stage = "final"


class DiagnosticOut(BaseModel):
    """A problem at a place of the expression, in code points."""

    severity: Literal["error", "warning"]
    code: str
    start: int
    end: int
    message: str

    @classmethod
    def of(cls, found: Diagnostic, message: object) -> DiagnosticOut:
        return cls(severity=found.severity, code=found.code, start=found.start, end=found.end, message=str(message))


class CheckAnswer(BaseModel):
    valid: bool
    diagnostics: list[DiagnosticOut]


class RestoreIn(Strict):
    """`number` is an earlier revision, `revision` the one that you saw."""

    number: Revision
    revision: Revision


class CodeCheck(BaseModel):
    """`problem` says why a new rule can't have the code; empty when it can."""

    free: bool
    problem: str


class CompletionOut(BaseModel):
    """What can stand at the caret. `observed` has the commonest values at the stored points."""

    label: str
    insert: str
    kind: str
    type: str
    detail: str
    observed: str


class Completions(BaseModel):
    """The candidates take the place of the text from `start` to `end`, in code points."""

    start: int
    end: int
    items: list[CompletionOut]


@router.operation("GET", "/rules", KeyScope.RULES_READ, answers=RuleList)
def list_rules(request: ApiRequest, archived: bool = False) -> RuleList:
    """The live release in the order of evaluation, then the rules that it doesn't hold."""
    rows = rule_rows(archived=archived)
    return RuleList(items=[RuleSummary.of(row) for row in rows])


@router.operation("POST", "/rules", KeyScope.RULES_WRITE, answers=RuleAnswer, status=201, idempotent=True)
def create_rule(request: ApiRequest, body: NewRule) -> HttpResponse:
    """A new rule with a draft."""
    content = {**(_copied(body.copy_of) if body.copy_of else {}), **_content(body.content)}
    made = drafts.create_rule(tenant=request.tenant, by=request.person, code=body.code, content=content, note=body.note)
    return json_answer(_rule_answer(made), status=201)


@router.operation("POST", "/rules/check", KeyScope.RULES_READ, answers=CheckAnswer)
def check_expression(request: ApiRequest, body: CheckIn) -> CheckAnswer:
    """Everything that is wrong with an expression, with its place."""
    found = check(body.expression, stage=body.stage)
    diagnostics = [DiagnosticOut.of(d, sentence(d)) for d in found.diagnostics]
    return CheckAnswer(valid=not any(d.severity == "error" for d in diagnostics), diagnostics=diagnostics)


@router.operation("GET", "/rules/check/code", KeyScope.RULES_READ, answers=CodeCheck)
def check_code(request: ApiRequest, code: Annotated[str, Query(max_length=200)]) -> CodeCheck:
    """Whether a new rule can have this code."""
    problem = code_problem(code) or taken(code)
    return CodeCheck(free=not problem, problem=str(problem))


@router.operation("GET", "/rules/check/completions", KeyScope.RULES_READ, answers=Completions)
def complete_expression(
    request: ApiRequest,
    text: Annotated[str, Query(max_length=2000)],
    at: Annotated[int, Query(ge=0, le=2000, description="The caret, in code points.")],
    stage: Stage = "final",
) -> Completions:
    """What can stand at a place of an expression."""
    found = described(text, at, codes=sorted(known_codes()), observed=observed_lines(request.tenant, stage))
    items = [CompletionOut(**{name: str(item[name]) for name in CompletionOut.model_fields}) for item in found["items"]]
    return Completions(start=found["from"], end=found["to"], items=items)


@router.operation("GET", "/rules/{code}", KeyScope.RULES_READ, answers=RuleAnswer)
def get_rule(request: ApiRequest, code: str) -> RuleAnswer:
    """One rule: what holds, and its draft."""
    return _rule_answer(rule_of(code))


@router.operation("GET", "/rules/{code}/versions", KeyScope.RULES_READ, answers=VersionList)
def list_versions(request: ApiRequest, code: str, after: After = None, limit: Limit = PAGE) -> VersionList:
    """The newest first."""
    found: QuerySet[RuleVersion] = RuleVersion.objects.filter(rule=rule_of(code)).select_related("by", "approved_by")
    rows, following = rows_after(found.order_by("-number"), after, limit, "number")
    return VersionList(items=[VersionOut.of(row) for row in rows], next=following)


@router.operation("GET", "/rules/{code}/versions/{number}", KeyScope.RULES_READ, answers=VersionOut)
def get_version(request: ApiRequest, code: str, number: Number) -> VersionOut:
    """One version."""
    return VersionOut.of(version_of(rule_of(code), number))


@router.operation("PUT", "/rules/{code}/draft", KeyScope.RULES_WRITE, answers=RuleAnswer)
def save_draft(request: ApiRequest, code: str, body: DraftIn) -> RuleAnswer:
    """Save the draft. 409 when somebody else saved since the revision that you saw; nothing is overwritten then."""
    rule = rule_of(code)
    drafts.save_draft(
        tenant=request.tenant,
        rule=rule,
        by=request.person,
        revision=body.revision,
        content=_content(body.content),
        based_on=body.based_on,
    )
    return _rule_answer(rule)


@router.operation("DELETE", "/rules/{code}/draft", KeyScope.RULES_WRITE, answers=None, status=204)
def discard_draft(request: ApiRequest, code: str) -> HttpResponse:
    """Throw the draft away; a rule that was never published disappears with it."""
    drafts.discard_draft(tenant=request.tenant, rule=rule_of(code), by=request.person)
    return HttpResponse(status=204)


@router.operation("POST", "/rules/{code}/draft/restore", KeyScope.RULES_WRITE, answers=RuleAnswer)
def restore_revision(request: ApiRequest, code: str, body: RestoreIn) -> RuleAnswer:
    """Make an earlier revision of the draft the draft again; the present one stays a revision of its own."""
    rule = rule_of(code)
    drafts.restore_revision(
        tenant=request.tenant, rule=rule, by=request.person, number=body.number, revision=body.revision
    )
    return _rule_answer(rule)


@router.operation("POST", "/rules/{code}/archive", KeyScope.RULES_WRITE, answers=RuleAnswer)
def archive_rule(request: ApiRequest, code: str) -> RuleAnswer:
    """Put a rule away. Refused while the live release holds it."""
    rule = rule_of(code)
    drafts.archive(tenant=request.tenant, rule=rule, by=request.person)
    return _rule_answer(rule)


@router.operation("POST", "/rules/{code}/restore", KeyScope.RULES_WRITE, answers=RuleAnswer)
def restore_rule(request: ApiRequest, code: str) -> RuleAnswer:
    """Bring a rule back that was put away."""
    rule = rule_of(code)
    drafts.restore(tenant=request.tenant, rule=rule, by=request.person)
    return _rule_answer(rule)


def _rule_answer(rule: Rule) -> RuleAnswer:
    archived = rule.archived_at is not None
    row = next((row for row in rule_rows(archived=archived) if row.rule.pk == rule.pk), None)
    if row is None:
        raise Http404
    draft = RuleDraft.objects.filter(rule=rule).first()
    return RuleAnswer(rule=RuleSummary.of(row), draft=DraftOut.of(draft) if draft else None)


def _content(content: RuleContentIn) -> dict[str, Any]:
    return content.model_dump(exclude_none=True)


def _copied(code: str) -> dict[str, Any]:
    """What the rule holds that is copied: its draft, or what is published. Raises Problem."""
    rule = Rule.objects.filter(code=code).first()
    source: RuleDraft | RuleVersion | None = None
    if rule is not None:
        source = RuleDraft.objects.filter(rule=rule).first() or published_version(rule)
    if source is None:
        raise wrong("copy_of", "unknown", _("There is no rule with this code."))
    return drafts.content_of(source)
