"""Bounded worker processes for chat templates (chat-templates.md, "Limits").

A template may loop for ever or ask for all memory, while compiling as well as while rendering, and a thread cannot be
killed. So all of that happens in small processes that can. A pool belongs to one process, starts its workers when they
are first needed, keeps one more ready than it uses, and ends them with itself. It may be used from many threads, and
a child process that inherits it by `fork` starts workers of its own.
"""

from chats.template_pool.limits import Limits
from chats.template_pool.pool import TemplatePool, shared_pool

__all__ = ["Limits", "TemplatePool", "shared_pool"]
