"""Canonical interoperability models: one message, one chat (canonical-chat.md sections 2 and 3)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, Self, TypeVar

from pydantic import Field, model_validator

from chats.domain.base import BaseDataModel
from chats.domain.header import EleanorFrameworkHeader

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

ROLE_AI = "assistant"
ROLE_HUMAN = "user"
ROLE_SYSTEM = "system"
ROLE_TOOL = "tool"

T = TypeVar("T")
Placement = Literal["append", "before_system_content", "after_system_content"]


class CanonicalMessage(BaseDataModel):
    """One message. `tool_call_id` is meant for the role `tool` and ignored elsewhere."""

    content: str
    role: str
    name: str | None = None
    tool_call_id: str | None = None
    fewshot_example: bool = False

    @model_validator(mode="after")
    def check_name_if_fewshot_example(self) -> Self:
        """A few-shot example needs a name, since some templates render it by name."""
        if self.fewshot_example and self.name is None:
            raise ValueError("a few-shot example needs a name")
        return self


class CanonicalChat(BaseDataModel):
    """A conversation. An empty one is false in a condition; iterate over `messages`, not over the chat."""

    messages: list[CanonicalMessage] = Field(default_factory=list)
    ai_name: str | None = None
    ai_role: str = ROLE_AI
    human_role: str = ROLE_HUMAN
    system_role: str = ROLE_SYSTEM

    @property
    def ai_messages(self) -> list[CanonicalMessage]:
        return [m for m in self.messages if m.role == self.ai_role]

    @property
    def human_messages(self) -> list[CanonicalMessage]:
        return [m for m in self.messages if m.role == self.human_role]

    @property
    def system_messages(self) -> list[CanonicalMessage]:
        return [m for m in self.messages if m.role == self.system_role]

    @property
    def human_and_ai_messages(self) -> list[CanonicalMessage]:
        return [m for m in self.messages if m.role in (self.human_role, self.ai_role)]

    @property
    def ai_turns(self) -> int:
        return len(self.ai_messages)

    @property
    def human_turns(self) -> int:
        return len(self.human_messages)

    @property
    def system_turns(self) -> int:
        return len(self.system_messages)

    @property
    def all_turns(self) -> int:
        """Messages of the person and the AI; system and tool messages are left out."""
        return len(self.human_and_ai_messages)

    def __len__(self) -> int:
        return len(self.messages)

    def __getitem__(self, key: int | slice) -> CanonicalChat:
        """A chat with that message or slice; the list is new, the messages are the same objects.

        Raises IndexError out of range and TypeError for anything but an integer or a slice (booleans included).
        """
        if isinstance(key, slice):
            return self._with(self.messages[key])
        if isinstance(key, int) and not isinstance(key, bool):
            return self._with([self.messages[key]])
        raise TypeError(f"a chat is indexed by an integer or a slice, not {type(key).__name__}")

    def _with(self, messages: list[CanonicalMessage]) -> CanonicalChat:
        part = CanonicalChat(
            ai_name=self.ai_name, ai_role=self.ai_role, human_role=self.human_role, system_role=self.system_role
        )
        part.messages = messages
        return part

    def append_human(self, content: str, name: str | None = None, override_role: str | None = None) -> None:
        self.messages.append(CanonicalMessage(content=content, name=name, role=override_role or self.human_role))

    def append_ai(self, content: str, name: str | None = None, override_role: str | None = None) -> None:
        self.messages.append(CanonicalMessage(content=content, name=name, role=override_role or self.ai_role))

    def append_header(self, header: EleanorFrameworkHeader) -> None:
        self.append_system(header.to_header())

    def append_system(
        self,
        content: str,
        name: str | None = None,
        placement: Placement = "append",
        system_msg_patterns: str | list[str] | None = None,
    ) -> None:
        """Add a system message at the end, or around the run of system messages that starts the chat.

        Patterns count for `after_system_content` only: the message goes behind the last one of that run that any of
        them fits. Raises ValueError for another placement or an invalid pattern, with the chat unchanged.
        """
        if placement not in ("append", "before_system_content", "after_system_content"):
            raise ValueError(f"placement must be append, before_system_content or after_system_content: {placement!r}")
        at = len(self.messages)
        if placement == "before_system_content":
            at = 0
        elif placement == "after_system_content":
            at = self._end_of_system_content(system_msg_patterns)
        self.messages.insert(at, CanonicalMessage(content=content, name=name, role=self.system_role))

    def _end_of_system_content(self, patterns: str | list[str] | None) -> int:
        wanted = [patterns] if isinstance(patterns, str) else patterns or []
        try:
            compiled = [re.compile(p) for p in wanted]
        except (re.error, OverflowError, RecursionError) as error:  # the last two: a repetition or nesting too large
            raise ValueError(f"invalid pattern: {error}") from error
        end = 0
        while end < len(self.messages) and self.messages[end].role == self.system_role:
            end += 1
        for i in range(end - 1, -1, -1):
            if any(p.search(self.messages[i].content) for p in compiled):
                return i + 1
        return end

    @staticmethod
    def from_single(text: str) -> CanonicalChat:
        """A chat with one system message, for completion-style requests."""
        chat = CanonicalChat()
        chat.append_system(text)
        return chat

    def parse_system_message(
        self, pattern: str, default: T, parser: Callable[[tuple[str, ...]], T]
    ) -> tuple[CanonicalMessage | None, T, int | None]:
        """The first system message that the pattern fits, what the parser makes of its groups, and its index.

        A parser that raises gives the default with the message, so that the caller can still remove a broken header.
        No match gives (None, default, None). Raises re.error for an invalid pattern.
        """
        compiled = re.compile(pattern, re.DOTALL)
        for i, message in enumerate(self.messages):
            if message.role != self.system_role:
                continue
            found = compiled.search(message.content.strip())
            if found is None:
                continue
            try:
                return message, parser(found.groups()), i
            except Exception:  # whatever a caller's parser raises means that the header is broken
                return message, default, i
        return None, default, None

    def to_langchain(self) -> list[BaseMessage]:
        """The messages as LangChain classes. Raises ImportError naming the extra, ValueError for a result without id.

        A bare chat has no stored calls; `chats.domain.langchain_messages.to_langchain` takes the details too.
        """
        from chats.domain.langchain_messages import to_langchain

        return to_langchain(self)
