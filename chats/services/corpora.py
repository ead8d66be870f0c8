"""Freezing what a search finds as a corpus, which never changes (product.md section 5.5)."""

from __future__ import annotations

import json

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from chats.domain.corpora import corpus_digest
from chats.models import Chat, Corpus
from chats.queries.chats import newest_versions
from eleanor_site.audit.services import record
from eleanor_site.problems import Refused
from eleanor_site.tenants.models import Tenant, User


@transaction.atomic
def freeze(*, tenant: Tenant, by: User, name: str, chats: QuerySet[Chat]) -> Corpus:
    """Name the newest version of each of these chats for good, in the order in which they came in."""
    if not name:
        raise Refused(_("A corpus needs a name."))
    versions = list(newest_versions(chats).values_list("pk", "content_hash"))
    if not versions:
        raise Refused(_("No chat fits these filters, so there is nothing to freeze."))
    try:
        with transaction.atomic():
            corpus = Corpus.objects.create(
                tenant=tenant,
                by=by,
                name=name[:120],
                digest=corpus_digest(content for _pk, content in versions),
                members=json.dumps([pk for pk, _content in versions]),
                chat_count=len(versions),
            )
    except IntegrityError as error:
        raise Refused(_("A corpus has this name already. Choose another one.")) from error
    record(
        tenant=tenant,
        by=by,
        action="corpus.freeze",
        object_type="corpus",
        object_id=corpus.pk,
        object_label=corpus.name,
        after={"chats": corpus.chat_count, "digest": corpus.digest},
    )
    return corpus
