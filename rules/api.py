"""Endpoints of the deciding side. Each calls the service or query that its page calls; `evaluate` is the engine's own.

Answers of `evaluate` and `release` are written by hand, since they are asked for at every step of an agent.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from django.db.models import QuerySet
from django.http import Http404, HttpResponse
from django.utils.http import parse_etags
from django.utils.translation import gettext as _
from ninja import Query
from pydantic import Field

from chats.api import After, Limit, Text
from chats.api_types import read_chat
from eleanor_site import limits
from eleanor_site.api_access import PAGE, ApiRequest, Day, KeyRouter, json_answer, rows_after
from eleanor_site.api_problems import Problem, wrong
from eleanor_site.tenants.models import KeyScope, PromptLanguage
from rules.api_types import (
    CheckAnswer,
    CheckIn,
    DiagnosticOut,
    DraftIn,
    DraftOut,
    EvaluateAnswer,
    EvaluateIn,
    EvaluateItem,
    FindingList,
    FindingOut,
    Id,
    ModeIn,
    NewRule,
    NudgeList,
    NudgeOut,
    NudgesIn,
    NudgesTaken,
    PlacedVersion,
    PublishIn,
    ReleaseAnswer,
    ReleaseDocument,
    ReleaseList,
    ReleaseSummary,
    ReplayAnswer,
    ReplayIn,
    ReplayList,
    ReplayOut,
    ReplayRule,
    RollBackIn,
    RuleAnswer,
    RuleContentIn,
    RuleList,
    RuleSummary,
    ToolList,
    ToolOut,
    VersionList,
    VersionOut,
)
from rules.diagnostic_sentences import sentence
from rules.domain.language import check
from rules.models import Release, ReleaseEntry, Replay, Rule, RuleDraft, RuleVersion
from rules.queries import replays as replay_queries
from rules.queries.live import (
    Conversation,
    Evaluated,
    Evaluator,
    LiveRelease,
    etag_of,
    evaluate_context,
    live_release,
    release_document,
    traced,
)
from rules.queries.manifests import catalogue_entries
from rules.queries.nudges import NudgeFilter, nudge_page
from rules.queries.rules import rule_rows, rule_set
from rules.services import drafts, live_nudges, publishing
from rules.services import replays as replay_services

router = KeyRouter(tags=["rules"])

Number = Annotated[int, Field(ge=1, le=2**31 - 1)]
_MODES = {"live": publishing.Mode.LIVE, "paused": publishing.Mode.PAUSED, "observe": publishing.Mode.OBSERVE}


# --- live use


@router.operation(
    "GET",
    "/release",
    KeyScope.RULES_READ,
    answers=ReleaseDocument,
    extra={
        "parameters": [
            {"in": "header", "name": "If-None-Match", "required": False, "schema": {"type": "string"}},
        ],
        "responses": {304: {"description": "The release that you have is still the live one."}},
    },
)
def get_release(request: ApiRequest) -> HttpResponse:
    """The live release. Send the `ETag` of the answer as `If-None-Match` next time: 304 says that nothing changed."""
    document = release_document(request.tenant, live_release(request.tenant))
    tag = etag_of(document)
    known = parse_etags(request.headers.get("If-None-Match", ""))
    same = "*" in known or tag in [one.removeprefix("W/") for one in known]
    answer = HttpResponse(status=304) if same else _written(document)
    answer["ETag"] = tag
    answer["Cache-Control"] = "private, no-cache"
    return answer


@router.operation("POST", "/evaluate", KeyScope.RULES_READ, answers=EvaluateAnswer)
def evaluate(request: ApiRequest, body: EvaluateIn) -> HttpResponse:
    """What the live rules decide: for one context or conversation, or for a batch of them. Nothing is recorded.

    Report what you did with the decision at `/nudges`.
    """
    release = live_release(request.tenant)
    answering = _Answering(request, release, body)
    if body.batch is None:
        results = [answering.item(body, "")]
    elif body.context is not None or body.conversation is not None:
        raise wrong("batch", "one_of", _("Give a context, a conversation or a batch."))
    else:
        results = [answering.item(item, f"batch[{n}]") for n, item in enumerate(body.batch)]
    return _written({"release": release.number, "rules_digest": release.digest, "results": results})


class _Answering:
    """Turns the items of one request into answers, with what they share worked out once."""

    def __init__(self, request: ApiRequest, release: LiveRelease, body: EvaluateIn) -> None:
        self.request = request
        self.release = release
        self.body = body
        self.language = body.language or PromptLanguage(request.tenant.prompt_language).value
        self.nudges: dict[str, dict[str, Any]] = {}
        self.evaluator: Evaluator | None = None
        self.versions = {entry.code: (entry.version, entry.mode) for entry in release.entries}

    def item(self, item: EvaluateItem, path: str) -> dict[str, Any]:
        if (item.context is None) == (item.conversation is None):
            given = f"{path}.context" if path else "context"
            raise wrong(given, "one_of", _("Give either a context or a conversation."))
        if item.context is not None:
            decided = evaluate_context(self.release, item.context.turn_context(), item.stage)
            return {"decision": self.decision(decided), "points": None}
        record = read_chat(item.conversation, f"{path}.conversation" if path else "conversation")
        if self.evaluator is None:
            self.evaluator = Evaluator(self.request.tenant, self.release)
        return self.conversation(self.evaluator.conversation(record))

    def conversation(self, found: Conversation) -> dict[str, Any]:
        every = self.body.points == "all"
        points = [self.decision(one) for one in found.decisions] if every else None
        last = None
        if found.awaits:
            last = points[-1] if points else self.decision(found.decisions[-1])
        return {"decision": last, "points": points}

    def decision(self, found: Evaluated) -> dict[str, Any]:
        trees = traced(self.release, found) if self.body.trace else {}
        rules = []
        for rule in found.rules:
            version, mode = self.versions[rule.code]
            problem = f"{rule.problem.code}: {rule.problem.detail}" if rule.problem else None
            rules.append(
                {
                    "code": rule.code,
                    "version": version,
                    "mode": mode,
                    "outcome": rule.outcome,
                    "problem": problem,
                    "trace": trees.get(rule.code),
                }
            )
        point, context = None, None
        if found.point is not None:
            point = {
                "turn": found.point.turn,
                "message": found.point.message,
                "recorded": found.point.next_nudge,
                "status": found.status,
            }
            context = {name: getattr(found.context, name) for name in found.context.__slots__}
            context["nudges"] = dict(found.context.nudges)
        nudge = self.nudge(found.fired) if found.fired is not None else None
        return {"stage": found.stage, "nudge": nudge, "rules": rules, "point": point, "context": context}

    def nudge(self, code: str) -> dict[str, Any]:
        if code not in self.nudges:
            entry = self.release.entry(code)
            assert entry is not None
            other = "en" if self.language == "fr" else "fr"
            language = self.language if entry.prompts[self.language] else other
            self.nudges[code] = {
                "code": code,
                "version": entry.version,
                "prompt": entry.prompts[language],
                "language": language,
                "prompts": dict(entry.prompts),
                "max_nudges": entry.spec.max_nudges,
            }
        return self.nudges[code]


def _written(value: dict[str, Any]) -> HttpResponse:
    return HttpResponse(json.dumps(value, ensure_ascii=False), content_type="application/json; charset=utf-8")


@router.operation("POST", "/nudges", KeyScope.NUDGES_WRITE, answers=NudgesTaken, status=201, idempotent=True)
def post_nudges(request: ApiRequest, body: NudgesIn) -> HttpResponse:
    """Report nudges that were given, and those that observed rules would have given."""
    reports = [
        live_nudges.Report(
            code=nudge.code,
            source=nudge.source,
            chat=nudge.chat,
            external_id=nudge.external_id or "",
            message=nudge.message,
            point=nudge.point,
            turn=nudge.turn,
            stage=nudge.stage or "",
            version=nudge.version,
            model=nudge.model,
            language=nudge.language,
            outcome=nudge.outcome or "",
            at=nudge.at,
            external_key=nudge.external_key,
        )
        for nudge in body.nudges
    ]
    try:
        taken = live_nudges.take_nudges(tenant=request.tenant, by=request.person, reports=reports)
    except live_nudges.UnknownReference as unknown:
        path = f"nudges[{unknown.number}].{unknown.field}"
        raise wrong(path, "unknown", _("There is nothing with this number.")) from None
    return json_answer(NudgesTaken(taken=taken, known=len(reports) - taken), status=201)


@router.operation("GET", "/nudges", KeyScope.NUDGES_READ, answers=NudgeList)
def list_nudges(
    request: ApiRequest,
    rule: Text = "",
    model: Text = "",
    language: Text = "",
    source: Literal["", "import", "live", "observe"] = "",
    outcome: Literal["", "acted", "finished", "ignored", "unknown"] = "",
    verdict: Literal["", "right", "wrong", "unsure", "missed", "none"] = "",
    start: Annotated[Day | None, Query(alias="from")] = None,
    end: Annotated[Day | None, Query(alias="to")] = None,
    after: After = None,
) -> NudgeList:
    """The history of nudges, the newest first, fifty a page."""
    wanted = NudgeFilter(
        rule=rule,
        model=model,
        language=language,
        source=source,
        outcome=outcome,
        verdict=verdict,
        start=start,
        end=end,
    )
    rows, following = nudge_page(wanted, after or "")
    return NudgeList(items=[NudgeOut.of(row.nudge, row.verdicts) for row in rows], next=following or None)


# --- releases


@router.operation("GET", "/releases", KeyScope.RULES_READ, answers=ReleaseList)
def list_releases(request: ApiRequest, after: After = None, limit: Limit = PAGE) -> ReleaseList:
    """The newest first."""
    found = Release.objects.select_related("by").order_by("-number")
    rows, following = rows_after(found, after, limit, "number")
    return ReleaseList(items=[ReleaseSummary.of(row) for row in rows], next=following)


@router.operation("GET", "/releases/{number}", KeyScope.RULES_READ, answers=ReleaseAnswer)
def get_one_release(request: ApiRequest, number: Number) -> ReleaseAnswer:
    """One release with its rules in order."""
    return _release_answer(_release(number))


@router.operation("POST", "/releases", KeyScope.RULES_PUBLISH, answers=ReleaseAnswer, status=201, idempotent=True)
def publish(request: ApiRequest, body: PublishIn) -> HttpResponse:
    """Publish drafts as a new release. 409 when another release is live than the one that you saw."""
    made = publishing.publish_drafts(
        tenant=request.tenant,
        rules=_rules(body.rules),
        by=request.person,
        note=body.note,
        seen_release=body.seen_release,
        mode=_MODES[body.mode],
    )
    return json_answer(_release_answer(made), status=201)


@router.operation(
    "POST", "/releases/{number}/roll-back", KeyScope.RULES_PUBLISH, answers=ReleaseAnswer, status=201, idempotent=True
)
def roll_back(request: ApiRequest, number: Number, body: RollBackIn) -> HttpResponse:
    """Make an older release's rules live again, as a new release."""
    made = publishing.roll_back(
        tenant=request.tenant,
        to=_release(number),
        by=request.person,
        seen_release=body.seen_release,
        note=body.note,
    )
    return json_answer(_release_answer(made), status=201)


