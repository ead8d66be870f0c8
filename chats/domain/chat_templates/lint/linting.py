"""Facts and findings about a template."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from chats.domain.chat_templates import Profile, TemplateCache, check
from chats.domain.chat_templates.lint.checks import CHECKS, MAX_VARIANTS
from chats.domain.chat_templates.lint.evidence import Evidence, sample_of
from chats.domain.chat_templates.lint.facts import FACTS
from chats.domain.chat_templates.lint.report import Finding, LintReport

# What can be said about a template that renders nothing.
_CHECKS_OF_TEXT = frozenset({1, 17, 19})


def lint(
    text: str,
    tokens: Mapping[str, str],
    kwargs: Iterable[str] = (),
    profile: Profile = "current",
) -> LintReport:
    """Facts and findings about a template.

    `tokens` are the model's special tokens, `kwargs` the names of the arguments that it will be given. A template
    that doesn't compile has the one finding that says so.
    """
    cache = TemplateCache(MAX_VARIANTS)
    failure = check(text, profile, cache)
    if failure is not None:
        where = {} if failure.line is None else {"line": failure.line}
        return LintReport({}, (Finding("does_not_compile", 1, "error", where, sample_of("template", failure)),))
    evidence = Evidence(text, tokens, kwargs, profile, cache)
    facts = {name: observe(evidence) for name, observe in FACTS.items()}
    findings = tuple(finding for find in CHECKS for finding in find(evidence, facts))
    if not facts["renders_user_turn"]:
        # Every probe failed for the same reason, which is told once.
        findings = tuple(f for f in findings if f.check in _CHECKS_OF_TEXT)
    return LintReport(facts, findings)
