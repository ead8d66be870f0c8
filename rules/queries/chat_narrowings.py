"""Filters of the chat list that look at rules: where one fired, and what people said."""

from __future__ import annotations

from functools import lru_cache

from django.db.models import QuerySet
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django_scopes import get_scope

from chats.models import Chat, ChatVersion
from chats.queries.chats import with_ids
from chats.queries.narrowing import Narrowing, add_narrowing
from rules.models import RecordedNudge, Replay, Rule, Verdict
from rules.queries.nudges import codes
from rules.queries.replay_history import chosen_replay
from rules.queries.replays import findings

Choice = tuple[str, str | Promise]


def add_narrowings() -> None:
    """Offer the filters to the chat list."""
    add_narrowing(Narrowing("fired", _("Rule fired"), _fired_choices, _fired))
    add_narrowing(Narrowing("verdict", _("Verdict"), _verdict_choices, _verdict))


def _fired_choices() -> list[Choice]:
    known = set(codes()) | set(Rule.objects.filter(archived_at__isnull=True).values_list("code", flat=True))
    return [(code, code) for code in sorted(known)]


def _fired(found: QuerySet[Chat], code: str) -> QuerySet[Chat]:
    """Chats in which a nudge of that rule is recorded, or in which it fires in the newest finished replay."""
    ids = set(RecordedNudge.objects.filter(code=code, chat__isnull=False).values_list("chat", flat=True).distinct())
    replay = chosen_replay()
    if replay is not None:
        ids |= _fired_in(get_scope()["tenant"].pk, replay.pk, replay.result_digest, code)
    return with_ids(found, sorted(ids))


@lru_cache(maxsize=32)
def _fired_in(tenant: int, replay: int, digest: str, code: str) -> frozenset[int]:
    versions = {f.version for _key, f in findings(Replay.objects.get(pk=replay), code=code) if f.code == code}
    ids = sorted(versions)
    chats: set[int] = set()
    for at in range(0, len(ids), 900):
        chats.update(ChatVersion.objects.filter(pk__in=ids[at : at + 900]).values_list("chat_id", flat=True))
    return frozenset(chats)


def _verdict_choices() -> list[Choice]:
    return [
        ("any", _("any")),
        *((str(value), label) for value, label in Verdict.Value.choices),
        ("none", _("none yet")),
    ]


def _verdict(found: QuerySet[Chat], value: str) -> QuerySet[Chat]:
    """Chats with a verdict of anybody on one of their points."""
    said = Verdict.objects.filter(chat__isnull=False)
    if value == "none":
        return found.exclude(pk__in=said.values("chat"))
    if value != "any":
        said = said.filter(value=value)
    return found.filter(pk__in=said.values("chat"))
