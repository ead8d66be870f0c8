"""What `release`, `evaluate` and `nudges` take and give: the words of live use."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from chats.api.exchange import Exchange
from eleanor_site.api_values import Id, Index, Moment, Strict
from rules.domain.context import TurnContext

MOST_IN_A_BATCH = 1000
MOST_NUDGES = 1000

Stage = Literal["final", "round"]
Count = Annotated[int, Field(ge=0, le=2**31)]


def _plain_code(code: str) -> str:
    if code != code.strip() or not code.isprintable():
        raise ValueError("a code has no white space at its ends and no control character")
    return code


Code = Annotated[str, Field(min_length=1, max_length=64), AfterValidator(_plain_code)]


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
