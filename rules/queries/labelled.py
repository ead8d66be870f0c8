"""Points that people have judged, as a gate: what was right stays so (product.md goal V7)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.utils.translation import gettext as _

from chats.models import Chat, ChatVersion
from eleanor_site.tenants.models import Tenant
from rules.domain.rule_set import BrokenRule, RuleSpec, compile_rules
from rules.models import Verdict
from rules.queries.manifests import manifest_of
from rules.queries.rule_tests import decision_at, outcome_of

MOST_LABELS: Final = 150
_MUST_FIRE: Final = {Verdict.Value.RIGHT: True, Verdict.Value.MISSED: True, Verdict.Value.WRONG: False}


@dataclass(frozen=True)
class Label:
    """A point on which people agree: whether the rule must fire there, and whether it does, now and after the edit."""

    chat: Chat
    point: str
    must_fire: bool
    fires_live: bool
    fires: bool

    @property
    def turns_red(self) -> bool:
        return self.fires is not self.must_fire and self.fires_live is self.must_fire

    @property
    def chat_id(self) -> int:
        return self.chat.pk

    @property
    def sentence(self) -> str:
        return (
            _("judged: should fire, and no longer would") if self.must_fire else _("judged: should not fire, and would")
        )


def labels_of(tenant: Tenant, code: str, edited: Sequence[RuleSpec], live: Sequence[RuleSpec]) -> list[Label]:
    """The newest judged points of a rule under both rule sets; those about which people disagree are left out."""
    said: dict[tuple[int, int, str], set[bool]] = defaultdict(set)
    verdicts = Verdict.objects.filter(code=code, value__in=list(_MUST_FIRE), chat_version__isnull=False)
    for row in verdicts.order_by("-pk").values_list("chat_version", "message", "stage", "value")[: 3 * MOST_LABELS]:
        said[(row[0], row[1], row[2])].add(_MUST_FIRE[Verdict.Value(row[3])])
    agreed = [(place, values.pop()) for place, values in said.items() if len(values) == 1][:MOST_LABELS]
    if not agreed:
        return []
    manifest = manifest_of(tenant, edited, [])
    try:
        rules, before = compile_rules(edited), compile_rules(live)
    except BrokenRule:
        return []
    versions = (
        ChatVersion.objects.select_related("chat").defer("content").in_bulk([place[0] for place, _fires in agreed])
    )
    found = []
    for (version_id, message, stage), must_fire in agreed:
        version = versions.get(version_id)
        if version is None:
            continue
        after = decision_at(tenant, version, message, stage, rules, manifest)
        now = decision_at(tenant, version, message, stage, before, manifest)
        if after is None or now is None:
            continue
        fires, fires_live = (outcome_of(d, code) == "fires" for d in (after, now))
        found.append(Label(version.chat, f"{message}-{stage}", must_fire, fires_live, fires))
    return found
