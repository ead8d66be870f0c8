"""What the conversation side's endpoints take and give. Chats travel in the exchange form (canonical-chat.md 5)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler

from chats.domain import ChatRecord
from chats.domain.details import MessageDetails, OfferedTool, ToolCall
from chats.domain.exchange import ExchangeError, Fault, from_exchange
from chats.domain.formats import Limits
from chats.domain.masking import masked, masked_id
from chats.domain.messages import CanonicalChat, CanonicalMessage
from chats.models import Chat, WrapperVersion
from chats.queries.wrappers import WrapperRow
from chats.storing import Stored
from eleanor_site.api_problems import FieldProblem, Problem, wrong

MOST_CHATS = 100
_LIMITS = Limits()


class ExchangeCall(ToolCall):
    """A call; a missing id is made up."""

    id: str | None = None  # type: ignore[assignment]


class ExchangeMessage(CanonicalMessage, MessageDetails):
    """A message with its details beside it."""

    tool_calls: list[ExchangeCall] | None = None  # type: ignore[assignment]


class ExchangeMessages(CanonicalChat):
    messages: list[ExchangeMessage] = Field(default_factory=list)  # type: ignore[assignment]


class ExchangeChat(BaseModel):
    """A chat in the exchange form. All but `format`, `version` and `chat` may be missing, which means unknown."""

    format: Literal["eleanor-chat"]
    version: Literal[1]
    external_id: str | None = None
    title: str | None = None
    tools: list[str | OfferedTool] | None = None
    step_budget: int | None = None
    require_delivery: bool | None = None
    audit_mode: bool | None = None
    chat_type: str | None = None
    metadata: dict[str, Any] | None = None
    chat: ExchangeMessages


class DescribedAs:
    """An object that we read ourselves, so that nothing in it is reordered; documented as if it were that model."""

    def __init__(self, model: type[BaseModel]) -> None:
        self.model = model

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        return handler(source)

    def __get_pydantic_json_schema__(self, schema: Any, handler: GetJsonSchemaHandler) -> Any:
        return handler(self.model.__pydantic_core_schema__)


Exchange = Annotated[dict[str, Any], DescribedAs(ExchangeChat)]


def read_chat(value: Any, path: str) -> ChatRecord:
    """The chat that stands at `path` of a body. Raises Problem with the path of each fault."""
    try:
        record = from_exchange(value)
    except ExchangeError as error:
        raise Problem("invalid", errors=[_field(fault, path) for fault in error.faults[:50]]) from None
    if len(record.chat.messages) > _LIMITS.messages:
        raise wrong(_join(path, "chat.messages"), "too_long", f"a chat has at most {_LIMITS.messages} messages")
    return record


def _field(fault: Fault, path: str) -> FieldProblem:
    told = ", ".join(f"{key}: {value}" for key, value in fault.args.items())
    return FieldProblem(path=_join(path, fault.path), code=fault.code, message=told or fault.code)


def _join(path: str, rest: str) -> str:
    return f"{path}.{rest}" if path and rest else path or rest


# --- answers


class ChatSummary(BaseModel):
    """A chat; the counts are those of its newest version.

    Lists show e-mail addresses, keys and tokens in `external_id` and `title` masked, as pages do; the chat itself,
    asked for by its `id`, has them as they are.
    """

    id: int
    external_id: str
    title: str
    format: str
    version: int
    language: str
    model: str
    messages: int
    turns: int
    round_points: int
    final_points: int
    nudges: int
    started_at: datetime | None
    updated_at: datetime

    @classmethod
    def of(cls, chat: Chat, *, listed: bool = False) -> ChatSummary:
        return cls(
            id=chat.pk,
            external_id=masked_id(chat.external_id) if listed else chat.external_id,
            title=masked(chat.title) if listed else chat.title,
            format=chat.format,
            version=chat.version_count,
            language=chat.language,
            model=chat.model,
            messages=chat.message_count,
            turns=chat.turn_count,
            round_points=chat.round_points,
            final_points=chat.final_points,
            nudges=chat.nudge_count,
            started_at=chat.started_at,
            updated_at=chat.updated_at,
        )


class ChatList(BaseModel):
    items: list[ChatSummary]
    next: str | None = Field(description="The cursor of the next page: send it as `after`. Null at the end.")


class ChatAnswer(BaseModel):
    """A chat with the content of one of its versions, in the exchange form."""

    chat: ChatSummary
    version: int
    content: dict[str, Any]


class ChatBatch(BaseModel):
    """One to a hundred chats. They are stored all or none."""

    model_config = ConfigDict(extra="forbid", strict=True)

    chats: list[Exchange] = Field(min_length=1, max_length=MOST_CHATS)


class StoredChat(BaseModel):
    """What became of a chat: `taken` (new), `updated` (a new version) or `unchanged`."""

    id: int
    external_id: str
    version: int
    outcome: Literal["taken", "updated", "unchanged"]

    @classmethod
    def of(cls, stored: Stored) -> StoredChat:
        return cls(
            id=stored.chat.pk,
            external_id=stored.chat.external_id,
            version=stored.version.number,
            outcome=stored.outcome.value,
        )


class StoredChats(BaseModel):
    chats: list[StoredChat]


class WrapperSummary(BaseModel):
    """A wrapper that a chat can be rendered with. `key` is what `render` takes; built-in ones have no version."""

    key: str
    label: str
    group: Literal["own", "built_in"]
    kind: str
    version: int | None
    has_draft: bool


class WrapperList(BaseModel):
    items: list[WrapperSummary]


class WrapperContent(BaseModel):
    """The fields of a wrapper. `settings`, `options`, `wording` and the like are objects; `template` is text."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model_name: str | None = Field(default=None, max_length=200)
    base: str | None = Field(default=None, max_length=60)
    settings: dict[str, Any] | None = None
    options: dict[str, Any] | None = None
    wording: dict[str, Any] | None = None
    template: str | None = None
    named_templates: dict[str, str] | None = None
    template_tokens: dict[str, Any] | None = None
    template_kwargs: dict[str, Any] | None = None
    template_profile: Literal["current", "classic"] | None = None
    serving: dict[str, Any] | None = None


