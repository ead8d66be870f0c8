"""What is stored beside a canonical message: calls, outcomes, reasoning, and where it came from."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import AwareDatetime, Field

from chats.domain.base import BaseDataModel

FinishReason = Literal["stop", "length", "tool_calls", "content_filter", "error"]
ResultStatus = Literal["ok", "error", "not_run"]


class ToolCall(BaseDataModel):
    """One call in an answer. Exactly one of `arguments` (an object) and `arguments_raw` (text that is none) is set."""

    id: str
    name: str
    arguments: dict[str, Any] | None = None
    arguments_raw: str | None = None


class OfferedTool(BaseDataModel):
    """A tool that the model was offered."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None


class MessageDetails(BaseDataModel):
    """Stored one-to-one with a message (canonical-chat.md section 5). Absent means unknown."""

    tool_calls: list[ToolCall] = Field(default_factory=list)
    finish_reason: FinishReason | None = None
    finish_reason_raw: str | None = None
    reasoning: str | None = None
    result_status: ResultStatus | None = None
    exit_code: int | None = None
    nudge_code: str | None = None
    created_at: AwareDatetime | None = None
    model: str | None = None
    usage: dict[str, Any] | None = None
    parts: list[dict[str, Any]] | None = None
    source_ref: str | None = None