@router.operation(
    "POST", "/rules/{code}/mode", KeyScope.RULES_PUBLISH, answers=ReleaseAnswer, status=201, idempotent=True
)
def change_mode(request: ApiRequest, code: str, body: ModeIn) -> HttpResponse:
    """Pause, resume or observe a rule of the live release, or take it out; each makes a new release."""
    rule = _rule(code)
    if body.mode == "out":
        made = publishing.take_out(
            tenant=request.tenant, rule=rule, by=request.person, seen_release=body.seen_release, note=body.note
        )
    else:
        made = publishing.set_mode(
            tenant=request.tenant,
            rule=rule,
            mode=_MODES[body.mode],
            by=request.person,
            seen_release=body.seen_release,
            note=body.note,
        )
    return json_answer(_release_answer(made), status=201)


# --- rules


@router.operation("GET", "/rules", KeyScope.RULES_READ, answers=RuleList)
def list_rules(request: ApiRequest, archived: bool = False) -> RuleList:
    """The live release in the order of evaluation, then the rules that it doesn't hold."""
    rows = rule_rows(archived=archived)
    return RuleList(items=[RuleSummary.of(row) for row in rows])


@router.operation("POST", "/rules", KeyScope.RULES_WRITE, answers=RuleAnswer, status=201, idempotent=True)
def create_rule(request: ApiRequest, body: NewRule) -> HttpResponse:
    """A new rule with a draft."""
    made = drafts.create_rule(
        tenant=request.tenant, by=request.person, code=body.code, content=_content(body.content), note=body.note
    )
    return json_answer(_rule_answer(made), status=201)


