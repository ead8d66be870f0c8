"""What the deciding side's endpoints take and give."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from chats.api_types import Exchange
from eleanor_site.api_access import Moment
from rules.domain.context import TurnContext
from rules.models import RecordedNudge, Release, Replay, RuleDraft, RuleVersion
from rules.queries.rules import RuleRow

MOST_IN_A_BATCH = 1000
MOST_NUDGES = 1000

Stage = Literal["final", "round"]
Count = Annotated[int, Field(ge=0, le=2**31)]
Index = Annotated[int, Field(ge=0, le=2**31 - 1)]
Revision = Annotated[int, Field(ge=0, le=2**31 - 1)]
Id = Annotated[int, Field(ge=1, le=2**63 - 1)]


def _plain_code(code: str) -> str:
    if code != code.strip() or not code.isprintable():
        raise ValueError("a code has no white space at its ends and no control character")
    return code


Code = Annotated[str, Field(min_length=1, max_length=64), AfterValidator(_plain_code)]


class Strict(BaseModel):
    """Unknown fields are refused, and nothing is converted: a typo must not vanish."""

    model_config = ConfigDict(extra="forbid", strict=True)


# --- evaluate


class ContextIn(BaseModel):
    """The fields of a turn context; each may be left out (continuation.md section 6)."""

    model_config = ConfigDict(extra="forbid", strict=True)

    final_text: str = ""
    finish_reason: Literal["stop", "length", "tool_calls", "content_filter", "error"] | None = None
    user_text: str = ""
    tools_available: bool = False
    tool_calls_total: Count = 0
    tool_calls_since_user: Count = 0
    mutated: bool = False
    verified_after_mutation: bool = True
    verify_failed: bool = False
    no_progress_rounds: Count = 0
    read_only_rounds: Count = 0
    budget_low: bool = False
    require_delivery: bool = False
    audit_mode: bool = False
    nudges: dict[str, Count] = {}

    def turn_context(self) -> TurnContext:
        return TurnContext(**dict(self))


class EvaluateItem(Strict):
    """A context with its stage, or a conversation in the exchange form; exactly one of them."""

    stage: Stage = "final"
    context: ContextIn | None = None
    conversation: Exchange | None = None


class EvaluateIn(EvaluateItem):
    """One context or conversation, or a batch of them.

    `language` chooses the words of the nudge (the tenant's language without it). `trace` adds the value of each part
    of each expression. Of a conversation the last point is decided; `points: all` gives the others as well.
    """

    batch: list[EvaluateItem] | None = Field(default=None, min_length=1, max_length=MOST_IN_A_BATCH)
    language: Literal["en", "fr"] | None = None
    trace: bool = False
    points: Literal["last", "all"] = "last"


class NudgeToSay(BaseModel):
    """What the runtime appends as a user message: `prompt`, and the rule that wants it."""

    code: str
    version: int
    prompt: str
    language: Literal["en", "fr"]
    prompts: dict[str, str]
    max_nudges: int


class RuleOutcome(BaseModel):
    """What a rule of the stage came to. `observes`: an observed rule that would fire, were it live."""

    code: str
    version: int
    mode: Literal["live", "observe"]
    outcome: Literal["fires", "observes", "capped", "shadowed", "false"]
    problem: str | None = None
    trace: dict[str, Any] | None = None


class PointName(BaseModel):
    """Where in a conversation: turn from 0, and the index of the response."""

    turn: int
    message: int
    recorded: str | None = Field(description="The code of the nudge that the history holds right after it.")
    status: Literal["reproduced", "different", "new", "recorded_only"] | None


class DecisionOut(BaseModel):
    """`nudge` is null when no rule fires."""

    stage: Stage
    nudge: NudgeToSay | None
    rules: list[RuleOutcome]
    point: PointName | None = None
    context: dict[str, Any] | None = None


class Evaluation(BaseModel):
    """The answer for one item. `decision` is null for a conversation that doesn't wait for one.

    That is: it has no point yet, somebody spoke after the last one, or a call still lacks its result.
    """

    decision: DecisionOut | None
    points: list[DecisionOut] | None = None


class EvaluateAnswer(BaseModel):
    """`results` has one entry an item of the batch, in order; for a single item it has one entry."""

    release: int
    rules_digest: str
    results: list[Evaluation]


# --- release


class ReleaseRule(BaseModel):
    position: int
    code: str
    version: int
    mode: Literal["live", "observe", "paused"]
    observe_until: str | None
    stage: Stage
    max_nudges: int
    expression: str
    titles: dict[str, str]
    prompts: dict[str, str]


class ReleaseDefaults(BaseModel):
    step_budget: int | None
    require_delivery: bool
    audit_mode: bool


class ReleaseDocument(BaseModel):
    """The live release: rules in the order of evaluation, tool catalogue, defaults. Number 0: nothing is live yet."""

    number: int
    note: str
    published_at: str | None
    rules_digest: str
    prompt_language: Literal["en", "fr"]
    defaults: ReleaseDefaults
    rules: list[ReleaseRule]
    tools: list[dict[str, Any]]


class ReleaseSummary(BaseModel):
    number: int
    status: Literal["live", "superseded"]
    note: str
    based_on: int
    by: str | None
    published_at: datetime | None

    @classmethod
    def of(cls, row: Release) -> ReleaseSummary:
        return cls(
            number=row.number,
            status="live" if row.status == Release.Status.LIVE else "superseded",
            note=row.note,
            based_on=row.based_on,
            by=row.by.email if row.by else None,
            published_at=row.published_at,
        )


class ReleaseList(BaseModel):
    items: list[ReleaseSummary]
    next: str | None


class PlacedVersion(BaseModel):
    position: int
    code: str
    version: int
    mode: Literal["live", "observe", "paused"]


class ReleaseAnswer(BaseModel):
    release: ReleaseSummary
    rules: list[PlacedVersion]


class PublishIn(Strict):
    """Publish the drafts of these rules on top of the release that you saw (0: none)."""

    rules: list[Code] = Field(min_length=1, max_length=100)
    note: str = Field(min_length=1, max_length=2000)
    seen_release: Revision
    mode: Literal["live", "observe"] = "live"


class RollBackIn(Strict):
    seen_release: Revision
    note: str = Field(default="", max_length=2000)


class ModeIn(Strict):
    """`live` resumes a paused or observed rule; `out` takes it out of the release."""

    mode: Literal["live", "paused", "observe", "out"]
    seen_release: Revision
    note: str = Field(default="", max_length=2000)


# --- rules


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
    created_at: datetime
    content: RuleContentOut

    @classmethod
    def of(cls, row: RuleVersion) -> VersionOut:
        return cls(
            number=row.number,
            note=row.note,
            by=row.by.email if row.by else None,
            created_at=row.created_at,
            content=RuleContentOut.of(row),
        )


class VersionList(BaseModel):
    items: list[VersionOut]
    next: str | None


class NewRule(Strict):
    code: str = Field(min_length=1, max_length=64)
    content: RuleContentIn = RuleContentIn()
    note: str = Field(default="", max_length=2000)


class DraftIn(Strict):
    """`revision` is the one that you saw, 0 when there was no draft."""

    revision: Revision
    content: RuleContentIn


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


class CheckAnswer(BaseModel):
    valid: bool
    diagnostics: list[DiagnosticOut]


# --- nudges


class NudgeIn(Strict):
    """A nudge that a runtime gave, or that an observed rule would have given.

    The chat is named by `chat` (id) or `external_id`; one that isn't stored yet is connected when it comes.
    `message` is the index of the nudge in the chat, `point` that of the response before it. `external_key` is a name
    of your own: a nudge with a name that is known already is not taken again.
    """

    code: Code
    source: Literal["live", "observe"] = "live"
    chat: Id | None = None
    external_id: str | None = Field(default=None, min_length=1, max_length=300)
    message: Index | None = None
    point: Index | None = None
    turn: Index | None = None
    stage: Stage | None = None
    version: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    model: str = Field(default="", max_length=200)
    language: str = Field(default="", max_length=5)
    outcome: Literal["acted", "finished", "ignored"] | None = None
    at: Moment | None = None
    external_key: str = Field(default="", max_length=200)


class NudgesIn(Strict):
    """One to a thousand nudges. They are taken all or none."""

    nudges: list[NudgeIn] = Field(min_length=1, max_length=MOST_NUDGES)


class NudgesTaken(BaseModel):
    """How many were taken, and how many were known by their `external_key`."""

    taken: int
    known: int


class NudgeOut(BaseModel):
    id: int
    code: str
    source: Literal["import", "live", "observe"]
    chat: int | None
    chat_version: int | None
    message: int | None
    point: int | None
    turn: int | None
    stage: str
    version: int | None
    model: str
    language: str
    outcome: str
    at: datetime | None
    verdicts: list[str]

    @classmethod
    def of(cls, row: RecordedNudge, verdicts: list[str]) -> NudgeOut:
        return cls(
            id=row.pk,
            code=row.code,
            source=row.source,
            chat=row.chat_id,
            chat_version=row.chat_version.number if row.chat_version else None,
            message=row.message,
            point=row.point,
            turn=row.turn,
            stage=row.stage,
            version=row.version.number if row.version else None,
            model=row.model,
            language=row.language,
            outcome=row.outcome,
            at=row.at,
            verdicts=verdicts,
        )


class NudgeList(BaseModel):
    items: list[NudgeOut]
    next: str | None


# --- replays


class ReplayIn(Strict):
    """`rules` is `live`, `drafts` (the live release with all drafts in their places) or `release` with a number.

    `scope` is `all`, or `import:ID`, `search:ID`, `corpus:ID`, or `time:2026-01-01..2026-01-31` for the chats
    that began on these days, of which one may be left out.
    """

    title: str = Field(default="", max_length=200)
    rules: Literal["live", "drafts", "release"] = "live"
    release: Revision | None = None
    scope: str = Field(default="all", max_length=40)


class ReplayOut(BaseModel):
    id: int
    title: str
    status: Literal["queued", "running", "done", "stopped", "incomplete"]
    chunks_done: int
    chunks_total: int
    chats: int
    points: int
    fires: int
    name_digest: str
    result_digest: str
    created_at: datetime
    finished_at: datetime | None

    @classmethod
    def of(cls, row: Replay) -> ReplayOut:
        return cls(
            id=row.pk,
            title=row.title,
            status=row.status,
            chunks_done=row.chunks_done,
            chunks_total=row.chunks_total,
            chats=row.chats_total,
            points=row.points,
            fires=row.fires,
            name_digest=row.name_digest,
            result_digest=row.result_digest,
            created_at=row.created_at,
            finished_at=row.finished_at,
        )


class ReplayList(BaseModel):
    items: list[ReplayOut]
    next: str | None


class ReplayRule(BaseModel):
    code: str
    stage: Stage
    counts: dict[str, int | None]


class ReplayAnswer(BaseModel):
    """A replay with the counts of each rule over what is done so far."""

    replay: ReplayOut
    rules: list[ReplayRule]


class FindingOut(BaseModel):
    """A point where a rule fired, or where the history holds a nudge; without a stage, a nudge before any point."""

    key: str
    chat: int
    version: int
    message: int
    stage: Literal["final", "round", ""]
    turn: int
    code: str | None
    recorded: str | None
    status: str | None


class FindingList(BaseModel):
    items: list[FindingOut]
    next: str | None


class ToolOut(BaseModel):
    """An entry of the tenant's tool catalogue, which stands before the built-in one."""

    pattern: str
    kind: Literal["read", "verify", "other", "finish"]
    argument: str
    argument_pattern: str
    repeatable: bool
    success_pattern: str
    failure_pattern: str


class ToolList(BaseModel):
    items: list[ToolOut]
