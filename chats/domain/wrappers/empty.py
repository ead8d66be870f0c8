"""Empty: the base rendering, role names in front of every message (chat-wrappers.md section 7.8)."""

from __future__ import annotations

from typing import Final

from chats.domain.history_items import SystemItem, UserItem
from chats.domain.llama_text import Piece
from chats.domain.wrappers.base import ChatWrapper, Frame, Unit

_ROLES: Final = {"SystemItem": "system: ", "UserItem": "user: ", "ModelItem": "model: "}


class EmptyChatWrapper(ChatWrapper):
    """No special tokens, no stop triggers: a format for looking at, and the base of the others."""

    wrapper_name = "Empty"

    def write_unit(self, out: list[Piece], unit: Unit, first: bool, last: bool, frame: Frame) -> None:
        item = unit[0]
        if not first:
            out.append("\n")
        out.append(_ROLES[type(item).__name__])
        if isinstance(item, SystemItem):
            out.extend(item.text.values)
        elif isinstance(item, UserItem):
            out.append(item.text)
        else:
            self.write_response(out, item.response)
