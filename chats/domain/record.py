"""A whole stored chat: the canonical form, the details beside each message, and what is known of the chat."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, model_validator

from chats.domain.base import BaseDataModel
from chats.domain.details import MessageDetails, OfferedTool
from chats.domain.header import EleanorFrameworkHeader
from chats.domain.messages import CanonicalChat


class ChatRecord(BaseDataModel):
    """What an importer produces and the database keeps (canonical-chat.md section 5).

    `details` has one entry a message, in the same order. `tools` is None when unknown and empty when none were
    offered. `external_id` is the id in the source; `identity_by_content` says that it names a task that many runs
    share, so that the messages decide whether two chats are the same (import-formats.md section 5).
    """

    chat: CanonicalChat
    details: list[MessageDetails] = Field(default_factory=list)
    tools: list[OfferedTool] | None = None
    step_budget: int | None = None
    require_delivery: bool | None = None
    audit_mode: bool | None = None
    chat_type: str | None = None
    header: EleanorFrameworkHeader | None = None
    external_id: str | None = None
    identity_by_content: bool = False
    title: str | None = None
    source_format: str = "eleanor-chat"
    metadata: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _details_match_messages(self) -> Self:
        if len(self.details) != len(self.chat.messages):
            raise ValueError(f"{len(self.chat.messages)} messages need as many details, not {len(self.details)}")
        return self
