"""The form of a webhook."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _

from eleanor_site.webhooks.models import Event


class WebhookForm(forms.Form):
    url = forms.CharField(
        label=_("Address"),
        max_length=500,
        widget=forms.URLInput(attrs={"placeholder": "https://example.org/eleanor"}),
        help_text=_("Events are posted there as JSON, signed with the webhook's secret."),
    )
    events = forms.MultipleChoiceField(
        label=_("Events"),
        choices=[(event.value, event.label) for event in Event],
        initial=[event.value for event in Event],
        widget=forms.CheckboxSelectMultiple,
    )


class ChangeWebhookForm(WebhookForm):
    active = forms.BooleanField(label=_("Switched on"), required=False)
