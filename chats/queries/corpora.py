"""Reading frozen corpora, and checking that they are what they were."""

from __future__ import annotations

import json
from dataclasses import dataclass

from django.db.models import QuerySet

from chats.domain.corpora import corpus_digest
from chats.models import Chat, ChatVersion, Corpus
from chats.queries.chats import with_ids

BATCH = 900


@dataclass(frozen=True)
class CorpusCheck:
    """How many of a corpus's chat versions are still there, and whether they give its digest."""

    held: int
    missing: int
    same_digest: bool


def members(corpus: Corpus) -> list[int]:
    """The ids of its chat versions, in the order in which they are replayed."""
    found: list[int] = json.loads(corpus.members)
    return found


def chats_in(corpus: Corpus) -> QuerySet[Chat]:
    """Its chats, in the order in which they came in."""
    versions = ChatVersion.objects.filter(pk__in=members(corpus)).values_list("chat_id", flat=True)
    return with_ids(Chat.objects.order_by("id"), versions)


def check(corpus: Corpus) -> CorpusCheck:
    """Read the content hashes of all members again."""
    ids = members(corpus)
    hashes: dict[int, str] = {}
    for at in range(0, len(ids), BATCH):
        rows = ChatVersion.objects.filter(pk__in=ids[at : at + BATCH])
        hashes.update(rows.values_list("pk", "content_hash"))
    digest = corpus_digest(hashes.get(pk, "") for pk in ids)
    return CorpusCheck(len(hashes), len(ids) - len(hashes), digest == corpus.digest)
