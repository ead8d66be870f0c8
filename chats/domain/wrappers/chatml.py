"""ChatML (chat-wrappers.md section 10.1)."""

from __future__ import annotations

from collections.abc import Sequence

from chats.domain.history_items import Functions, HistoryItem, ModelItem, SystemItem, UserItem
from chats.domain.llama_text import Piece
from chats.domain.wrappers.base import ChatWrapper, Frame, Unit
from chats.domain.wrappers.grouping import grouped_alone, write_systems
from chats.domain.wrappers.pieces import BOS, EOS, has_content, special, texts

SYSTEM = special("<|im_start|>system\n")
USER = special("<|im_start|>user\n")
ASSISTANT = special("<|im_start|>assistant\n")
END = special("<|im_end|>\n")
STOP = texts(EOS, special("<|im_end|>"), "<|im_end|>")


class ChatMLChatWrapper(ChatWrapper):
    """Turns between `<|im_start|>ROLE` and `<|im_end|>`."""

    wrapper_name = "ChatML"
    stop_triggers = STOP
    opening: Sequence[Piece] = (BOS,)

    def frame(self, history: Sequence[HistoryItem], functions: Functions | None, document_params: bool) -> Frame:
        items = self.add_available_functions_system_message_to_history(history, functions, document_params)
        return Frame(items, functions, document_params, self.opening)

    def units(self, items: Sequence[HistoryItem]) -> list[Unit]:
        return grouped_alone(items)

    def write_unit(self, out: list[Piece], unit: Unit, first: bool, last: bool, frame: Frame) -> None:
        content: list[Piece] = []
        item = unit[0]
        if isinstance(item, ModelItem):
            self.write_model(content, item, last, frame)
            if last or has_content(content):
                out.append(ASSISTANT)
                out.extend(content)
                if not last:
                    out.append(END)
            return
        if isinstance(item, UserItem):
            content.append(item.text)
        else:
            write_systems(content, unit)
        if has_content(content):
            out.append(SYSTEM if isinstance(item, SystemItem) else USER)
            out.extend(content)
            out.append(END)
        if last:
            out.append(ASSISTANT)

    def write_model(self, out: list[Piece], item: ModelItem, last: bool, frame: Frame) -> None:
        """The text of a model item; `last` if the history ends with it."""
        self.write_response(out, item.response)
