"""Reading review queues, and what verdicts say of rules and of reviewers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from chats.queries.chats import record_of
from eleanor_site.tenants.models import Tenant, User
from rules.domain.agreement import PairAgreement, Share, agreed, fleiss, pairwise, precision, recall
from rules.domain.deciding import Decision
from rules.domain.manifest import Manifest
from rules.models import ReviewItem, ReviewQueue, Verdict
from rules.queries.manifests import manifest_of
from rules.queries.replays import manifest
from rules.queries.rules import live_entries, rule_set
from rules.queries.timeline import Item, RuleStory, find_decision, stories, timeline

MESSAGES_BEFORE = 6
LABELS_READ = 50_000
PointKey = tuple[int | None, int, str]


@dataclass(frozen=True)
class QueueRow:
    """A queue with how far it is: by the person who looks, and by anybody."""

    queue: ReviewQueue
    mine: int
    judged: int


@dataclass(frozen=True)
class ItemView:
    """One item with what is needed to judge it: the messages that lead there, what fired, why, and the prompt."""

    item: ReviewItem
    messages: Sequence[Item]
    left_out: int
    decision: Decision | None
    stories: Sequence[RuleStory]
    prompt: str
    mine: Verdict | None
    others: int


@dataclass(frozen=True)
class Disagreement:
    """An item of which people said different things."""

    item: ReviewItem
    verdicts: Sequence[Verdict]


@dataclass(frozen=True)
class QueueAgreement:
    """How far the reviewers of a queue agree. `kappa` is Fleiss' over all of them."""

    judged_by_several: int
    same: int
    kappa: float | None
    pairs: Sequence[PairAgreement]
    disagreements: Sequence[Disagreement]


@dataclass(frozen=True)
class Quality:
    """What verdicts say of one version of a rule; `version` is 0 where it isn't known which one fired."""

    code: str
    version: int
    precision: Share
    recall: Share
    labels: int

    @property
    def false_alarms(self) -> Share:
        """Of the firings that are agreed to be right or wrong, the wrong ones."""
        return Share(self.precision.n - self.precision.hits, self.precision.n)


def queue_rows(by: User) -> list[QueueRow]:
    """The newest fifty queues."""
    return [queue_row(queue, by) for queue in ReviewQueue.objects.select_related("by").order_by("-id")[:50]]


def queue_row(queue: ReviewQueue, by: User) -> QueueRow:
    items = ReviewItem.objects.filter(queue=queue)
    mine = items.filter(_judged(Verdict.objects.filter(by=by))).count()
    return QueueRow(queue, mine, items.filter(_judged(Verdict.objects.all())).count())


def _judged(verdicts: QuerySet[Verdict]) -> Exists:
    """That one of the verdicts is about the item. One that says "missed" may name any rule."""
    same_point = verdicts.filter(
        chat_version=OuterRef("chat_version"), message=OuterRef("message"), stage=OuterRef("stage")
    )
    return Exists(same_point.filter(Q(code=OuterRef("code")) | Q(value=Verdict.Value.MISSED)))


def open_items(queue: ReviewQueue, by: User) -> QuerySet[ReviewItem]:
    """The items that the person hasn't judged."""
    return ReviewItem.objects.filter(queue=queue).exclude(_judged(Verdict.objects.filter(by=by)))


def next_item(queue: ReviewQueue, by: User, after: int = 0) -> ReviewItem | None:
    """The first item behind `after` that the person hasn't judged, else the first one anywhere."""
    left = open_items(queue, by)
    return left.filter(position__gt=after).order_by("position").first() or left.order_by("position").first()


def item_at(queue: ReviewQueue, position: int) -> ReviewItem | None:
    found = ReviewItem.objects.select_related("chat_version__chat", "replay", "queue")
    return found.filter(queue=queue, position=position).first()


def item_view(tenant: Tenant, item: ReviewItem, by: User) -> ItemView | None:
    """None when the chat is gone."""
    version = item.chat_version
    if version is None:
        return None
    rules = rules_of(tenant, item)
    shown = timeline(record_of(version), rules, around=item.message)
    decision = find_decision(shown.decisions, item.point)
    messages = [m for turn in shown.turns if turn.number == item.turn for m in turn.items if m.index <= item.message]
    told = stories(decision, rules) if decision else []
    prompt = next((spec.prompt for spec in rules.rules if spec.code == item.code), "")
    if not prompt and decision is not None and decision.recorded == item.code:
        prompt = next((m.text for turn in shown.turns for m in turn.items if m.index > item.message and m.nudge), "")
    verdicts = list(verdicts_on(item))
    return ItemView(
        item=item,
        messages=messages[-MESSAGES_BEFORE:],
        left_out=max(0, len(messages) - MESSAGES_BEFORE),
        decision=decision,
        stories=[story for story in told if story.outcome != "false" or story.spec.code == item.code],
        prompt=prompt,
        mine=next((v for v in verdicts if v.by_id == by.pk), None),
        others=len({v.by_id for v in verdicts} - {by.pk}),
    )


