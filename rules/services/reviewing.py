"""Judging firings and points, and making the queues in which people do it (product.md section 5.9)."""

from __future__ import annotations

import hashlib
import heapq
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from chats.models import Chat, ChatVersion
from chats.queries.chats import newest_versions, record_of
from eleanor_site.audit.models import Entry
from eleanor_site.audit.services import record
from eleanor_site.problems import Refused
from eleanor_site.tenants.models import Tenant, User
from rules.domain.deciding import Decision
from rules.domain.deciding import replay as replay_chat
from rules.domain.manifest import Manifest
from rules.domain.rule_set import compile_rules
from rules.domain.turns import walk
from rules.models import Replay, ReviewItem, ReviewQueue, Verdict
from rules.models.rules import Stage
from rules.queries.replays import findings, manifest

# More than anybody labels in one sitting.
MOST_ITEMS = 500
CHATS_WALKED = 100
Value = Verdict.Value


@dataclass(frozen=True)
class JudgedPoint:
    """The point that is judged, and the rule that is meant: `code` is empty where nothing fired."""

    version: ChatVersion
    message: int
    stage: str
    turn: int = 0
    code: str = ""
    rule_version: int = 0


@transaction.atomic
def judge(*, tenant: Tenant, by: User, point: JudgedPoint, value: str, note: str = "") -> Verdict:
    """Say what one thinks. A person has one verdict on a point and rule; saying something else changes it."""
    if value not in Value.values:
        raise Refused(_("Choose right, wrong, unsure or missed."))
    if point.stage not in Stage.values or not 0 <= point.message < point.version.chat.message_count:
        raise Refused(_("There is no such point in this chat."))
    if value == Value.WRONG and not point.code:
        raise Refused(_("Nothing fired here, so it can't be wrong. Choose missed if a rule should have fired."))
    where = {
        "chat_version": point.version,
        "message": point.message,
        "stage": point.stage,
        "code": point.code[:64],
        "by": by,
    }
    verdict = Verdict.objects.select_for_update().filter(**where).first()
    before = _said(verdict) if verdict else None
    if verdict is None:
        verdict = Verdict(tenant=tenant, chat=point.version.chat, **where)
    verdict.turn, verdict.version = point.turn, point.rule_version
    verdict.value, verdict.note = value, note
    if before == _said(verdict):
        return verdict
    verdict.save()
    _record(tenant, by, "verdict.give", verdict, before, _said(verdict))
    return verdict


@transaction.atomic
def undo(*, tenant: Tenant, by: User, verdict: Verdict) -> None:
    """Take back what was said last: an earlier verdict comes back, a first one goes. Only one's own."""
    if verdict.by_id != by.pk:
        raise Refused(_("Only the person who gave a verdict can take it back."))
    now = _said(verdict)
    before = _before(verdict)
    if before is None:
        _record(tenant, by, "verdict.undo", verdict, now, None)
        verdict.delete()
        return
    verdict.value, verdict.note = before["value"], before["note"]
    verdict.save()
    _record(tenant, by, "verdict.undo", verdict, now, _said(verdict))


def _before(verdict: Verdict) -> dict[str, Any] | None:
    """What the person had said before the present verdict, by the change log; None for a first one."""
    given = Entry.objects.filter(object_type="verdict", object_id=str(verdict.pk), action="verdict.give")
    for entry in given.order_by("-number"):
        if _said(verdict).items() <= json.loads(entry.after).items():
            return json.loads(entry.before) if entry.before else None
    return None


def _said(verdict: Verdict) -> dict[str, str]:
    return {"value": str(verdict.value), "note": verdict.note}


def _record(tenant: Tenant, by: User, action: str, verdict: Verdict, before: Any, after: Any) -> None:
    place = {"chat": verdict.chat_id, "version": verdict.chat_version_id, "point": verdict.point}
    record(
        tenant=tenant,
        by=by,
        action=action,
        object_type="verdict",
        object_id=verdict.pk,
        object_label=f"{verdict.code or '—'} {verdict.point}",
        before=before,
        after=None if after is None else {**after, **place},
    )


# --- queues


