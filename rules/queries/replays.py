"""Reading replays: progress, counts per rule, and their findings page by page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet, Sum
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chats.models import ChatVersion
from eleanor_site.tenants.models import Tenant
from rules.domain.manifest import Manifest
from rules.domain.points import Defaults
from rules.domain.results import COUNTS, STATUSES, Finding, merge_counts
from rules.domain.rule_set import RuleSpec, rule_set_digest
from rules.models import RemovedFinding, Replay, ReplayChunk, Verdict
from rules.queries.manifests import catalogue_digest
from rules.queries.segments import Scope, kept_view

PAGE = 50
DELTAS = ("newly", "gone", "same")
VERDICTS = (*Verdict.Value.values, "none")
# What a worker does where nothing has been measured yet.
USUAL_RATE = 200_000.0
NEW_CHATS_RATE = 5_000.0


@dataclass(frozen=True)
class RuleRow:
    """One rule in a replay's report."""

    code: str
    stage: str
    counts: dict[str, int]
    recorded_only: int


@dataclass(frozen=True)
class FindingFilter:
    """Which findings of a replay are meant, as its address says; empty: all of them.

    `status` is one of the four, `delta` one of DELTAS against the rule set to compare with; `code` is the rule that
    fires or whose nudge is recorded, and where `delta` is `gone` the one that no longer fires. `language` is that of
    the chat, `none` where it isn't known; `verdict` what somebody said of it, `none` where nobody did.
    """

    code: str = ""
    status: str = ""
    delta: str = ""
    language: str = ""
    verdict: str = ""

    @property
    def query(self) -> str:
        """As it stands in an address; empty for all findings."""
        named = {"rule": self.code, "status": self.status, "delta": self.delta, "lang": self.language}
        return urlencode({key: value for key, value in {**named, "verdict": self.verdict}.items() if value})


@dataclass(frozen=True)
class Facet:
    """A filter, and how many findings each of its values leaves under the other filters; the empty value is all."""

    name: str
    counts: dict[str, int]


@dataclass(frozen=True)
class Compared:
    """The rule set that a replay is compared with: `label` names it on pages."""

    label: str
    rules: list[RuleSpec]

    def as_json(self) -> str:
        return json.dumps(
            {"label": self.label, "rules": [spec.model_dump(mode="json") for spec in self.rules]}, ensure_ascii=False
        )


@dataclass(frozen=True)
class Progress:
    """Points done of all, points a second, and seconds that remain at that rate."""

    done: int
    total: int
    rate: float | None
    seconds_left: int | None

    @property
    def rate_text(self) -> str:
        return _("%(n)s points a second") % {"n": number_format(self.rate, 0)} if self.rate else ""

    @property
    def left_text(self) -> str:
        if not self.seconds_left:
            return ""
        return ngettext("about %(n)s second left", "about %(n)s seconds left", self.seconds_left) % {
            "n": self.seconds_left
        }


@dataclass(frozen=True)
class Estimate:
    """What a replay of a scope would have to do, and about how long that takes."""

    chats: int
    points: int
    new_chats: int
    seconds: int


def replays() -> QuerySet[Replay]:
    return Replay.objects.select_related("by").order_by("-id")


def manifest(replay: Replay) -> Manifest:
    return Manifest.model_validate_json(replay.manifest)


def compared(replay: Replay) -> Compared | None:
    """The rule set to compare with, if there is one."""
    if not replay.compared_with:
        return None
    given = json.loads(replay.compared_with)
    return Compared(given["label"], [RuleSpec(**spec) for spec in given["rules"]])


def same_inputs(replay: Replay) -> Replay | None:
    """The newest other replay that is done and depends on exactly the same."""
    others = Replay.objects.filter(name_digest=replay.name_digest, status=Replay.Status.DONE)
    return others.exclude(pk=replay.pk).order_by("-id").first()


def progress(replay: Replay) -> Progress:
    total = max(replay.points_total, replay.points)
    done = total if replay.status == Replay.Status.DONE else replay.points
    rate = None
    if replay.started_at and replay.points:
        seconds = ((replay.finished_at or timezone.now()) - replay.started_at).total_seconds()
        rate = replay.points / seconds if seconds > 0 else None
    left = round((total - done) / rate) if rate and not replay.finished_at else None
    return Progress(done, total, rate, left)


