"""Forms about chats."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _

from chats.domain.formats import FORMATS
from chats.domain.formats.text_protocols import PROTOCOLS


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

    text_protocol = forms.ChoiceField(
        label=_("Calls written as text"),
        required=False,
        help_text=_("For agents that write their calls into their answers. Check the file first to see which fits."),
    )
    encoding = forms.ChoiceField(
        label=_("Characters"),
        required=False,
        choices=[("", _("Unicode")), ("latin-1", _("Western European (Latin-1)"))],
        help_text=_("Only for old files whose accents come out wrong."),
    )

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        formats = [("", _("Find it by content")), *((f.id, f.label) for f in FORMATS)]
        self.fields["format"].choices = formats  # type: ignore[attr-defined]
        protocols = [("", _("Leave them as text")), *((p.id, p.label) for p in PROTOCOLS.values())]
        self.fields["text_protocol"].choices = protocols  # type: ignore[attr-defined]


class RetentionForm(forms.Form):
    days = forms.IntegerField(
        label=_("Keep chats for"),
        required=False,
        min_value=1,
        max_value=36_500,
        help_text=_(
            "In days, counted from when a chat came in or last went on. Empty: for ever. Older ones are deleted every "
            "hour, with their uploaded files; the counts of nudges, verdicts and replays stay."
        ),
    )
