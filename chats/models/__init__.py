"""The rows of the conversation side."""

from chats.models.chats import Chat, ChatVersion
from chats.models.corpora import Corpus, SavedSearch
from chats.models.imports import ImportedChat, ImportJob
from chats.models.wrappers import Wrapper, WrapperDraft, WrapperVersion

__all__ = [
    "Chat",
    "ChatVersion",
    "Corpus",
    "ImportJob",
    "ImportedChat",
    "SavedSearch",
    "Wrapper",
    "WrapperDraft",
    "WrapperVersion",
]
