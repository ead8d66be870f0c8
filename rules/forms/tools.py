"""The form of a tool catalogue entry: patterns are checked like those of expressions."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from rules.diagnostic_sentences import sentence
from rules.domain.language.diagnostics import Diagnostic
from rules.domain.language.patterns import built_in_sample, problem_in
from rules.domain.manifest import CatalogueEntry
from rules.forms.rules import ToolEntryForm
from rules.models import ToolEntry

PATTERNS = ("argument_pattern", "success_pattern", "failure_pattern")


class CatalogueEntryForm(ToolEntryForm):
    class Meta(ToolEntryForm.Meta):
        pass

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        for name in PATTERNS:
            problem = problem_in(data[name], built_in_sample()) if data.get(name) else None
            if problem is not None:
                self.add_error(name, sentence(Diagnostic(problem.code, 0, 0, problem.args)))
        if data.get("argument_pattern") and not data.get("argument"):
            self.add_error("argument", _("Name the argument that the pattern is looked for in."))
        for name, value in data.items():
            if isinstance(value, str) and "\x00" in value:
                self.add_error(name, _("The text holds a NUL character. Remove it."))
        return data

    def entry(self) -> CatalogueEntry:
        """The entry as the walker takes it."""
        return entry_of(ToolEntry(**self.cleaned_data))


def entry_of(row: ToolEntry) -> CatalogueEntry:
    return CatalogueEntry(**{name: getattr(row, name) for name in CatalogueEntry.model_fields})