def rules_of(tenant: Tenant, item: ReviewItem) -> Manifest:
    """The rules that found the item, else the live ones."""
    if item.replay is not None:
        return manifest(item.replay)
    return manifest_of(tenant, rule_set(tenant, drafts=False), [])


def live_version(code: str) -> int:
    """The number of the rule's version in the live release, 0 where it isn't live."""
    return next((entry.version.number for entry in live_entries() if entry.version.rule.code == code), 0)


def verdicts_on(item: ReviewItem) -> QuerySet[Verdict]:
    found = Verdict.objects.filter(chat_version=item.chat_version_id, message=item.message, stage=item.stage)
    return found.filter(Q(code=item.code) | Q(value=Verdict.Value.MISSED)).select_related("by").order_by("id")


def last_verdict(by: User, item: ReviewItem | None = None) -> Verdict | None:
    """The person's last one, on this item or at all."""
    found = Verdict.objects.filter(by=by) if item is None else verdicts_on(item).filter(by=by)
    return found.order_by("-updated_at", "-id").first()


def agreement_of(queue: ReviewQueue) -> QueueAgreement:
    """Over the items of the queue that more than one person judged."""
    items = list(
        ReviewItem.objects.filter(queue=queue)
        .select_related("chat", "chat_version")
        .defer("chat_version__content")
        .order_by("position")
    )
    said: dict[PointKey, list[Verdict]] = defaultdict(list)
    versions = {item.chat_version_id for item in items}
    for verdict in Verdict.objects.filter(chat_version__in=versions).select_related("by").order_by("id"):
        said[verdict.chat_version_id, verdict.message, verdict.stage].append(verdict)
    several: list[tuple[ReviewItem, list[Verdict]]] = []
    for item in items:
        here = said[item.chat_version_id, item.message, item.stage]
        own = [v for v in here if v.code == item.code or v.value == Verdict.Value.MISSED]
        if len({v.by_id for v in own}) > 1:
            several.append((item, own))
    values = [{str(v.by): str(v.value) for v in verdicts} for _item, verdicts in several]
    differing = [Disagreement(item, vs) for item, vs in several if len({v.value for v in vs}) > 1]
    return QueueAgreement(
        judged_by_several=len(several),
        same=len(several) - len(differing),
        kappa=fleiss([list(by_person.values()) for by_person in values]),
        pairs=pairwise(values),
        disagreements=differing,
    )


def quality(*, code: str = "") -> list[Quality]:
    """Precision and recall of each rule and version that people judged, by code and newest version first."""
    found = Verdict.objects.exclude(code="").order_by("code", "version")
    if code:
        found = found.filter(code=code)
    columns = ("code", "version", "chat_version", "message", "stage", "value")
    items: dict[tuple[str, int], dict[PointKey, list[str]]] = defaultdict(lambda: defaultdict(list))
    for rule, version, chat, message, stage, value in found.values_list(*columns)[:LABELS_READ]:
        items[rule, version][chat, message, stage].append(value)
    rows = [_quality(rule, version, points.values()) for (rule, version), points in items.items()]
    return sorted(rows, key=lambda row: (row.code, -row.version))


def quality_by_code() -> dict[str, Quality]:
    """Of each rule that people judged, the newest version that has labels."""
    newest: dict[str, Quality] = {}
    for row in quality():
        newest.setdefault(row.code, row)
    return newest


def _quality(code: str, version: int, points: Iterable[list[str]]) -> Quality:
    settled = list(points)
    labels = sum(agreed(values) is not None for values in settled)
    return Quality(code, version, precision(settled), recall(settled), labels)


def verdicts_at(version: int, message: int, stage: str) -> list[dict[str, Any]]:
    """What people said of a point, for the inspector."""
    found = Verdict.objects.filter(chat_version=version, message=message, stage=stage).select_related("by")
    return [{"verdict": v, "who": str(v.by)} for v in found.order_by("id")]


def verdicts_of_points(versions: Sequence[int], code: str) -> dict[PointKey, list[str]]:
    """What people said of a rule at the points of these chat versions, by version, message and stage."""
    found = Verdict.objects.filter(chat_version__in=versions, code=code).order_by("id")
    said: dict[PointKey, list[str]] = defaultdict(list)
    for version, message, stage, value in found.values_list("chat_version", "message", "stage", "value"):
        said[version, message, stage].append(value)
    return said