@router.operation("POST", "/rules/check", KeyScope.RULES_READ, answers=CheckAnswer)
def check_expression(request: ApiRequest, body: CheckIn) -> CheckAnswer:
    """Everything that is wrong with an expression, with its place."""
    found = check(body.expression, stage=body.stage)
    diagnostics = [
        DiagnosticOut(severity=d.severity, code=d.code, start=d.start, end=d.end, message=str(sentence(d)))
        for d in found.diagnostics
    ]
    return CheckAnswer(valid=not any(d.severity == "error" for d in diagnostics), diagnostics=diagnostics)


@router.operation("GET", "/rules/{code}", KeyScope.RULES_READ, answers=RuleAnswer)
def get_rule(request: ApiRequest, code: str) -> RuleAnswer:
    """One rule: what holds, and its draft."""
    return _rule_answer(_rule(code))


@router.operation("GET", "/rules/{code}/versions", KeyScope.RULES_READ, answers=VersionList)
def list_versions(request: ApiRequest, code: str, after: After = None, limit: Limit = PAGE) -> VersionList:
    """The newest first."""
    found: QuerySet[RuleVersion] = RuleVersion.objects.filter(rule=_rule(code)).select_related("by")
    rows, following = rows_after(found.order_by("-number"), after, limit, "number")
    return VersionList(items=[VersionOut.of(row) for row in rows], next=following)