def estimate(tenant: Tenant, scope: Scope) -> Estimate:
    """From the columns that are there, and from what the tenant's last replays took."""
    view = kept_view(tenant, scope)
    last = Replay.objects.filter(status=Replay.Status.DONE, points__gt=0, started_at__isnull=False).order_by("-id")[:5]
    points = took = 0.0
    for replay in last:
        if replay.finished_at and replay.started_at:
            points += replay.points
            took += (replay.finished_at - replay.started_at).total_seconds()
    rate = points / took if took > 0 else USUAL_RATE
    average = view.points / view.chats if view.chats else 20.0
    seconds = view.points / rate + view.missing * average / NEW_CHATS_RATE
    return Estimate(view.chats + view.missing, round(view.points + view.missing * average), view.missing,
                    max(1, round(seconds)))  # fmt: skip


def counts(replay: Replay) -> dict[str, Any]:
    """Counts over what is done so far."""
    if replay.counts != "{}":
        found: dict[str, Any] = json.loads(replay.counts)
        return found
    parts = ReplayChunk.objects.filter(replay=replay, status="done").order_by("number")
    return merge_counts([json.loads(text) for text in parts.values_list("counts", flat=True)])


def rule_rows(replay: Replay) -> tuple[list[RuleRow], dict[str, int]]:
    """The rules of the set in their order with their counts, and recorded nudges of codes that the set lacks."""
    found = counts(replay)
    rows = []
    specs = manifest(replay).rules
    for spec in specs:
        of_rule = {**dict.fromkeys(COUNTS, 0), **found["rules"].get(spec.code, {})}
        rows.append(RuleRow(spec.code, spec.stage, of_rule, found["recorded_only"].get(spec.code, 0)))
    known = {spec.code for spec in specs}
    return rows, {code: n for code, n in found["recorded_only"].items() if code not in known}


def gone_rules(replay: Replay) -> dict[str, int]:
    """Firings of rules that only the rule set to compare with has."""
    found: dict[str, int] = counts(replay).get("gone", {})
    return found


def findings(
    replay: Replay, wanted: FindingFilter | None = None, *, code: str = "", status: str = "", after: str = ""
) -> Iterator[tuple[str, Finding]]:
    """Findings in the order of the replay, each with its key; `after` is the key that the page before ended with."""
    from rules.queries import replay_findings  # numeric libraries, on first use

    return replay_findings.findings(replay, wanted or FindingFilter(code=code, status=status), after=after)


def breakdown(
    replay: Replay, wanted: FindingFilter | None = None
) -> tuple[list[Facet], dict[str, list[tuple[str, int]]]]:
    """For each filter how many findings its values leave, and each rule's firings by language, the most first.

    `none` is where the language isn't known. Without a filter only the firings are counted.
    """
    from rules.queries import replay_facets  # numeric libraries, on first use

    found = replay_facets.breakdown(replay, wanted)
    split = {code: sorted(n.items(), key=lambda item: (-item[1], item[0])) for code, n in found.languages.items()}
    return found.facets, split


def finding_page(replay: Replay, wanted: FindingFilter, *, after: str = "") -> tuple[list[dict[str, Any]], str | None]:
    """One page of findings with the chats that they belong to and what people said, and the key to go on from."""
    rows: list[tuple[str, Finding]] = []
    for row in findings(replay, wanted, after=after):
        rows.append(row)
        if len(rows) > PAGE:
            break
    shown = rows[:PAGE]
    ids = {f.version for _key, f in shown}
    versions = {v.pk: v for v in ChatVersion.objects.filter(pk__in=ids).select_related("chat").defer("content")}
    said = _verdicts(ids)
    page = [
        {
            "key": key,
            "finding": f,
            "chat": versions[f.version].chat,
            "version": versions[f.version],
            "verdicts": _said_of(f, said, gone=wanted.delta == "gone"),
        }
        for key, f in shown
        if f.version in versions
    ]
    return page, shown[-1][0] if len(rows) > PAGE else None


