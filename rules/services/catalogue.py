"""Installing rules of the default catalogue into a tenant."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from eleanor_site.tenants.models import Tenant, User
from rules.domain.catalogue import default_rule_texts
from rules.models import Rule
from rules.services.drafts import create_rule


@transaction.atomic
def install(*, tenant: Tenant, by: User, codes: Sequence[str]) -> list[Rule]:
    """Make a draft of each of these catalogue rules that the tenant doesn't have yet, in the catalogue's order."""
    have = set(Rule.objects.values_list("code", flat=True))
    wanted = [t for t in default_rule_texts() if t.code in codes and t.code not in have]
    return [
        create_rule(
            tenant=tenant,
            by=by,
            code=text.code,
            content={
                "title_en": text.title_en,
                "title_fr": text.title_fr,
                "explanation_en": text.explanation_en,
                "explanation_fr": text.explanation_fr,
                "stage": text.stage,
                "max_nudges": text.max_nudges,
                "expression": text.expression,
                "prompt_en": text.prompt_en,
                "prompt_fr": text.prompt_fr,
            },
        )
        for text in wanted
    ]