class WrapperAnswer(BaseModel):
    wrapper: WrapperSummary
    revision: int = Field(description="The draft's revision, 0 when there is no draft. Send it when you save.")
    content: WrapperContent


class NewWrapper(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    slug: str = Field(max_length=60)
    name: str = Field(min_length=1, max_length=120)
    content: WrapperContent


class WrapperDraftIn(BaseModel):
    """Fields that are left out stay as they are."""

    model_config = ConfigDict(extra="forbid", strict=True)

    revision: int = Field(ge=0, le=2**31 - 1)
    name: str = Field(default="", max_length=120)
    content: WrapperContent


class WrapperVersionIn(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    revision: int = Field(ge=0, le=2**31 - 1)
    note: str = Field(min_length=1, max_length=2000)


class RenderIn(BaseModel):
    """What to render: a stored chat by id, or a conversation in the exchange form; up to a message, with a nudge."""

    model_config = ConfigDict(extra="forbid", strict=True)

    chat: int | None = Field(default=None, ge=1, le=2**63 - 1)
    conversation: Exchange | None = None
    upto: int | None = Field(default=None, ge=0, le=2**31 - 1, description="Index of the last message to render.")
    nudge: str | None = Field(default=None, max_length=20_000, description="Text to append as a user message.")


class RenderAnswer(BaseModel):
    """The prompt as the model reads it; `problem` says why there is none. `left_out` has no place in it."""

    text: str
    problem: str
    left_out: list[str]


def own_summary(row: WrapperRow) -> WrapperSummary:
    return WrapperSummary(
        key=row.wrapper.slug,
        label=row.wrapper.name,
        group="own",
        kind=row.wrapper.kind,
        version=row.content.number if isinstance(row.content, WrapperVersion) else None,
        has_draft=row.draft is not None,
    )