def _verdicts(versions: set[int]) -> dict[tuple[int | None, int, str], list[Verdict]]:
    found: dict[tuple[int | None, int, str], list[Verdict]] = {}
    for row in Verdict.objects.filter(chat_version__in=versions).order_by("pk"):
        found.setdefault((row.chat_version_id, row.message, row.stage), []).append(row)
    return found


def _said_of(
    finding: Finding, said: dict[tuple[int | None, int, str], list[Verdict]], *, gone: bool
) -> list[Verdict.Value]:
    """Each verdict once; that something was missed is said of the point, whatever rule was thought of."""
    code = (finding.compared if gone else finding.code or finding.recorded) or ""
    here = said.get((finding.version, finding.message, finding.stage), [])
    values = {row.value for row in here if row.code == code or row.value == Verdict.Value.MISSED}
    return [value for value in Verdict.Value if value in values]


def removed_findings(replay: Replay, wanted: FindingFilter | None = None, *, code: str = "", status: str = "") -> int:
    """How many of the findings that the filters leave were in chats that are deleted; the counts hold them still.

    Nought where that isn't kept: under a verdict, and for what a status has in common with a change.
    """
    asked = wanted or FindingFilter(code=code, status=status)
    if asked.verdict or asked.delta == "same" or (asked.status and asked.delta):
        return 0
    told = asked.status or asked.delta
    found = RemovedFinding.objects.filter(chunk__replay=replay, status__in=[told] if told else STATUSES)
    if asked.code:
        found = found.filter(code=asked.code)
    if asked.language:
        found = found.filter(language="" if asked.language == "none" else asked.language)
    return found.aggregate(n=Sum("count"))["n"] or 0


def removed_chats(replay: Replay) -> int:
    """How many of its chats are deleted."""
    return ReplayChunk.objects.filter(replay=replay).aggregate(n=Sum("removed_chats"))["n"] or 0


def failed_chunks(replay: Replay) -> list[ReplayChunk]:
    """Chunks that failed for good, with their errors; the first few."""
    failed = ReplayChunk.objects.filter(replay=replay, status="failed").order_by("number")
    return list(failed.only("number", "error", "replay")[:20])


def finished() -> list[Replay]:
    """Replays that can be compared, the baseline first."""
    done = Replay.objects.filter(status=Replay.Status.DONE).defer("manifest", "counts", "compared_with")
    return list(done.order_by("-baseline", "-id")[:100])


def others_to_compare(replay: Replay) -> list[Replay]:
    return [other for other in finished() if other.pk != replay.pk]


def input_facts(replay: Replay) -> dict[str, Any]:
    """What it depended on, by short digests and versions."""
    found = manifest(replay)
    return {
        "rules": rule_set_digest(found.rules)[:12],
        "catalogue": catalogue_digest(found.catalogue)[:12],
        "own_tools": len(found.catalogue),
        "corpus": found.corpus[:12],
        "defaults": found.defaults,
        "engine": found.engine,
        "walker": found.walker,
        "helpers": found.helpers,
        "name": replay.name_digest[:12],
        "result": replay.result_digest[:12],
    }


# --- two replays


@dataclass(frozen=True)
class Difference:
    """An input in which two replays differ: `what` is a code, `left` and `right` say how, shortened for reading."""

    what: str
    left: str
    right: str


@dataclass(frozen=True)
class ComparedRule:
    """One rule in two replays; newly and gone are None where points can't be lined up."""

    code: str
    left: int | None
    right: int | None
    newly: int | None = None
    gone: int | None = None

    @property
    def numbers(self) -> tuple[int | None, ...]:
        return self.left, self.right, self.newly, self.gone


@dataclass(frozen=True)
class Comparison:
    """Two replays side by side. Points are lined up only where both went over the same chats."""

    left: Replay
    right: Replay
    differences: list[Difference]
    same_corpus: bool
    shared_chats: int
    rules: list[ComparedRule] = field(default_factory=list)
    same_result: bool = False

    @property
    def lined_up(self) -> bool:
        return bool(self.shared_chats)


@dataclass(frozen=True)
class ChangedPoint:
    """A point of both replays at which they decide otherwise: the rules that fire, None for none."""

    key: str
    version: ChatVersion
    message: int
    stage: str
    turn: int
    left: str | None
    right: str | None


