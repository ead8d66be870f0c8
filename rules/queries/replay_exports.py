"""A replay for elsewhere: its findings as rows of a file, and its manifest with the chats by what they hold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from django_scopes import scope

from chats.domain.masking import masked_id
from chats.models import ChatVersion
from eleanor_site.tenants.models import Tenant
from rules.domain.results import Finding
from rules.models import Replay
from rules.queries.replays import FindingFilter, manifest

BATCH = 500
HEADER = (
    "rule", "version", "chat", "external_id", "chat_version", "message", "stage", "turn", "status", "recorded",
    "compared", "model", "language",
)  # fmt: skip
FORMAT = "eleanor-replay"


@dataclass(frozen=True)
class ExportRow:
    """One finding. `version` is that of the rule, 0 where it isn't one of the set; turns count from 1.

    `external_id` is masked as on pages; `chat` names the chat, whose own page and export show everything.
    """

    rule: str
    version: int
    chat: int
    external_id: str
    chat_version: int
    message: int
    stage: str
    turn: int
    status: str
    recorded: str
    compared: str
    model: str
    language: str

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def as_cells(self) -> tuple[Any, ...]:
        return tuple(asdict(self).values())


def rows(tenant: Tenant, replay: Replay, wanted: FindingFilter) -> Iterator[ExportRow]:
    """The findings in the order of the replay, a chunk at a time.

    The scope is open while rows are read, and never while somebody else has the line.
    """
    from rules.queries.replay_findings import findings_by_chunk  # numeric libraries, on first use

    with scope(tenant=tenant):
        versions = {spec.code: spec.version for spec in manifest(replay).rules}
    chunks = findings_by_chunk(replay, wanted)
    while True:
        with scope(tenant=tenant):
            part = next(chunks, None)
            chats = _chats(part or [])
        if part is None:
            return
        for finding in part:
            if finding.version in chats:
                yield _row(finding, versions, chats[finding.version])


def _chats(part: list[Finding]) -> dict[int, ChatVersion]:
    wanted = sorted({finding.version for finding in part})
    found: dict[int, ChatVersion] = {}
    for at in range(0, len(wanted), BATCH):
        rows = ChatVersion.objects.filter(pk__in=wanted[at : at + BATCH]).select_related("chat").defer("content")
        found.update((version.pk, version) for version in rows)
    return found


def _row(finding: Finding, versions: dict[str, int], version: ChatVersion) -> ExportRow:
    rule = finding.code or finding.recorded or ""
    return ExportRow(
        rule=rule,
        version=versions.get(rule, 0),
        chat=version.chat_id,
        external_id=masked_id(version.chat.external_id),
        chat_version=version.number,
        message=finding.message,
        stage=finding.stage,
        turn=finding.turn + 1,
        status=finding.status or "",
        recorded=finding.recorded or "",
        compared=finding.compared or "",
        model=version.chat.model,
        language=version.chat.language,
    )


def manifest_document(replay: Replay) -> dict[str, Any]:
    """The manifest as it is downloaded. `chats` are the content hashes of the chat versions, sorted."""
    from rules.queries.replay_findings import members  # numeric libraries, on first use

    return {
        "format": FORMAT,
        "version": 1,
        "replay": replay.pk,
        "title": replay.title,
        "scope": json.loads(replay.scope),
        "started": replay.created_at.isoformat(),
        "name_digest": replay.name_digest,
        "result_digest": replay.result_digest,
        "points": replay.points,
        "fires": replay.fires,
        "manifest": json.loads(replay.manifest),
        "compared_with": json.loads(replay.compared_with) if replay.compared_with else None,
        "chats": members(replay),
    }


def versions_of(hashes: list[str]) -> list[int]:
    """A chat version of this tenant for each content hash, as far as there is one; equal chats count severally."""
    left: dict[str, int] = {}
    for content_hash in hashes:
        left[content_hash] = left.get(content_hash, 0) + 1
    wanted = list(left)
    found: list[int] = []
    for at in range(0, len(wanted), BATCH):
        rows = ChatVersion.objects.filter(content_hash__in=wanted[at : at + BATCH]).order_by("pk")
        for pk, content_hash in rows.values_list("pk", "content_hash"):
            if left[content_hash]:
                left[content_hash] -= 1
                found.append(pk)
    return sorted(found)
