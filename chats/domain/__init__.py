"""The public names of the conversation side. Plain Python: no Django anywhere below this package."""

from chats.domain.details import MessageDetails, OfferedTool, ToolCall
from chats.domain.header import EleanorFrameworkHeader, SessionResourceSettings
from chats.domain.messages import ROLE_AI, ROLE_HUMAN, ROLE_SYSTEM, ROLE_TOOL, CanonicalChat, CanonicalMessage
from chats.domain.record import ChatRecord

__all__ = [
    "ROLE_AI",
    "ROLE_HUMAN",
    "ROLE_SYSTEM",
    "ROLE_TOOL",
    "CanonicalChat",
    "CanonicalMessage",
    "ChatRecord",
    "EleanorFrameworkHeader",
    "MessageDetails",
    "OfferedTool",
    "SessionResourceSettings",
    "ToolCall",
]
