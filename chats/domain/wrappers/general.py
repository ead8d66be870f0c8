"""General, Alpaca and Falcon: roles as titles in words (chat-wrappers.md sections 10.2 to 10.4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from chats.domain.history_items import Functions, HistoryItem, ModelItem, UserItem
from chats.domain.llama_text import LlamaText, Piece
from chats.domain.wrappers.base import ChatWrapper, Frame, Unit, WrapperOptions
from chats.domain.wrappers.context_state import ContextState
from chats.domain.wrappers.grouping import grouped_alone, write_systems
from chats.domain.wrappers.pieces import BOS, EOS, has_content, special, texts


class TitleOptions(WrapperOptions):
    """Titles of the roles, and whether special tokens are recognised in them."""

    user_message_title: str
    model_response_title: str
    middle_system_message_title: str
    allow_special_tokens_in_titles: bool = False


class GeneralOptions(TitleOptions):
    user_message_title: str = "Human"
    model_response_title: str = "Assistant"
    middle_system_message_title: str = "System"


class AlpacaOptions(TitleOptions):
    """The wrapper adds a colon to each title."""

    user_message_title: str = "Instruction"
    model_response_title: str = "Response"
    middle_system_message_title: str = "System"


class FalconOptions(TitleOptions):
    user_message_title: str = "User"
    model_response_title: str = "Assistant"
    middle_system_message_title: str = "System"


_OPENING: Final = (BOS,)


class GeneralChatWrapper(ChatWrapper):
    """`### TITLE` above each message. Titles are ordinary words, so content can imitate them."""

    wrapper_name = "General"
    options_model: ClassVar[type[WrapperOptions]] = GeneralOptions

    def _prepare(self) -> None:
        super()._prepare()
        options: Any = self.options
        self._user = self._title(options.user_message_title)
        self._model = self._title(options.model_response_title)
        self._system = self._title(options.middle_system_message_title)
        self._gap = self._marked("\n\n")
        self._stop = self.title_triggers()

    def title_text(self, title: str) -> str:
        """The title as it stands in the prompt, without what marks it."""
        return title

    def _title(self, title: str) -> Piece:
        return self._marked(f"### {self.title_text(title)}\n")

    def _marked(self, text: str) -> Piece:
        return special(text) if self.options.allow_special_tokens_in_titles else text

    def title_triggers(self) -> list[LlamaText]:
        """Stop triggers: the titles at the start of a line or paragraph."""
        options: Any = self.options
        titles = [options.user_message_title, options.model_response_title, options.middle_system_message_title]
        spellings = [f"{gap}### {self.title_text(title)}" for title in titles for gap in ("", "\n", "\n\n")]
        triggers = texts(EOS, special("<end>"), "<end>", *spellings)
        if options.allow_special_tokens_in_titles:
            triggers += texts(*[special(spelling) for spelling in spellings])
        return triggers

    def frame(self, history: Sequence[HistoryItem], functions: Functions | None, document_params: bool) -> Frame:
        items = self.add_available_functions_system_message_to_history(history, functions, document_params)
        return Frame(items, functions, document_params, _OPENING)

    def units(self, items: Sequence[HistoryItem]) -> list[Unit]:
        return grouped_alone(items)

    def write_unit(self, out: list[Piece], unit: Unit, first: bool, last: bool, frame: Frame) -> None:
        content: list[Piece] = []
        item = unit[0]
        if isinstance(item, ModelItem):
            self.write_response(content, item.response)
            if last or has_content(content):
                out.append(self._model)
                out.extend(content)
                if not last:
                    out.append(self._gap)
            return
        if isinstance(item, UserItem):
            content.append(item.text)
        else:
            write_systems(content, unit)
        if has_content(content):
            if isinstance(item, UserItem):
                out.append(self._user)
            elif not first:
                out.append(self._system)
            out.extend(content)
            out.append(self._gap)
        if last:
            out.append(self._model)

    def state(self, context_text: LlamaText, frame: Frame) -> ContextState:
        return ContextState(context_text, self._stop)


class AlpacaChatWrapper(GeneralChatWrapper):
    """General with a colon after each title."""

    wrapper_name = "AlpacaChat"
    options_model = AlpacaOptions

    def title_text(self, title: str) -> str:
        return f"{title}:"


class FalconChatWrapper(GeneralChatWrapper):
    """`TITLE: ` in front of each message, on the same line."""

    wrapper_name = "Falcon"
    options_model = FalconOptions

    def _title(self, title: str) -> Piece:
        return self._marked(f"{title}: ")

    def title_triggers(self) -> list[LlamaText]:
        options: Any = self.options
        titles = [options.user_message_title, options.model_response_title, options.middle_system_message_title]
        spellings = [f"\n{title}:" for title in titles]
        triggers = texts(EOS, *spellings)
        if options.allow_special_tokens_in_titles:
            triggers += texts(*[special(spelling) for spelling in spellings])
        return triggers
