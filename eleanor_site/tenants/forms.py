"""Forms about people."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from eleanor_site.tenants.models import DEFAULT_SCOPES, KeyScope, Membership, Role, Tenant, User


class SignInForm(forms.Form):
    email = forms.EmailField(
        label=_("E-mail address"), widget=forms.EmailInput(attrs={"autocomplete": "username", "autofocus": True})
    )
    password = forms.CharField(
        label=_("Password"), strip=False, widget=forms.PasswordInput(attrs={"autocomplete": "current-password"})
    )


class NewMemberForm(forms.Form):
    email = forms.EmailField(label=_("E-mail address"))
    role = forms.ChoiceField(label=_("Role"), choices=Role.choices)

    def clean_email(self) -> str:
        email: str = self.cleaned_data["email"].lower()
        if not User.objects.filter(email=email, is_active=True).exists():
            raise forms.ValidationError(_("Nobody with this address has an account yet. Ask your platform's staff."))
        return email


class RoleForm(forms.ModelForm[Membership]):
    class Meta:
        model = Membership
        fields = ("role",)


class GeneralForm(forms.ModelForm[Tenant]):
    """The tenant's defaults."""

    class Meta:
        model = Tenant
        fields = (
            "name",
            "prompt_language",
            "step_budget",
            "require_delivery",
            "audit_mode",
            "second_person",
            "precision_target",
            "observe_days",
        )
        labels = {  # noqa: RUF012
            "name": _("Name"),
            "prompt_language": _("Language of prompts"),
            "step_budget": _("Step budget per turn"),
            "require_delivery": _("Tasks must be delivered with tools"),
            "audit_mode": _("Audit mode"),
            "second_person": _("A second person approves each release"),
            "precision_target": _("Precision target"),
            "observe_days": _("Observing ends after"),
        }
        help_texts = {  # noqa: RUF012
            "step_budget": _("For chats that don't say how many answers a turn may have. Empty: unknown."),
            "require_delivery": _("For chats that don't say it."),
            "audit_mode": _("For chats that don't say it. More rounds of reading are normal then."),
            "precision_target": _("In percent. Rules below it are shown on the overview."),
            "observe_days": _("In days. The rule becomes a draft again then."),
        }

    def clean_precision_target(self) -> int:
        value: int = self.cleaned_data["precision_target"]
        if value > 100:
            raise forms.ValidationError(_("A share of more than 100 percent can't be reached."))
        return value

    def changed_values(self) -> dict[str, Any]:
        return {name: self.cleaned_data[name] for name in self.changed_data}


class NewKeyForm(forms.Form):
    """A new API key. Publishing isn't among the scopes that are ticked at first."""

    name = forms.CharField(
        label=_("Name"), max_length=80, help_text=_("Where the key is used, for example “support agent, production”.")
    )
    scopes = forms.MultipleChoiceField(
        label=_("What it may do"),
        choices=[(scope.value, scope.label) for scope in KeyScope],
        initial=[scope.value for scope in DEFAULT_SCOPES],
        widget=forms.CheckboxSelectMultiple,
    )
    days = forms.TypedChoiceField(
        label=_("Expires after"),
        coerce=int,
        initial=365,
        choices=[
            (30, _("30 days")),
            (90, _("90 days")),
            (365, _("one year")),
            (0, _("never, until it is revoked")),
        ],
    )

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if not name.isprintable():
            raise forms.ValidationError(_("The name holds a character that can't be shown."))
        return name

    def expires_at(self) -> datetime | None:
        days: int = self.cleaned_data["days"]
        return timezone.now() + timedelta(days=days) if days else None