def changed_points(
    left: Replay, right: Replay, *, code: str = "", after: str = ""
) -> tuple[list[ChangedPoint], str | None]:
    """A page of the points at which they differ, in the order of the right one; `code` narrows to one rule."""
    from rules.queries import replay_findings  # numeric libraries, on first use

    rows = []
    for row in replay_findings.changed_points(left, right, code=code, after=after):
        rows.append(row)
        if len(rows) > PAGE:
            break
    wanted = {version for _key, version, *_rest in rows[:PAGE]}
    found = ChatVersion.objects.filter(pk__in=wanted).select_related("chat").defer("content")
    versions = {version.pk: version for version in found}
    page = [
        ChangedPoint(key, versions[version], message, stage, turn, old, new)
        for key, version, message, stage, turn, old, new in rows[:PAGE]
        if version in versions
    ]
    return page, rows[PAGE - 1][0] if len(rows) > PAGE else None


def input_differences(left: Replay, right: Replay) -> list[Difference]:
    """What differs in what the two depend on; equal inputs give equal results."""
    a, b = manifest(left), manifest(right)
    found: list[Difference] = []

    def add(what: str, first: object, second: object) -> None:
        if first != second:
            found.append(Difference(what, _shown(first), _shown(second)))

    rules_a, rules_b = {s.code: s for s in a.rules}, {s.code: s for s in b.rules}
    add("rules-only", [c for c in rules_a if c not in rules_b], [c for c in rules_b if c not in rules_a])
    changed = [c for c in rules_a if c in rules_b and rule_set_digest([rules_a[c]]) != rule_set_digest([rules_b[c]])]
    if changed:
        found.append(Difference("rules-changed", _versions(changed, rules_a), _versions(changed, rules_b)))
    shared_a, shared_b = [c for c in rules_a if c in rules_b], [c for c in rules_b if c in rules_a]
    add("order", shared_a, shared_b)
    add("catalogue", [e.model_dump() for e in a.catalogue], [e.model_dump() for e in b.catalogue])
    add("defaults", a.defaults, b.defaults)
    add("corpus", a.corpus, b.corpus)
    add("prompts", sorted(a.known_prompts.items()), sorted(b.known_prompts.items()))
    add("helpers", a.helpers, b.helpers)
    add("walker", a.walker, b.walker)
    add("engine", a.engine, b.engine)
    return found


def _versions(codes: Sequence[str], specs: dict[str, RuleSpec]) -> str:
    return ", ".join(f"{code} v{specs[code].version}{'+' if specs[code].draft else ''}" for code in codes)


def _shown(value: object) -> str:
    if isinstance(value, str):
        return value[:12]
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    if isinstance(value, list):
        return str(len(value))
    if isinstance(value, Defaults):
        return " · ".join(f"{name}={getattr(value, name)}" for name in Defaults.__dataclass_fields__)
    return str(value)


def comparison(left: Replay, right: Replay, *, anyway: bool = False) -> Comparison:
    """The two replays, rule by rule. Different corpora are lined up, over what they share, only with `anyway`."""
    differences = input_differences(left, right)
    same_corpus = manifest(left).corpus == manifest(right).corpus
    counts_a, counts_b = counts(left)["rules"], counts(right)["rules"]
    changes: dict[str, tuple[int, int]] = {}
    shared = 0
    if same_corpus or anyway:
        from rules.queries import replay_findings

        changes, shared = replay_findings.changes(left, right)
    codes = dict.fromkeys([*(s.code for s in manifest(left).rules), *(s.code for s in manifest(right).rules)])
    rules = []
    for code in codes:
        newly, gone = changes.get(code, (0, 0)) if same_corpus or anyway else (None, None)
        rules.append(ComparedRule(code, _fires(counts_a, code), _fires(counts_b, code), newly, gone))
    same_result = bool(left.result_digest) and left.result_digest == right.result_digest
    return Comparison(left, right, differences, same_corpus, shared, rules, same_result)


def _fires(counts_of: dict[str, dict[str, int]], code: str) -> int | None:
    return counts_of[code]["fires"] if code in counts_of else None