@router.operation("PUT", "/rules/{code}/draft", KeyScope.RULES_WRITE, answers=RuleAnswer)
def save_draft(request: ApiRequest, code: str, body: DraftIn) -> RuleAnswer:
    """Save the draft. 409 when somebody else saved since the revision that you saw; nothing is overwritten then."""
    rule = _rule(code)
    drafts.save_draft(
        tenant=request.tenant, rule=rule, by=request.person, revision=body.revision, content=_content(body.content)
    )
    return _rule_answer(rule)


@router.operation("DELETE", "/rules/{code}/draft", KeyScope.RULES_WRITE, answers=None, status=204)
def discard_draft(request: ApiRequest, code: str) -> HttpResponse:
    """Throw the draft away; a rule that was never published disappears with it."""
    drafts.discard_draft(tenant=request.tenant, rule=_rule(code), by=request.person)
    return HttpResponse(status=204)


@router.operation("GET", "/tools", KeyScope.RULES_READ, answers=ToolList)
def list_tools(request: ApiRequest) -> ToolList:
    """The tenant's own tool catalogue, in order; the built-in one stands behind it."""
    return ToolList(items=[ToolOut(**entry.model_dump()) for entry in catalogue_entries()])


# --- replays


@router.operation("GET", "/replays", KeyScope.RULES_READ, answers=ReplayList)
def list_replays(request: ApiRequest, after: After = None, limit: Limit = PAGE) -> ReplayList:
    """The newest first."""
    rows, following = rows_after(replay_queries.replays(), after, limit)
    return ReplayList(items=[ReplayOut.of(row) for row in rows], next=following)


@router.operation("POST", "/replays", KeyScope.REPLAYS_RUN, answers=ReplayAnswer, status=202, idempotent=True)
def start_replay(request: ApiRequest, body: ReplayIn) -> HttpResponse:
    """Start a replay. A worker does it; ask for its status, or let a webhook tell you that it finished."""
    if (body.rules == "release") != (body.release is not None):
        raise wrong("release", "one_of", _("A release number belongs to the rule set `release`, and to no other."))
    release = Release.objects.filter(number=body.release).first() if body.release is not None else None
    if body.release is not None and release is None:
        raise wrong("release", "unknown", _("There is nothing with this number."))
    try:
        scope = replay_services.Scope.parse(body.scope)
    except ValueError:
        raise wrong("scope", "scope", _("Write all, import:ID, search:ID, corpus:ID or time:DAY..DAY.")) from None
    if not scope.exists():
        raise wrong("scope", "unknown", _("There is nothing with this number."))
    wait = limits.take(limits.REPLAYS, request.tenant.slug)
    if wait:
        raise Problem("too_many_requests", headers={"Retry-After": str(wait)})
    replay = replay_services.start_replay(
        tenant=request.tenant,
        by=request.person,
        scope=scope,
        rules=rule_set(request.tenant, drafts=body.rules == "drafts", release=release),
        title=body.title.strip(),
    )
    return json_answer(_replay_answer(replay), status=202)


@router.operation("GET", "/replays/{id}", KeyScope.RULES_READ, answers=ReplayAnswer)
def get_replay(request: ApiRequest, id: Id) -> ReplayAnswer:
    """One replay with the counts of each rule over what is done so far."""
    return _replay_answer(_replay(id))


