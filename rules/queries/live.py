"""The live release as clients and `evaluate` use it: compiled once a process and release."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from chats.domain import ChatRecord
from eleanor_site.tenants.models import PromptLanguage, Tenant
from rules.domain.context import TurnContext
from rules.domain.deciding import replay, status_of
from rules.domain.language import Node, check
from rules.domain.live import LiveDecision, LiveRule, awaits_decision, decide_live
from rules.domain.nudges import KnownPrompts
from rules.domain.points import Point
from rules.domain.rule import ContinuationRule
from rules.domain.rule_set import BrokenRule, RuleSpec, compile_rule, rule_set_digest
from rules.domain.scalar import trace
from rules.domain.tools import ToolCatalogue, ToolEntry
from rules.domain.turns import walk
from rules.models import KnownPrompt, Release, ReleaseEntry
from rules.queries.manifests import catalogue_entries, defaults_of

KEPT: Final = 64


@dataclass(frozen=True)
class LiveEntry:
    """One rule of the live release, with what a client needs to say its nudge."""

    position: int
    code: str
    version: int
    version_id: int
    mode: str
    spec: RuleSpec
    titles: Mapping[str, str]
    prompts: Mapping[str, str]
    live: LiveRule | None
    tree: Node | None
    observe_until: datetime | None


@dataclass(frozen=True)
class LiveRelease:
    """A release, compiled. Immutable, as releases are. Number 0, without rules, holds before the first one."""

    number: int
    note: str
    published_at: datetime | None
    entries: tuple[LiveEntry, ...]
    digest: str

    @property
    def rules(self) -> list[LiveRule]:
        return [entry.live for entry in self.entries if entry.live is not None]

    def entry(self, code: str) -> LiveEntry | None:
        return next((entry for entry in self.entries if entry.code == code), None)


@dataclass(frozen=True)
class Evaluated:
    """A decision at one point. `point` is None when a context was given instead of a conversation."""

    stage: str
    context: TurnContext
    rules: tuple[LiveDecision, ...]
    point: Point | None = None

    @property
    def fired(self) -> str | None:
        return next((rule.code for rule in self.rules if rule.outcome == "fires"), None)

    @property
    def status(self) -> str | None:
        """How the decision compares with the history; None for a context."""
        return None if self.point is None else status_of(self.fired, self.point.next_nudge)


@dataclass(frozen=True)
class Conversation:
    """The decisions at all points of a conversation, and whether it waits for the last one."""

    decisions: list[Evaluated]
    awaits: bool


EMPTY: Final = LiveRelease(0, "", None, (), rule_set_digest(()))

_kept: OrderedDict[tuple[int, int, datetime | None], LiveRelease] = OrderedDict()
_lock = threading.Lock()


def live_release(tenant: Tenant) -> LiveRelease:
    """The tenant's live release. One small query; the rest is kept in the process by the release's id."""
    row = Release.objects.filter(status=Release.Status.LIVE).only("number", "note", "published_at").first()
    if row is None:
        return EMPTY
    # With its moment, since a database that was restored may give a number of its own time to another release.
    key = (tenant.pk, row.pk, row.published_at)
    with _lock:
        found = _kept.get(key)
        if found is not None:
            _kept.move_to_end(key)
            return found
    compiled = _compiled(row)
    with _lock:
        _kept[key] = compiled
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
    return compiled


def _compiled(release: Release) -> LiveRelease:
    rows = ReleaseEntry.objects.filter(release=release).select_related("version__rule").order_by("position")
    entries = tuple(_entry(row) for row in rows)
    active = [entry.spec for entry in entries if entry.mode == ReleaseEntry.Mode.LIVE]
    return LiveRelease(release.number, release.note, release.published_at, entries, rule_set_digest(active))


def _entry(row: ReleaseEntry) -> LiveEntry:
    version = row.version
    spec = RuleSpec(
        code=version.rule.code,
        stage="round" if version.stage == "round" else "final",
        max_nudges=version.max_nudges,
        expression=version.expression,
        prompt=version.prompt_en or version.prompt_fr,
        version=version.number,
    )
    rule = None
    if row.mode != ReleaseEntry.Mode.PAUSED:
        rule = LiveRule(_rule(spec), row.mode == ReleaseEntry.Mode.OBSERVE)
    return LiveEntry(
        position=row.position,
        code=spec.code,
        version=version.number,
        version_id=version.pk,
        mode=row.mode,
        spec=spec,
        titles={"en": version.title_en, "fr": version.title_fr},
        prompts={"en": version.prompt_en, "fr": version.prompt_fr},
        live=rule,
        tree=check(spec.expression, stage=spec.stage).tree,
        observe_until=row.observe_until,
    )


def _rule(spec: RuleSpec) -> ContinuationRule:
    try:
        return compile_rule(spec)
    except BrokenRule as broken:
        # Published rules have no error; one that a stricter check finds later must not stop the others.
        reason = str(broken)

    def never(ctx: TurnContext) -> bool:
        raise ValueError(reason)

    return ContinuationRule(spec.code, spec.max_nudges, never, spec.prompt, spec.stage)


# --- deciding


def evaluate_context(release: LiveRelease, ctx: TurnContext, stage: str) -> Evaluated:
    return Evaluated(stage, ctx, decide_live(release.rules, ctx, stage))


class Evaluator:
    """Decides conversations of one tenant: reads its catalogue and known prompts once, however many there are."""

    def __init__(self, tenant: Tenant, release: LiveRelease) -> None:
        self.release = release
        self.defaults = defaults_of(tenant)
        self.catalogue = ToolCatalogue([ToolEntry(**entry.model_dump()) for entry in catalogue_entries()])
        self.prompts = KnownPrompts(dict(KnownPrompt.objects.values_list("text_hash", "code")))

    def conversation(self, record: ChatRecord) -> Conversation:
        """Every point of the conversation, as a replay of it decides; observed rules beside it."""
        walked = walk(record, self.catalogue, self.prompts)
        rules = self.release.rules
        injecting = [live.rule for live in rules if not live.observed]
        found = []
        for decision in replay(walked, injecting, self.defaults):
            point, ctx = decision.point, decision.context
            found.append(Evaluated(point.stage, ctx, decide_live(rules, ctx, point.stage), point))
        return Conversation(found, awaits_decision(record, walked))


def traced(release: LiveRelease, evaluated: Evaluated) -> dict[str, Any]:
    """By code: the expression's tree with the value of each part."""
    trees = {}
    for decision in evaluated.rules:
        entry = release.entry(decision.code)
        if entry is not None and entry.tree is not None:
            trees[decision.code] = trace(entry.tree, evaluated.context).as_json()
    return trees


