"""Lint of chat templates: what the model will see, found by rendering small chats (chat-templates.md).

`lint` gives facts, which are plain observations about a template, and findings, which are what an author should look
at: a code, its arguments, a severity and, where texts differ, the two side by side. Sentences are made from the codes
in the reader's language. Runs in the worker process: standard library and jinja2 only.
"""

from chats.domain.chat_templates.lint.control_tokens import TypedToken, control_tokens, typed_tokens
from chats.domain.chat_templates.lint.linting import lint
from chats.domain.chat_templates.lint.report import Finding, LintReport, Sample, Severity

__all__ = ["Finding", "LintReport", "Sample", "Severity", "TypedToken", "control_tokens", "lint", "typed_tokens"]
