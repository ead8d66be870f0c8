"""Chat templates in the jinja2 sandbox (chat-templates.md): rendered as transformers does, explained, and linted.

Needs the standard library and jinja2 only, since the worker process (`chats/template_pool/worker.py`) loads it without
anything else of the product.

The sandbox keeps a template away from Python's internals, not from the processor: whoever renders a text that
somebody typed goes through `chats.template_pool`, which bounds time and memory.
"""

from chats.domain.chat_templates.compiling import CACHED_TEMPLATES, CompiledTemplate, TemplateCache, check
from chats.domain.chat_templates.failures import explain
from chats.domain.chat_templates.preparing import plain
from chats.domain.chat_templates.provenance import template_lines
from chats.domain.chat_templates.rendering import render, render_or_explain
from chats.domain.chat_templates.requests import (
    MAX_OUTPUT_CHARACTERS,
    MAX_TEMPLATE_BYTES,
    PASSED_NAMES,
    PROFILES,
    REASONING_FIELDS,
    SPECIAL_TOKEN_NAMES,
    LimitExceeded,
    Origin,
    Profile,
    Rendered,
    RenderRequest,
    TemplateFailure,
)
from chats.domain.chat_templates.selection import select_template
from chats.domain.chat_templates.serving import ServerHabits, as_served
from chats.domain.chat_templates.variables import TemplateVariable, undeclared_names, variables

__all__ = [
    "CACHED_TEMPLATES",
    "MAX_OUTPUT_CHARACTERS",
    "MAX_TEMPLATE_BYTES",
    "PASSED_NAMES",
    "PROFILES",
    "REASONING_FIELDS",
    "SPECIAL_TOKEN_NAMES",
    "CompiledTemplate",
    "LimitExceeded",
    "Origin",
    "Profile",
    "RenderRequest",
    "Rendered",
    "ServerHabits",
    "TemplateCache",
    "TemplateFailure",
    "TemplateVariable",
    "as_served",
    "check",
    "explain",
    "plain",
    "render",
    "render_or_explain",
    "select_template",
    "template_lines",
    "undeclared_names",
    "variables",
]