@router.operation("POST", "/replays/{id}/stop", KeyScope.REPLAYS_RUN, answers=ReplayAnswer)
def stop_replay(request: ApiRequest, id: Id) -> ReplayAnswer:
    """Stop a replay; what is done stays, and the rest can be resumed."""
    stopped = replay_services.stop_replay(tenant=request.tenant, replay=_replay(id), by=request.person)
    return _replay_answer(stopped)


@router.operation("POST", "/replays/{id}/resume", KeyScope.REPLAYS_RUN, answers=ReplayAnswer)
def resume_replay(request: ApiRequest, id: Id) -> ReplayAnswer:
    """Go on with what is missing of a stopped or incomplete replay."""
    resumed = replay_services.resume_replay(tenant=request.tenant, replay=_replay(id), by=request.person)
    return _replay_answer(resumed)


@router.operation("GET", "/replays/{id}/findings", KeyScope.RULES_READ, answers=FindingList)
def list_findings(
    request: ApiRequest,
    id: Id,
    rule: Text = "",
    status: Literal["", "reproduced", "different", "new", "recorded_only", "newly", "gone"] = "",
    delta: Literal["", "newly", "gone", "same"] = "",
    lang: Text = "",
    verdict: Literal["", "right", "wrong", "unsure", "missed", "none"] = "",
    after: After = None,
) -> FindingList:
    """Where rules fired or nudges are recorded, in the order of the chats, fifty a page.

    `delta` is against the rule set that the replay is compared with; `none` as language or verdict means that there
    is none.
    """
    if status in ("newly", "gone"):
        status, delta = "", status
    wanted = replay_queries.FindingFilter(rule, status, delta, lang, verdict)
    rows, following = replay_queries.finding_page(_replay(id), wanted, after=after or "")
    items = []
    for row in rows:
        finding = row["finding"]
        items.append(
            FindingOut(
                key=row["key"],
                chat=row["chat"].pk,
                version=row["version"].number,
                message=finding.message,
                stage=finding.stage,
                turn=finding.turn,
                code=finding.code,
                recorded=finding.recorded,
                status=finding.status,
            )
        )
    return FindingList(items=items, next=following)


# --- loading what an address names, in the key's tenant


def _release(number: int) -> Release:
    found = Release.objects.select_related("by").filter(number=number).first()
    if found is None:
        raise Http404
    return found


def _release_answer(release: Release) -> ReleaseAnswer:
    entries = ReleaseEntry.objects.filter(release=release).select_related("version__rule").order_by("position")
    placed = [
        PlacedVersion(
            position=entry.position,
            code=entry.version.rule.code,
            version=entry.version.number,
            mode=entry.mode,
        )
        for entry in entries
    ]
    return ReleaseAnswer(release=ReleaseSummary.of(release), rules=placed)


def _rule(code: str) -> Rule:
    found = Rule.objects.filter(code=code).first() if "\x00" not in code else None
    if found is None:
        raise Http404
    return found


def _rules(codes: list[str]) -> list[Rule]:
    known = {rule.code: rule for rule in Rule.objects.filter(code__in=codes)}
    for n, code in enumerate(codes):
        if code not in known:
            raise wrong(f"rules[{n}]", "unknown", _("There is no rule with this code."))
    return [known[code] for code in dict.fromkeys(codes)]


def _rule_answer(rule: Rule) -> RuleAnswer:
    archived = rule.archived_at is not None
    row = next((row for row in rule_rows(archived=archived) if row.rule.pk == rule.pk), None)
    if row is None:
        raise Http404
    draft = RuleDraft.objects.filter(rule=rule).first()
    return RuleAnswer(rule=RuleSummary.of(row), draft=DraftOut.of(draft) if draft else None)


def _content(content: RuleContentIn) -> dict[str, Any]:
    return content.model_dump(exclude_none=True)


def _replay(pk: int) -> Replay:
    found = replay_queries.replays().filter(pk=pk).first()
    if found is None:
        raise Http404
    return found


def _replay_answer(replay: Replay) -> ReplayAnswer:
    rows, _others = replay_queries.rule_rows(replay)
    rules = [
        ReplayRule(
            code=row.code,
            stage="round" if row.stage == "round" else "final",
            counts={**row.counts, "recorded_only": row.recorded_only},
        )
        for row in rows
    ]
    return ReplayAnswer(replay=ReplayOut.of(replay), rules=rules)
