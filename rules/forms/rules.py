"""Forms about rules. An expression with an error can be saved as a draft: nothing typed is lost."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from rules.differences import FIELD_LABELS
from rules.models import RuleDraft, ToolEntry
from rules.queries.codes import code_problem, taken

CONFLICT_PREFIX = "choice-"
"""Before a field's name: whose value a person chose for it on the conflict page (theirs, mine, or both written)."""


class RuleForm(forms.ModelForm[RuleDraft]):
    """The content of a draft. `revision` is the one that the person saw.

    On the conflict page each field comes with `choice-NAME`, and the values as `theirs-NAME`, `mine-NAME` and, for a
    text written from both, `both-NAME`.
    """

    revision = forms.IntegerField(widget=forms.HiddenInput, min_value=0, initial=0)

    class Meta:
        model = RuleDraft
        fields = (
            "title_en",
            "title_fr",
            "explanation_en",
            "explanation_fr",
            "stage",
            "max_nudges",
            "expression",
            "prompt_en",
            "prompt_fr",
        )
        labels = FIELD_LABELS
        help_texts = {  # noqa: RUF012
            "max_nudges": _("How often it may fire in one turn. 0 switches it off."),
            "expression": _("True at the points where the nudge is due."),
        }
        widgets = {  # noqa: RUF012
            "stage": forms.RadioSelect,
            "explanation_en": forms.Textarea(attrs={"rows": 2}),
            "explanation_fr": forms.Textarea(attrs={"rows": 2, "lang": "fr"}),
            "title_fr": forms.TextInput(attrs={"lang": "fr"}),
            "expression": forms.Textarea(attrs={"rows": 8, "spellcheck": "false", "autocapitalize": "off"}),
            "prompt_en": forms.Textarea(attrs={"rows": 5, "lang": "en"}),
            "prompt_fr": forms.Textarea(attrs={"rows": 5, "lang": "fr"}),
        }

    def __init__(self, data: QueryDict | None = None, *args: Any, **kwargs: Any) -> None:
        super().__init__(_chosen(data), *args, **kwargs)
        for name in ("expression", "prompt_en", "prompt_fr"):
            self.fields[name].strip = False  # type: ignore[attr-defined]
        self.fields["stage"].choices = [  # type: ignore[attr-defined]
            ("final", _("At a final answer: the response calls no tool")),
            ("round", _("After a tool round: the results are there, the work goes on")),
        ]

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        for name, value in data.items():
            # A form posts CRLF for text that was typed with LF.
            if isinstance(value, str):
                data[name] = value.replace("\r\n", "\n")
                if "\x00" in value:
                    self.add_error(name, _("The text holds a NUL character. Remove it."))
        return data


def _chosen(data: QueryDict | None) -> QueryDict | None:
    """The posted fields with each one that a person decided on the conflict page put in its place."""
    if data is None:
        return None
    found = data.copy()
    for key, choice in data.items():
        if key.startswith(CONFLICT_PREFIX) and choice in ("theirs", "mine", "both"):
            name = key.removeprefix(CONFLICT_PREFIX)
            found[name] = data.get(f"{choice}-{name}", "")
    return found


class NewRuleForm(RuleForm):
    code = forms.CharField(
        label=_("Code"),
        max_length=64,
        strip=False,
        help_text=_("Names the rule for good: in histories, releases and exports. For example ACME-01."),
    )

    field_order = ("code",)

    def clean_code(self) -> str:
        code: str = self.cleaned_data["code"]
        problem = code_problem(code) or taken(code)
        if problem:
            raise forms.ValidationError(problem)
        return code


class ToolEntryForm(forms.ModelForm[ToolEntry]):
    class Meta:
        model = ToolEntry
        fields = (
            "pattern",
            "kind",
            "repeatable",
            "argument",
            "argument_pattern",
            "success_pattern",
            "failure_pattern",
        )
        labels = {  # noqa: RUF012
            "pattern": _("Tool name pattern"),
            "kind": _("Kind"),
            "repeatable": _("Calling it again with the same arguments is normal"),
            "argument": _("Only if this argument …"),
            "argument_pattern": _("… matches this pattern"),
            "success_pattern": _("Success pattern"),
            "failure_pattern": _("Failure pattern"),
        }


class NoteForm(forms.Form):
    """A note for the history, and the release that the person decided on."""

    note = forms.CharField(
        label=_("Note"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=_("Why. Readers of the history will thank you."),
    )
    seen_release = forms.IntegerField(widget=forms.HiddenInput, min_value=0)


class PublishForm(NoteForm):
    """What is decided on the publish page."""

    mode = forms.ChoiceField(
        label=_("What it does there"),
        widget=forms.RadioSelect,
        choices=[
            ("live", _("Live: it nudges")),
            ("observe", _("Observe: it is evaluated and recorded, and never nudges; it ends by itself")),
        ],
        initial="live",
    )
    field_order = ("mode", "note")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        note = self.fields["note"]
        note.required = True
        note.help_text = _("Why, in at least one sentence. Readers of the history will thank you.")

    def name_what_ends(self, version: int) -> None:
        """Say in the choice itself that observing takes this version out, which nudges now."""
        instead = _(
            "Observe instead: version %(n)s stops nudging; the draft is evaluated and recorded, and never nudges"
        )
        live, (observe, _label) = self.fields["mode"].choices  # type: ignore[attr-defined]
        self.fields["mode"].choices = [live, (observe, instead % {"n": version})]  # type: ignore[attr-defined]

    def clean_note(self) -> str:
        note: str = self.cleaned_data["note"].strip()
        if len(note) < 3:
            raise forms.ValidationError(_("Say in a sentence why this change is made."))
        return note
