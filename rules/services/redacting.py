"""Redacting chats by pattern or by message: what is found, and the change itself (`chats.services.redacting`).

Patterns are RE2 with the limits of expressions (rule-engine.md section 2.3), which is why this stands on the deciding
side; and only here it is known which messages are nudges by their text, so that they stay nudges without it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from chats.domain import ChatRecord
from chats.domain.redaction import REDACTED, Place, Redaction, Spans, without_matches, without_messages
from chats.models import Chat, ChatVersion
from chats.queries.chats import newest_versions
from chats.services.redacting import Redacted, Redactor, redact, redactions
from eleanor_site.problems import Refused
from eleanor_site.tenants.models import Tenant, User
from rules.diagnostic_sentences import sentence
from rules.domain.language.diagnostics import Diagnostic
from rules.domain.language.patterns import compiled, problem_in
from rules.domain.nudges import KnownPrompts
from rules.domain.tools import ToolCatalogue, ToolEntry
from rules.domain.turns import walk
from rules.models import KnownPrompt
from rules.queries.manifests import catalogue_entries

MOST_LOOKED_AT = 3_000
PLACES_SHOWN = 50
# As wide as a character, so that places stay where they are.
_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class FoundChat:
    """A chat in which something would be replaced, and the first places of it."""

    chat: Chat
    version: ChatVersion
    places: list[Place]
    count: int


@dataclass(frozen=True)
class Preview:
    """What would be replaced, in how many chats of those that were looked at. `seen` names their versions.

    `shown` has the first fifty places. `last` is the chat to go on from when there are more than were looked at.
    """

    shown: list[FoundChat]
    seen: Mapping[int, int]
    places: int
    looked_at: int
    last: int | None


def pattern_problem(pattern: str) -> str:
    """Why the pattern is refused, in the reader's language; empty when it is good."""
    if not pattern:
        return _("Write a pattern, or choose a message.")
    found = problem_in(pattern)
    if found is not None:
        start, end = found.at or (0, len(pattern))
        return sentence(Diagnostic(found.code, start, end, found.args))
    if compiled(pattern).search("") is not None:
        return _("This pattern matches nothing at all, so it would be found everywhere. Make it need a character.")
    return ""


def redactor_of(pattern: str, chosen: Collection[int] = ()) -> Redactor:
    """What takes out all that these messages say, and everything that the pattern finds, in texts of any length.

    Messages that a chat doesn't have are passed over. Refused for a pattern with a problem, and for neither of the two.
    """
    problem = pattern_problem(pattern) if pattern or not chosen else ""
    if problem:
        raise Refused(problem)

    def redactor(record: ChatRecord) -> Redaction:
        first = without_messages(record, [n for n in chosen if 0 <= n < len(record.chat.messages)])
        if not pattern:
            return first
        then = without_matches(first.record, lambda text: _spans(pattern, text))
        places = sorted([*first.places, *then.places], key=lambda place: (place.message is None, place.message or 0))
        return Redaction(then.record, places)

    return _keeping_nudges(redactor)


def _spans(pattern: str, text: str) -> Spans:
    spans = [match.span() for match in compiled(pattern).finditer(_SURROGATES.sub("\ufffd", text))]
    return [(start, end) for start, end in spans if start < end and text[start:end] != REDACTED]


def preview(chats: QuerySet[Chat], redactor: Redactor, *, after: int = 0) -> Preview:
    """What the redactor finds in the newest versions of these chats, the ones behind `after` and 3,000 at most."""
    versions = newest_versions(chats.filter(pk__gt=after).order_by("pk"))
    ids = list(versions.values_list("chat_id", "pk")[: MOST_LOOKED_AT + 1])
    shown: list[FoundChat] = []
    seen: dict[int, int] = {}
    places = 0
    for version, redaction in redactions([pk for _chat, pk in ids[:MOST_LOOKED_AT]], redactor):
        room = max(0, PLACES_SHOWN - places)
        if room:
            shown.append(FoundChat(version.chat, version, list(redaction.places[:room]), len(redaction.places)))
        seen[version.chat_id] = version.number
        places += len(redaction.places)
    last = ids[MOST_LOOKED_AT - 1][0] if len(ids) > MOST_LOOKED_AT else None
    return Preview(shown, seen, places, min(len(ids), MOST_LOOKED_AT), last)


def redact_chats(
    *, tenant: Tenant, by: User, seen: Mapping[int, int], pattern: str, chosen: Collection[int] = ()
) -> Redacted:
    """Take everything that the pattern finds, and these messages, out of these chats, of which `seen` names the
    versions. The change log doesn't tell the pattern, which may be what somebody wanted to be forgotten."""
    how = "pattern" if pattern else "messages"
    return redact(tenant=tenant, by=by, seen=seen, redactor=redactor_of(pattern, chosen), how=how)


def _keeping_nudges(redactor: Callable[[ChatRecord], Redaction]) -> Redactor:
    """A nudge that is known by its text only is marked as one before the text goes, so that turns stay as they are."""
    prompts = KnownPrompts(dict(KnownPrompt.objects.values_list("text_hash", "code")))
    catalogue = ToolCatalogue([ToolEntry(**entry.model_dump()) for entry in catalogue_entries()])

    def kept(record: ChatRecord) -> Redaction:
        found = redactor(record)
        if found.messages:
            for nudge in walk(record, catalogue, prompts).nudges:
                details = found.record.details[nudge.message]
                if nudge.message in found.messages and details.nudge_code is None:
                    details.nudge_code = nudge.code
        return found

    return kept
