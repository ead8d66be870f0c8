"""Live use: the release, and decisions, which are the engine's own. What was said is reported at `/nudges`.

Answers of `evaluate` and `release` are written by hand, since they are asked for at every step of an agent.
"""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpResponse
from django.utils.http import parse_etags
from django.utils.translation import gettext as _

from chats.api.exchange import read_chat
from eleanor_site.api_access import ApiRequest, KeyRouter
from eleanor_site.api_problems import wrong
from eleanor_site.tenants.models import KeyScope, PromptLanguage
from rules.api.live_types import (
    EvaluateAnswer,
    EvaluateIn,
    EvaluateItem,
    ReleaseDocument,
)
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

router = KeyRouter(tags=["live use"])


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
