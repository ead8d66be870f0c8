"""The form of a schedule: which replay, under which rules, and when."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.dates import WEEKDAYS
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from rules.models import ReplaySchedule
from rules.queries.replays import finished

_DAILY = "daily"


class ScheduleForm(forms.Form):
    replay = forms.ChoiceField(
        label=gettext_lazy("Replay"),
        help_text=gettext_lazy("Its chats and settings are used each time, and its result is the baseline."),
    )
    name = forms.CharField(label=gettext_lazy("Name"), max_length=200)
    rules = forms.ChoiceField(label=gettext_lazy("Rules"), choices=ReplaySchedule.Rules.choices)
    weekday = forms.ChoiceField(label=gettext_lazy("Day"))
    hour = forms.IntegerField(
        label=gettext_lazy("Hour"), min_value=0, max_value=23, initial=3, help_text=gettext_lazy("0 to 23, in UTC.")
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.replays = {str(replay.pk): replay for replay in finished()}
        choices = [(pk, f"{replay} · #{pk}") for pk, replay in self.replays.items()]
        self.fields["replay"].choices = choices  # type: ignore[attr-defined]
        days = [(_DAILY, _("Every day")), *((str(n), _("Every %(day)s") % {"day": day}) for n, day in WEEKDAYS.items())]
        self.fields["weekday"].choices = days  # type: ignore[attr-defined]

    def chosen(self) -> dict[str, Any]:
        """What the service takes."""
        given = self.cleaned_data
        return {
            "replay": self.replays[given["replay"]],
            "name": given["name"].strip(),
            "rules": ReplaySchedule.Rules(given["rules"]),
            "weekday": None if given["weekday"] == _DAILY else int(given["weekday"]),
            "hour": given["hour"],
        }
