"""Endpoints of the conversation side. Each calls the service or query that its page calls."""

from chats.api.chats import router as chats
from chats.api.corpora import router as corpora
from chats.api.imports import router as imports
from chats.api.searches import router as searches
from chats.api.wrapper_previews import router as wrapper_previews
from chats.api.wrapper_versions import router as wrapper_versions
from chats.api.wrappers import router as wrappers

# Fixed words stand before ids and names: `/wrappers/which` is no wrapper.
ROUTERS = (chats, imports, searches, corpora, wrapper_previews, wrapper_versions, wrappers)
