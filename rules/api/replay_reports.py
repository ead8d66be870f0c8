"""What replays found: page by page, as files, and two of them side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from django.http import StreamingHttpResponse
from django.utils.translation import gettext as _
from ninja import Query
from pydantic import BaseModel

from eleanor_site.api_access import ApiRequest, KeyRouter
from eleanor_site.api_files import TABLES, FileForm, file_answer
from eleanor_site.api_problems import Problem, wrong
from eleanor_site.api_values import After, Id, Text
from eleanor_site.exports import csv_lines, json_lines
from eleanor_site.tenants.models import KeyScope
from rules.api.loading import replay_of
from rules.models import Replay
from rules.queries import replay_exports as exports
from rules.queries import replays as queries

router = KeyRouter(tags=["replays"])

Status = Literal["", "reproduced", "different", "new", "recorded_only", "newly", "gone"]
Delta = Literal["", "newly", "gone", "same"]
Judged = Literal["", "right", "wrong", "unsure", "missed", "none"]
Named = Annotated[Id, Query(description="The id of a finished replay.")]
Anyway = Annotated[bool, Query(description="Line up replays of different corpora over the chats that they share.")]


class FindingOut(BaseModel):
    """A point where a rule fired, or where the history holds a nudge; without a stage, a nudge before any point."""

    key: str
    chat: int
    version: int
    message: int
    stage: Literal["final", "round", ""]
    turn: int
    code: str | None
    recorded: str | None
    status: str | None


class FindingList(BaseModel):
    items: list[FindingOut]
    next: str | None


class FindingCounts(BaseModel):
    """By filter, then by its value; the empty value counts all that the other filters leave."""

    by: dict[str, dict[str, int]]


class InputDifference(BaseModel):
    """An input in which two replays differ: what, and how, shortened for reading."""

    what: str
    left: str
    right: str


class ComparedRuleOut(BaseModel):
    """Firings of one rule in both; newly and gone are null where points can't be lined up."""

    code: str
    left: int | None
    right: int | None
    newly: int | None
    gone: int | None


class ComparisonOut(BaseModel):
    """Two replays. Points are lined up only where both went over the same chats, or `anyway`."""

    differences: list[InputDifference]
    same_corpus: bool
    same_result: bool
    shared_chats: int
    lined_up: bool
    rules: list[ComparedRuleOut]


class ChangedPointOut(BaseModel):
    """A point at which they decide otherwise: the rules that fire, null for none."""

    key: str
    chat: int
    version: int
    message: int
    stage: Literal["final", "round"]
    turn: int
    left: str | None
    right: str | None


class ChangedPoints(BaseModel):
    items: list[ChangedPointOut]
    next: str | None


class ReplayManifest(BaseModel):
    """All that is needed to run a replay again: `manage.py replay MANIFEST` must reach the same `result_digest`.

    `chats` are the content hashes of the chat versions, sorted.
    """

    format: Literal["eleanor-replay"]
    version: Literal[1]
    replay: int
    title: str
    scope: dict[str, Any]
    started: str
    name_digest: str
    result_digest: str
    points: int
    fires: int
    manifest: dict[str, Any]
    compared_with: dict[str, Any] | None
    chats: list[str]


@router.operation("GET", "/replays/comparison", KeyScope.RULES_READ, answers=ComparisonOut)
def compare_replays(request: ApiRequest, a: Named, b: Named, anyway: Anyway = False) -> ComparisonOut:
    """Two replays: the inputs that differ, then each rule."""
    found = queries.comparison(_named("a", a), _named("b", b), anyway=anyway)
    return ComparisonOut(
        differences=[InputDifference(what=d.what, left=d.left, right=d.right) for d in found.differences],
        same_corpus=found.same_corpus,
        same_result=found.same_result,
        shared_chats=found.shared_chats,
        lined_up=found.lined_up,
        rules=[
            ComparedRuleOut(code=row.code, left=row.left, right=row.right, newly=row.newly, gone=row.gone)
            for row in found.rules
        ],
    )


