"""Forms about chats."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _

from chats.domain.formats import FORMATS


class ImportForm(forms.Form):
    file = forms.FileField(
        label=_("File"),
        allow_empty_file=True,
        help_text=_("JSON, JSON Lines, CSV, Parquet, or an archive of them (zip, gzip). Up to 512 MB."),
    )
    format = forms.ChoiceField(
        label=_("Format"), required=False, help_text=_("Usually found by itself, by looking at the content.")
    )
    all_branches = forms.BooleanField(
        label=_("Make a chat of each branch"),
        required=False,
        help_text=_("For formats that keep alternatives. Otherwise the selected branch is taken."),
    )

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        choices = [("", _("Find it by content")), *((f.id, f.label) for f in FORMATS)]
        self.fields["format"].choices = choices  # type: ignore[attr-defined]
