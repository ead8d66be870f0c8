"""The form in which chats travel (canonical-chat.md section 5), and reading it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, GetCoreSchemaHandler, GetJsonSchemaHandler

from chats.domain import ChatRecord
from chats.domain.details import MessageDetails, OfferedTool, ToolCall
from chats.domain.exchange import ExchangeError, Fault, from_exchange
from chats.domain.formats import Limits
from chats.domain.messages import CanonicalChat, CanonicalMessage
from eleanor_site.api_problems import FieldProblem, Problem, wrong

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