@router.operation("GET", "/replays/comparison/points", KeyScope.RULES_READ, answers=ChangedPoints)
def list_changed_points(
    request: ApiRequest, a: Named, b: Named, anyway: Anyway = False, rule: Text = "", after: After = None
) -> ChangedPoints:
    """The points at which the two decide otherwise, fifty a page."""
    left, right = _named("a", a), _named("b", b)
    if not anyway and queries.manifest(left).corpus != queries.manifest(right).corpus:
        raise Problem(
            "refused", _("The two replays went over different chats. Send `anyway` to line up what they share.")
        )
    rows, following = queries.changed_points(left, right, code=rule, after=after or "")
    items = [
        ChangedPointOut(
            key=row.key,
            chat=row.version.chat_id,
            version=row.version.number,
            message=row.message,
            stage="round" if row.stage == "round" else "final",
            turn=row.turn,
            left=row.left,
            right=row.right,
        )
        for row in rows
    ]
    return ChangedPoints(items=items, next=following)


@router.operation("GET", "/replays/{id}/findings", KeyScope.RULES_READ, answers=FindingList)
def list_findings(
    request: ApiRequest,
    id: Id,
    rule: Text = "",
    status: Status = "",
    delta: Delta = "",
    lang: Text = "",
    verdict: Judged = "",
    after: After = None,
) -> FindingList:
    """Where rules fired or nudges are recorded, in the order of the chats, fifty a page.

    `delta` is against the rule set that the replay is compared with; `none` as language or verdict means that there
    is none.
    """
    wanted = _wanted(rule, status, delta, lang, verdict)
    rows, following = queries.finding_page(replay_of(id), wanted, after=after or "")
    items = []
    for row in rows:
        finding = row["finding"]
        items.append(
            FindingOut(
                key=row["key"],
                chat=row["chat"].pk,
                version=row["version"].number,
                message=finding.message,
                stage=finding.stage,
                turn=finding.turn,
                code=finding.code,
                recorded=finding.recorded,
                status=finding.status,
            )
        )
    return FindingList(items=items, next=following)


@router.operation("GET", "/replays/{id}/findings/counts", KeyScope.RULES_READ, answers=FindingCounts)
def count_findings(
    request: ApiRequest,
    id: Id,
    rule: Text = "",
    status: Status = "",
    delta: Delta = "",
    lang: Text = "",
    verdict: Judged = "",
) -> FindingCounts:
    """How many findings each value of each filter leaves under the others."""
    facets, _languages = queries.breakdown(replay_of(id), _wanted(rule, status, delta, lang, verdict))
    return FindingCounts(by={facet.name: facet.counts for facet in facets})


@router.operation("GET", "/replays/{id}/export", KeyScope.RULES_READ, answers=None, files=TABLES)
def export_replay(
    request: ApiRequest,
    id: Id,
    format: FileForm = "jsonl",
    rule: Text = "",
    status: Status = "",
    delta: Delta = "",
    lang: Text = "",
    verdict: Judged = "",
) -> StreamingHttpResponse:
    """All findings that the filters leave, with a trailer that holds their number and digest."""
    found = replay_of(id)
    rows = exports.rows(request.tenant, found, _wanted(rule, status, delta, lang, verdict))
    lines: Iterator[bytes] = (
        csv_lines(exports.HEADER, (row.as_cells() for row in rows))
        if format == "csv"
        else json_lines(row.as_json() for row in rows)
    )
    return file_answer(lines, format, f"replay-{found.pk}")


@router.operation("GET", "/replays/{id}/manifest", KeyScope.RULES_READ, answers=ReplayManifest)
def get_manifest(request: ApiRequest, id: Id) -> ReplayManifest:
    """What the result depends on."""
    return ReplayManifest(**exports.manifest_document(replay_of(id)))


def _wanted(rule: str, status: str, delta: str, language: str, verdict: str) -> queries.FindingFilter:
    if status in ("newly", "gone"):
        status, delta = "", status
    return queries.FindingFilter(rule, status, delta, language, verdict)


def _named(path: str, pk: int) -> Replay:
    found = queries.replays().filter(pk=pk).first()
    if found is None:
        raise wrong(path, "unknown", _("There is nothing with this number."))
    return found