@transaction.atomic
def queue_of_firings(
    *, tenant: Tenant, by: User, name: str, replay: Replay, code: str, limit: int, only_new: bool = True
) -> ReviewQueue:
    """Firings of one rule in a replay, drawn by lot (the same ones each time); `only_new` leaves recorded ones out."""
    version = next((spec.version for spec in manifest(replay).rules if spec.code == code), 0)
    found = (
        ReviewItem(
            chat_version_id=f.version,
            message=f.message,
            stage=f.stage,
            turn=f.turn,
            code=code,
            version=version,
            recorded=f.recorded == code,
            replay=replay,
        )
        for _key, f in findings(replay, code=code, status="new" if only_new else "")
        if f.code == code and f.stage
    )
    source = {"replay": replay.pk, "code": code, "only_new": only_new}
    return _make(tenant, by, name, ReviewQueue.Kind.FIRINGS, source, found, limit)


@transaction.atomic
def queue_of_chats(
    *,
    tenant: Tenant,
    by: User,
    name: str,
    chats: QuerySet[Chat],
    query: str,
    rules: Manifest,
    limit: int,
    silent: bool = False,
) -> ReviewQueue:
    """Firings of these rules and recorded nudges in the first hundred chats; with `silent` also points without any."""
    first = Chat.objects.filter(pk__in=list(chats.values_list("pk", flat=True)[:CHATS_WALKED]))
    found = _items_in(newest_versions(first).select_related("chat"), rules, silent=silent)
    source = {"query": query, "silent": silent}
    return _make(tenant, by, name, ReviewQueue.Kind.SEARCH, source, found, limit)


def _items_in(versions: Iterable[ChatVersion], rules: Manifest, *, silent: bool) -> Iterable[ReviewItem]:
    compiled, catalogue, prompts = compile_rules(rules.rules), rules.tool_catalogue(), rules.prompts()
    numbers = {spec.code: spec.version for spec in rules.rules}
    for version in versions:
        walked = walk(record_of(version), catalogue, prompts)
        for decision in replay_chat(walked, compiled, rules.defaults):
            code = decision.fired or decision.recorded or ""
            if code or silent:
                yield _item(version.pk, decision, code, numbers.get(code, 0))


def _item(version: int, decision: Decision, code: str, number: int) -> ReviewItem:
    point = decision.point
    return ReviewItem(
        chat_version_id=version,
        message=point.message,
        stage=point.stage,
        turn=point.turn,
        code=code,
        version=number,
        recorded=decision.recorded == code,
    )


def _make(
    tenant: Tenant, by: User, name: str, kind: str, source: dict[str, Any], found: Iterable[ReviewItem], limit: int
) -> ReviewQueue:
    if not name:
        raise Refused(_("A queue needs a name."))
    items = heapq.nsmallest(max(1, min(limit, MOST_ITEMS)), found, key=_lot)
    if not items:
        raise Refused(_("There is nothing to review: no point fits."))
    queue = ReviewQueue.objects.create(
        tenant=tenant, by=by, name=name[:120], kind=kind, source=json.dumps(source), item_count=len(items)
    )
    _place(tenant, queue, items)
    record(
        tenant=tenant,
        by=by,
        action="review.queue",
        object_type="review",
        object_id=queue.pk,
        object_label=queue.name,
        after={**source, "items": len(items)},
    )
    return queue


def _place(tenant: Tenant, queue: ReviewQueue, items: Sequence[ReviewItem]) -> None:
    """Those of one chat stand together, so that it has to be read once."""
    versions = {item.chat_version_id for item in items if item.chat_version_id}
    chats = dict(ChatVersion.objects.filter(pk__in=versions).values_list("pk", "chat_id"))
    known = [item for item in items if item.chat_version_id in chats]
    known.sort(key=lambda item: (item.chat_version_id, item.message, item.stage))
    for position, item in enumerate(known, start=1):
        item.tenant, item.queue, item.position = tenant, queue, position
        item.chat_id = chats[item.chat_version_id or 0]
    ReviewItem.objects.bulk_create(known, batch_size=500)


def _lot(item: ReviewItem) -> bytes:
    """Draws by lot without chance: the same points come out each time."""
    return hashlib.sha256(f"{item.chat_version_id} {item.message} {item.stage} {item.code}".encode()).digest()
