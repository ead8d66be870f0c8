"""Exceptions of jinja2, Python and the sandbox, told as values (chat-templates.md, "Errors")."""

from __future__ import annotations

import re

import jinja2
import jinja2.ext

from chats.domain.chat_templates.requests import LimitExceeded, TemplateFailure

_TEMPLATE_FILE = "<template>"
ADDRESS = re.compile(r" at 0x[0-9a-f]{6,}")
_MAX_MESSAGE_CHARACTERS = 100_000


def explain(error: Exception) -> TemplateFailure:
    """An exception as a value: kind, class, message and template line (chat-templates.md, "Errors")."""
    name = type(error).__name__
    if isinstance(error, LimitExceeded):
        return TemplateFailure("limit", name, "", None, error.limit, error.args_by_name)
    if isinstance(error, MemoryError):
        return TemplateFailure("limit", name, "", _line_of(error), "memory")
    if isinstance(error, RecursionError):
        return TemplateFailure("limit", name, _words(error), _line_of(error), "depth")
    if isinstance(error, jinja2.TemplateSyntaxError):
        return TemplateFailure("syntax", name, error.message or "", error.lineno)
    line = _line_of(error)
    if type(error) is jinja2.TemplateError:
        return TemplateFailure("message", name, _words(error), line)
    if isinstance(error, SyntaxError):
        # Python refuses what jinja2 wrote, such as too many blocks inside each other; its line is of that code.
        return TemplateFailure("syntax", name, error.msg, None)
    return TemplateFailure("input" if line is None else "error", name, _words(error), line)


def _words(error: Exception) -> str:
    try:
        text = str(error)
    except Exception:
        # A message may be any value of the template, and printing one may fail again.
        return ""
    return ADDRESS.sub(" at 0xADDR", text)[:_MAX_MESSAGE_CHARACTERS]


def _line_of(error: BaseException) -> int | None:
    """The line of the innermost template frame that the error passed through; None if it passed none."""
    found = None
    at = error.__traceback__
    while at is not None:
        if at.tb_frame.f_code.co_filename == _TEMPLATE_FILE:
            found = at
        at = at.tb_next
    if found is None:
        return None
    template = found.tb_frame.f_globals.get("__jinja_template__")
    # Without the template's own frame jinja2 has rewritten the traceback, and the line is the text's already.
    return template.get_corresponding_lineno(found.tb_lineno) if template is not None else found.tb_lineno
