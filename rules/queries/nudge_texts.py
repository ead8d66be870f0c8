"""The prompts of the tenant's rules, for pages that show how a nudge reads."""

from __future__ import annotations

from chats.nudge_texts import NudgeText
from eleanor_site.tenants.models import PromptLanguage, Tenant
from rules.queries.rules import rule_rows


def rule_nudges(tenant: Tenant) -> list[NudgeText]:
    """Each rule's prompt in the tenant's language of prompts, else in the other one; drafts where nothing is live."""
    french_first = tenant.prompt_language == PromptLanguage.FRENCH
    found = []
    for row in rule_rows():
        texts = (row.content.prompt_en, row.content.prompt_fr)
        chosen = next((text for text in (reversed(texts) if french_first else texts) if text.strip()), "")
        found.append(NudgeText(row.rule.code, chosen))
    return found
