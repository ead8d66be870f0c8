"""The lint of a wrapper record as a page shows it: findings with sentences, the silenced ones apart."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from django.utils.translation import gettext as _

from chats.domain import ChatRecord
from chats.domain.chat_templates import TemplateFailure
from chats.domain.chat_templates.lint import Finding, Sample, typed_tokens
from chats.domain.history import template_input
from chats.domain.recipes import Recipe, RecipeError
from chats.domain.settings_lint import SettingsFinding, lint_settings
from chats.lint_sentences import SAMPLES, settings_sentence, template_sentence
from chats.models.wrappers import CONTENT_FIELDS
from chats.queries.wrappers import WrapperRow, corpus_facts, missing_cases, recipe_of
from chats.template_pool import shared_pool
from chats.wrapper_sentences import failure_sentence, problem_sentence

# What a chat must hold for a finding of a template to matter, as `missing_cases` names it.
CASES: Final = {
    **dict.fromkeys(("system_dropped", "system_refused", "late_system_dropped", "late_system_refused"), "system"),
    **dict.fromkeys(("developer_dropped", "developer_refused"), "developer"),
    **dict.fromkeys(("tools_ignored", "tools_refused", "tool_name_missing"), "tools"),
    **dict.fromkeys(("call_dropped", "call_refused", "tool_result_dropped"), "calls"),
    **dict.fromkeys(("text_arguments_encoded_twice", "text_arguments_refused", "text_arguments_differ"), "calls"),
    **dict.fromkeys(("null_content_refused", "null_content_printed"), "calls"),
    **dict.fromkeys(("reasoning_dropped", "reasoning_dropped_in_tool_loop"), "reasoning"),
}
_ORDER: Final = {"error": 0, "warning": 1, "info": 2}
_LIST_SECONDS: Final = 0.4
_KNOWN_STATES: Final = 500
# The same texts have the same findings, so they are looked for once a process: severity and code of each.
_known_states: dict[tuple[str, ...], list[tuple[str, str]] | None] = {}


@dataclass(frozen=True)
class LintItem:
    """A finding. `key` names it when it is silenced; `place` is what it links to (a path, or a template line)."""

    key: str
    severity: str
    sentence: str
    path: str = ""
    line: int | None = None
    chat: int | None = None
    finding: Finding | None = None
    reason: str = ""
    # No stored chat holds what this finding is about.
    not_met: bool = False

    @property
    def field_id(self) -> str:
        """The id of the form's field that the finding is about."""
        keys = [key for key in self.path.split(".") if not key.isdecimal()]
        return "f-" + "-".join(("s", *keys))

    @property
    def left_label(self) -> str:
        return self._label(self.finding.left if self.finding else None)

    @property
    def right_label(self) -> str:
        return self._label(self.finding.right if self.finding else None)

    @staticmethod
    def _label(sample: Sample | None) -> str:
        if sample is None:
            return ""
        name = str(SAMPLES.get(sample.about, sample.about))
        return _("%(chat)s: refused") % {"chat": name} if sample.failed else name


@dataclass(frozen=True)
class Lint:
    """What was found, errors first; those that the author answered for; why nothing could be found, if so."""

    items: list[LintItem] = field(default_factory=list)
    silenced: list[LintItem] = field(default_factory=list)
    problem: str = ""

    @property
    def worst(self) -> str:
        return self.items[0].severity if self.items else ""


def lint_of(recipe: Recipe, record: ChatRecord | None, silenced: Mapping[str, str]) -> Lint:
    """Everything found in the record, in the tenant's chats, and, for a template, in the chat that is previewed.

    What a template does to chats such as the tenant has none of is only good to know.
    """
    try:
        if recipe.is_template:
            missing = missing_cases()
            items = [_ranked(item, missing) for item in _template_items(recipe, record)]
        else:
            items = _settings_items(recipe)
    except RecipeError as error:
        return Lint(problem=problem_sentence(error.problems[0]))
    except _Failed as failed:
        return Lint(problem=failed.sentence)
    items.sort(key=lambda item: _ORDER.get(item.severity, 3))
    kept = [item for item in items if item.key not in silenced]
    answered = [_answered(item, silenced[item.key]) for item in items if item.key in silenced]
    return Lint(kept, answered)


