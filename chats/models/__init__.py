"""The rows of the conversation side."""

from chats.models.chats import Chat, ChatVersion
from chats.models.corpora import Corpus
from chats.models.imports import ImportedChat, ImportJob
from chats.models.searches import ChatText, SavedSearch
from chats.models.wrappers import Wrapper, WrapperDraft, WrapperVersion

__all__ = [
    "Chat",
    "ChatText",
    "ChatVersion",
    "Corpus",
    "ImportJob",
    "ImportedChat",
    "SavedSearch",
    "Wrapper",
    "WrapperDraft",
    "WrapperVersion",
]
