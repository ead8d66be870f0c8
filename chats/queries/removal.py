"""What else would be touched when chats are deleted, for whoever is about to do it."""

from __future__ import annotations

import json
from collections.abc import Collection

from chats.models import Corpus, ImportJob

SHOWN = 20
BATCH = 500


def corpora_with(versions: Collection[int]) -> list[Corpus]:
    """The frozen corpora that would no longer be whole."""
    gone = set(versions)
    return [corpus for corpus in Corpus.objects.order_by("name") if not gone.isdisjoint(json.loads(corpus.members))]


def uploads_of(versions: Collection[int]) -> list[ImportJob]:
    """The imports whose uploaded files hold one of these versions still."""
    wanted = sorted(versions)
    found: dict[int, ImportJob] = {}
    for at in range(0, len(wanted), BATCH):
        jobs = ImportJob.objects.filter(chats__version__in=wanted[at : at + BATCH]).exclude(file="").distinct()
        found.update({job.pk: job for job in jobs.order_by("-pk")[:SHOWN]})
    return list(found.values())[:SHOWN]
