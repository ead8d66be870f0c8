"""The rows of the conversation side."""

from chats.models.chats import Chat, ChatVersion
from chats.models.corpora import Corpus
from chats.models.imports import ImportDeletion, ImportedChat, ImportJob
from chats.models.searches import ChatText, SavedSearch
from chats.models.wrappers import Wrapper, WrapperDraft, WrapperRevision, WrapperVersion

__all__ = [
    "Chat",
    "ChatText",
    "ChatVersion",
    "Corpus",
    "ImportDeletion",
    "ImportJob",
    "ImportedChat",
    "SavedSearch",
    "Wrapper",
    "WrapperDraft",
    "WrapperRevision",
    "WrapperVersion",
]
