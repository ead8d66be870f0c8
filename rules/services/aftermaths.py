"""Asking what came after the firings of a replay whose chunks don't tell it."""

from __future__ import annotations

from django.db import transaction

from eleanor_site.sending import send_on_commit
from eleanor_site.tenants.models import Tenant
from rules.models import Preparation, Replay
from rules.queries.preparations import wanted
from rules.queries.replay_aftermath import counting, untold_chunks
from rules.tasks import count_aftermath

# So many points are counted while somebody waits; more go to the background.
AT_ONCE = 20_000


@transaction.atomic
def prepare_aftermath(*, tenant: Tenant, replay: Replay) -> None:
    """Count it at once for a small replay, else in the background; nothing when it is known already."""
    left = counting(replay).left
    if left <= AT_ONCE:
        chunks = list(untold_chunks(replay).values_list("pk", flat=True))
        if chunks:
            from rules.chunks.aftermaths import count_chunk  # numeric libraries, on first use

            for pk in chunks:
                count_chunk(pk)
        return
    Replay.objects.filter(pk=replay.pk).update(aftermath_wanted=True)
    preparation = wanted(tenant, Preparation.Kind.AFTERMATH)
    if preparation is not None:
        send_on_commit(count_aftermath, preparation)
