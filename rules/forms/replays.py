"""The form that starts a replay: which chats, which rules, what to compare with, and what holds for silent chats."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from chats.models import Corpus, ImportJob, SavedSearch
from eleanor_site.jobs import Status
from eleanor_site.tenants.models import Tenant
from rules.domain.points import Defaults
from rules.domain.rule_set import RuleSpec, rule_set_digest
from rules.models import Release
from rules.queries.replays import Compared
from rules.queries.rules import live_number, rule_set
from rules.queries.segments import Scope

_YES_NO = (("", gettext_lazy("As the tenant's setting")), ("yes", gettext_lazy("Yes")), ("no", gettext_lazy("No")))
_LISTED = 50
_TIME = "time"


class ReplayForm(forms.Form):
    scope = forms.ChoiceField(label=gettext_lazy("Chats"), required=False)
    since = forms.DateField(
        label=gettext_lazy("From (UTC day)"),
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
    )
    until = forms.DateField(
        label=gettext_lazy("To (UTC day)"),
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
    )
    rules = forms.ChoiceField(label=gettext_lazy("Rules"), required=False)
    compare = forms.ChoiceField(label=gettext_lazy("Compare with"), required=False)
    step_budget = forms.IntegerField(
        label=gettext_lazy("Step budget of chats that say nothing"), required=False, min_value=1, max_value=10_000
    )
    require_delivery = forms.ChoiceField(
        label=gettext_lazy("Delivery required where chats don't say"), required=False, choices=_YES_NO
    )
    audit_mode = forms.ChoiceField(
        label=gettext_lazy("Audit mode where chats don't say"), required=False, choices=_YES_NO
    )
    title = forms.CharField(label=gettext_lazy("Title"), required=False, max_length=200)

    def __init__(self, tenant: Tenant, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.tenant = tenant
        self.live = rule_set(tenant, drafts=False)
        chosen = self.chosen_scope()
        self._choices("scope", _scopes(str(chosen)))
        if chosen.kind == "time" and not self.is_bound:
            self.initial = {**self.initial, "scope": _TIME, "since": chosen.since, "until": chosen.until}
        sets = _rule_sets(tenant, self.live)
        self._choices("rules", sets)
        self._choices("compare", [("", _("Nothing")), *((key, label) for key, label in sets if key != "drafts")])
        self.fields["rules"].initial = self.initial.get("rules") or ("live" if self.live else "drafts")
        self.fields["compare"].initial = "live" if self.live else ""
        if tenant.step_budget is not None:
            self.fields["step_budget"].widget.attrs["placeholder"] = str(tenant.step_budget)

    def _choices(self, name: str, choices: list[tuple[str, str]]) -> None:
        self.fields[name].choices = choices  # type: ignore[attr-defined]

    @property
    def choices_of_rules(self) -> list[forms.BoundField]:
        return [self["rules"], self["compare"]]

    def chosen_scope(self) -> Scope:
        """The scope that is picked, or named by the address; all chats for one that isn't there."""
        given = str((self.data if self.is_bound else self.initial).get("scope") or "all")
        if given == _TIME:
            days = (self.data if self.is_bound else self.initial).get
            given = f"time:{days('since') or ''}..{days('until') or ''}"
        try:
            scope = Scope.parse(given)
        except ValueError:
            return Scope()
        return scope if scope.exists() else Scope()

    def clean(self) -> None:
        given = self.cleaned_data
        since, until = given.get("since"), given.get("until")
        if given.get("scope") != _TIME or self.errors:
            return
        if not since and not until:
            self.add_error("since", _("Say from when, or up to when."))
        elif since and until and since > until:
            self.add_error("until", _("This day is before the first one."))

    def chosen_rules(self) -> list[RuleSpec]:
        return _specs(self.tenant, self.cleaned_data["rules"] or ("live" if self.live else "drafts"))

    def chosen_comparison(self) -> Compared | None:
        """The rule set to compare with; None when none is wanted or when it decides like the one that is replayed."""
        wanted = self.cleaned_data["compare"] if "compare" in self.data else "live"
        specs = _specs(self.tenant, wanted) if wanted else []
        if not specs or rule_set_digest(specs) == rule_set_digest(self.chosen_rules()):
            return None
        number = live_number() if wanted == "live" else int(wanted)
        return Compared(_("release %(n)s") % {"n": number}, specs)

    def chosen_defaults(self) -> Defaults:
        answers = {"yes": True, "no": False}
        return Defaults(
            self.cleaned_data["step_budget"],
            answers.get(self.cleaned_data["require_delivery"]),
            answers.get(self.cleaned_data["audit_mode"]),
        )


def _scopes(chosen: str) -> list[tuple[str, str]]:
    """All chats, then saved searches, frozen corpora and the newest imports; the chosen one is always among them."""
    found = [(str(Scope()), Scope().name())]
    found += [
        (str(Scope("search", row.pk)), _("Search: %(name)s") % {"name": row.name})
        for row in SavedSearch.objects.order_by("name")[:_LISTED]
    ]
    found += [
        (str(Scope("corpus", row.pk)), _("Corpus: %(name)s") % {"name": row.name})
        for row in Corpus.objects.defer("members").order_by("name")[:_LISTED]
    ]
    found += [
        (str(Scope("import", row.pk)), _("Import: %(name)s") % {"name": row.file_name})
        for row in ImportJob.objects.filter(status=Status.DONE).order_by("-id")[:_LISTED]
    ]
    found.append((_TIME, _("Chats of a time")))
    if chosen not in dict(found) and not chosen.startswith("time:"):
        found.append((chosen, Scope.parse(chosen).name()))
    return found


def _rule_sets(tenant: Tenant, live: list[RuleSpec]) -> list[tuple[str, str]]:
    found = []
    if live:
        text = ngettext("The live release: %(n)s rule", "The live release: %(n)s rules", len(live))
        found.append(("live", text % {"n": len(live)}))
    drafts = len(rule_set(tenant, drafts=True))
    text = ngettext("With drafts in their places: %(n)s rule", "With drafts in their places: %(n)s rules", drafts)
    found.append(("drafts", text % {"n": drafts}))
    older = Release.objects.filter(status=Release.Status.SUPERSEDED).order_by("-number")[:_LISTED]
    return found + [(str(row.number), _("Release %(n)s") % {"n": row.number}) for row in older]


def _specs(tenant: Tenant, chosen: str) -> list[RuleSpec]:
    if chosen.isdecimal():
        return rule_set(tenant, drafts=False, release=Release.objects.get(number=int(chosen)))
    return rule_set(tenant, drafts=chosen == "drafts")