# --- the document that clients fetch


def release_document(tenant: Tenant, release: LiveRelease) -> dict[str, Any]:
    """All that a runtime needs to decide by itself: rules in order, prompts, tool catalogue and defaults."""
    return {
        "number": release.number,
        "note": release.note,
        "published_at": release.published_at.isoformat() if release.published_at else None,
        "rules_digest": release.digest,
        "prompt_language": PromptLanguage(tenant.prompt_language).value,
        "defaults": {
            "step_budget": tenant.step_budget,
            "require_delivery": tenant.require_delivery,
            "audit_mode": tenant.audit_mode,
        },
        "rules": [
            {
                "position": entry.position,
                "code": entry.code,
                "version": entry.version,
                "mode": entry.mode,
                "observe_until": entry.observe_until.isoformat() if entry.observe_until else None,
                "stage": entry.spec.stage,
                "max_nudges": entry.spec.max_nudges,
                "expression": entry.spec.expression,
                "titles": dict(entry.titles),
                "prompts": dict(entry.prompts),
            }
            for entry in release.entries
        ],
        "tools": [entry.model_dump() for entry in catalogue_entries()],
    }


def etag_of(document: Mapping[str, Any]) -> str:
    """A strong entity tag: the document's own digest."""
    text = json.dumps(document, ensure_ascii=False, sort_keys=True)
    return f'"{document["number"]}-{hashlib.sha256(text.encode()).hexdigest()[:32]}"'
