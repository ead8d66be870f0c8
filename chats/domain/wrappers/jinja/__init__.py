"""Chat wrappers made from chat templates (chat-wrappers.md section 12)."""

from chats.domain.wrappers.jinja.options import JinjaOptions
from chats.domain.wrappers.jinja.wrapper import JinjaTemplateChatWrapper

__all__ = ["JinjaOptions", "JinjaTemplateChatWrapper"]
