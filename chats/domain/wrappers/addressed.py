"""Formats in which a response is several messages, each with an address: a channel in Harmony, a recipient in Muse.

Where the answer to a chat has no address yet, the model writes it, so prefix triggers tell what the answer is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from chats.domain.history_items import FunctionCall, ModelItem, ResponseEntry, SystemItem, UserItem
from chats.domain.js_json import ABSENT
from chats.domain.llama_text import LlamaText, Piece, SpecialTokensText
from chats.domain.wrappers.base import ChatWrapper, Frame, Unit
from chats.domain.wrappers.pieces import special

START_ASSISTANT = "<|start|>assistant"


class AddressedChatWrapper(ChatWrapper):
    """What Harmony and Muse share; they say how a response and a later system message are written."""

    inserts_names = True
    user_start: ClassVar[SpecialTokensText]
    message_end: ClassVar[SpecialTokensText]

    def write_messages(
        self,
        out: list[Piece],
        response: Sequence[ResponseEntry],
        use_raw: bool,
        last_item: bool,
        keep_only_last_thought: bool,
    ) -> bool:
        """Append the response; True if what follows it has no address yet, so that prefix triggers are needed."""
        raise NotImplementedError

    def write_late_system(self, out: list[Piece], item: SystemItem) -> None:
        """Append the start of a system message that isn't the first message."""
        raise NotImplementedError

    def without_end(self, text: str) -> str:
        """The last special text of a response without the end of its message."""
        raise NotImplementedError

    def write_unit(self, out: list[Piece], unit: Unit, first: bool, last: bool, frame: Frame) -> None:
        item = unit[0]
        if isinstance(item, ModelItem):
            self.write_messages(out, item.response, True, last, self.options.keep_only_last_thought)
            return
        if isinstance(item, UserItem):
            out.append(self.user_start)
            out.append(item.text)
        else:
            self.write_late_system(out, item)
        if not last:
            out.append(self.message_end)

    def result_text(self, call: FunctionCall) -> str:
        return "" if call.result is ABSENT else super().result_text(call)

    def generate_model_response_text(self, response: Sequence[ResponseEntry], use_raw: bool = True) -> LlamaText:
        """A response as it continues a history: without the beginning and the end that the history has."""
        out: list[Piece] = []
        self.write_messages(out, response, use_raw, last_item=False, keep_only_last_thought=False)
        values = list(LlamaText.of(out).values)
        if values and isinstance(values[0], SpecialTokensText):
            values[0] = special(values[0].value.removeprefix(START_ASSISTANT))
        if len(values) > 1 and isinstance(values[-1], SpecialTokensText):
            values[-1] = special(self.without_end(values[-1].value))
        return LlamaText.of(values)

    def needs_triggers(self, frame: Frame) -> bool:
        """Whether the chat ends where the model has yet to say what its answer is."""
        if not frame.items:
            return True
        last = frame.items[-1]
        return isinstance(last, ModelItem) and self.write_messages(
            [], last.response, True, True, self.options.keep_only_last_thought
        )