def _answered(item: LintItem, reason: str) -> LintItem:
    return replace(item, reason=reason)


def _ranked(item: LintItem, missing: Collection[str]) -> LintItem:
    case = CASES.get(item.finding.code) if item.finding else None
    return replace(item, severity="info", not_met=True) if case in missing else item


@dataclass(frozen=True)
class LintState:
    """How many findings nobody has answered for yet, by severity; `problem` where there is nothing to lint."""

    errors: int = 0
    warnings: int = 0
    problem: bool = False


def lint_states(rows: Sequence[WrapperRow]) -> dict[int, LintState | None]:
    """By wrapper id, for lists: without what settings find in stored chats. None where there was no time to look."""
    until = time.monotonic() + _LIST_SECONDS
    missing = missing_cases() if any(not row.content.base for row in rows) else frozenset()
    return {row.wrapper.pk: _state(row, missing, late=time.monotonic() > until) for row in rows}


def _state(row: WrapperRow, missing: Collection[str], late: bool) -> LintState | None:
    content = row.content
    texts = tuple(getattr(content, name) for name in CONTENT_FIELDS)
    if texts not in _known_states:
        if late:
            return None
        if len(_known_states) >= _KNOWN_STATES:
            _known_states.clear()
        _known_states[texts] = _found(recipe_of(content), json.loads(content.silenced or "{}"))
    found = _known_states[texts]
    if found is None:
        return LintState(problem=True)
    left = [severity for severity, code in found if CASES.get(code) not in missing]
    return LintState(left.count("error"), left.count("warning"))


def _found(recipe: Recipe, silenced: Mapping[str, str]) -> list[tuple[str, str]] | None:
    """None where there is nothing to lint."""
    try:
        found = (
            _template_items(recipe, None)
            if recipe.is_template
            else [_settings_item(finding) for finding in lint_settings(recipe)]
        )
    except (RecipeError, _Failed):
        return None
    left = [item for item in found if item.key not in silenced]
    return [(item.severity, item.finding.code if item.finding else "") for item in left]


class _Failed(Exception):
    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence


def _settings_items(recipe: Recipe) -> list[LintItem]:
    return [_settings_item(finding) for finding in lint_settings(recipe, corpus_facts(recipe))]


def _settings_item(finding: SettingsFinding) -> LintItem:
    chat = finding.args.get("chat")
    return LintItem(finding.key, finding.severity, settings_sentence(finding), finding.dotted_path, chat=chat)


def _template_items(recipe: Recipe, record: ChatRecord | None) -> list[LintItem]:
    items = []
    texts = {"": recipe.template} if recipe.template else {}
    for name, text in {**texts, **recipe.named_templates}.items():
        report = shared_pool().lint(text, recipe.tokens, recipe.kwargs, recipe.profile)
        if isinstance(report, TemplateFailure):
            raise _Failed(failure_sentence(report))
        for finding in report.findings:
            line = finding.args.get("line")
            prefix = f"{name}: " if name else ""
            items.append(
                LintItem(
                    f"{name}/{finding.code}" if name else finding.code,
                    finding.severity,
                    prefix + template_sentence(finding),
                    path="template",
                    line=line if isinstance(line, int) else None,
                    finding=finding,
                )
            )
    return items + _typed_items(recipe, record)


def _typed_items(recipe: Recipe, record: ChatRecord | None) -> list[LintItem]:
    """Control tokens that stand in the previewed chat's own texts: those reach the prompt as tokens."""
    if record is None:
        return []
    given = template_input(record)
    found: dict[str, int | None] = {}
    for typed in typed_tokens(given.messages, recipe.template, recipe.tokens):
        found.setdefault(typed.token, given.message_indexes[typed.message])
    return [
        LintItem(
            f"typed_token:{token}",
            "warning",
            template_sentence(Finding("typed_token", 20, "warning", {"token": token, "message": (message or 0) + 1})),
        )
        for token, message in found.items()
    ]
