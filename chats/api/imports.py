"""Imports: sending a file, watching it being read, what came of it, and deleting what it brought."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Final, Literal

from django.conf import settings
from django.core.files.base import File
from django.core.files.uploadedfile import TemporaryUploadedFile
from django.http import Http404, HttpResponse
from django.utils.translation import gettext as _
from ninja import Query
from pydantic import AfterValidator, BaseModel, Field, WithJsonSchema

from chats.domain.formats import FORMATS
from chats.domain.formats.text_protocols import PROTOCOLS
from chats.import_removal import contents_of
from chats.models import ImportDeletion, ImportJob
from chats.queries.chats import imports
from chats.queries.removal import corpora_with
from chats.services.importing import import_checked, start_import, try_again
from chats.services.retention import delete_import
from eleanor_site import limits
from eleanor_site.api_access import IDEMPOTENCY_PARAMETER, ApiRequest, KeyRouter, json_answer, rows_after, take_from
from eleanor_site.api_problems import Problem, wrong
from eleanor_site.api_values import PAGE, After, Id, Limit, Strict
from eleanor_site.idempotency import once
from eleanor_site.tenants.models import KeyScope

router = KeyRouter(tags=["imports"])

_READ_AT_ONCE: Final = 256 * 1024


def _one_of(known: list[str]) -> Callable[[str], str]:
    def checked(value: str) -> str:
        if value not in known:
            raise ValueError("take one of the listed words")
        return value

    return checked


_FORMATS: Final = [one.id for one in FORMATS]
_PROTOCOLS: Final = list(PROTOCOLS)
Format = Annotated[str, AfterValidator(_one_of(_FORMATS)), WithJsonSchema({"type": "string", "enum": _FORMATS})]
Protocol = Annotated[str, AfterValidator(_one_of(_PROTOCOLS)), WithJsonSchema({"type": "string", "enum": _PROTOCOLS})]


class ImportOut(BaseModel):
    """An import. The counts are chats, as far as it has come; `check_only` ones say what would be taken."""

    id: int
    status: Literal["queued", "running", "done", "failed"]
    file_name: str
    bytes: int
    format: str = Field(description="Empty until it is detected.")
    check_only: bool
    taken: int
    updated: int
    unchanged: int
    skipped: int
    messages: int
    bytes_read: int
    error: str
    by: str | None
    created_at: datetime
    finished_at: datetime | None

    @classmethod
    def of(cls, job: ImportJob) -> ImportOut:
        return cls(
            id=job.pk,
            status=job.status,
            file_name=job.file_name,
            bytes=job.file_size,
            format=job.format or job.chosen_format,
            check_only=job.check_only,
            taken=job.taken,
            updated=job.updated,
            unchanged=job.unchanged,
            skipped=job.skipped,
            messages=job.messages,
            bytes_read=job.bytes_read,
            error=job.error,
            by=job.by.email if job.by else None,
            created_at=job.created_at,
            finished_at=job.finished_at,
        )


class ImportList(BaseModel):
    items: list[ImportOut]
    next: str | None


class ImportAnswer(BaseModel):
    """An import with its report: counts, and for each problem its code and the first places (import-formats.md)."""

    job: ImportOut
    report: dict[str, Any]


class RunIn(Strict):
    """`text_protocol` says how calls are written in the texts of a file that was only checked."""

    text_protocol: Protocol | None = None


class ImportContentsOut(BaseModel):
    """What deleting the import would take: chats that go whole, some that lose versions, and some that stay as they
    are because something else brought the same; and the frozen corpora that would no longer be whole."""

    chats: int
    cut: int
    kept: int
    corpora: list[str]


class ImportDeletionOut(BaseModel):
    """How far a deletion is: of `total` chats that the import named, `chats` are deleted and `kept` stay.

    A small one is done at once, a large one by a worker.
    """

    status: Literal["queued", "running", "done", "failed"]
    total: int
    chats: int
    kept: int
    error: str

    @classmethod
    def of(cls, row: ImportDeletion) -> ImportDeletionOut:
        return cls(status=row.status, total=row.total, chats=row.chats, kept=row.kept, error=row.error)


@router.operation("GET", "/imports", KeyScope.CHATS_READ, answers=ImportList)
def list_imports(request: ApiRequest, after: After = None, limit: Limit = PAGE) -> ImportList:
    """The newest first."""
    rows, following = rows_after(imports(), after, limit)
    return ImportList(items=[ImportOut.of(job) for job in rows], next=following)


_BINARY: Final = {"type": "string", "format": "binary", "minLength": 1}
_UPLOAD: Final = {
    "required": True,
    "content": {
        "application/octet-stream": {"schema": _BINARY},
        "multipart/form-data": {
            "schema": {"type": "object", "required": ["file"], "properties": {"file": _BINARY}},
        },
    },
}


@router.operation(
    "POST",
    "/imports",
    KeyScope.CHATS_WRITE,
    answers=ImportAnswer,
    status=202,
    extra={"requestBody": _UPLOAD, "parameters": [IDEMPOTENCY_PARAMETER]},
)
def import_file(
    request: ApiRequest,
    name: Annotated[
        str, Query(max_length=255, description="The file's name, for people.", examples=["chats.jsonl"])
    ] = "",
    format: Annotated[Format | None, Query(description="Found by content when left out.")] = None,
    all_branches: Annotated[
        bool, Query(description="A chat of each branch of formats that keep alternatives.")
    ] = False,
    text_protocol: Annotated[Protocol | None, Query(description="How calls are written in the texts.")] = None,
    encoding: Annotated[Literal["", "latin-1"], Query(description="Unicode when left out.")] = "",
    check_only: Annotated[bool, Query(description="Say what an import would do, and take nothing.")] = False,
) -> HttpResponse:
    """Send a file, as the body itself or as the part `file` of a form. It is read by a worker: ask for its status.

    The file is kept as it comes in, up to the limit of uploads, and never lies in memory as a whole. The same file
    again changes nothing. JSON, JSON Lines, CSV, Parquet, or an archive of them.
    """
    options = {
        "all_branches": all_branches,
        "text_protocol": text_protocol or "",
        "encoding": encoding,
        "check_only": check_only,
    }
    file, digest = _received(request)
    act = partial(_start, request, file, name or file.name or "upload", format or "", options)
    try:
        return once(request, request.auth, act, content=digest)
    finally:
        file.close()


def _start(request: ApiRequest, file: File[bytes], name: str, format: str, options: dict[str, Any]) -> HttpResponse:
    take_from(limits.IMPORTS, request.tenant)
    job = start_import(
        tenant=request.tenant, by=request.person, file=file, name=name, chosen_format=format, options=options
    )
    return json_answer(_answer(job), status=202)


@router.operation("GET", "/imports/{id}", KeyScope.CHATS_READ, answers=ImportAnswer)
def get_import(request: ApiRequest, id: Id) -> ImportAnswer:
    """How far it is, and its report once it is done."""
    return _answer(_job(id))


@router.operation("POST", "/imports/{id}/run", KeyScope.CHATS_WRITE, answers=ImportAnswer, status=202, idempotent=True)
def run_import(request: ApiRequest, id: Id, body: RunIn) -> HttpResponse:
    """Import what was only checked, or try again what failed. Anything else stays as it is."""
    job = _job(id)
    if job.check_only:
        job = import_checked(tenant=request.tenant, job=job, by=request.person, text_protocol=body.text_protocol or "")
    else:
        job = try_again(tenant=request.tenant, job=job, by=request.person)
    return json_answer(_answer(job), status=202)


@router.operation("GET", "/imports/{id}/contents", KeyScope.CHATS_READ, answers=ImportContentsOut)
def get_import_contents(request: ApiRequest, id: Id) -> ImportContentsOut:
    """What deleting it would take."""
    found = contents_of(_job(id))
    names = [corpus.name for corpus in corpora_with(found.versions)]
    return ImportContentsOut(chats=len(found.chats), cut=found.cut, kept=found.kept, corpora=names)


@router.operation("DELETE", "/imports/{id}", KeyScope.CHATS_DELETE, answers=ImportDeletionOut)
def delete_one_import(request: ApiRequest, id: Id) -> ImportDeletionOut:
    """Delete the import for good, with its file and every chat that nothing else brought. Counts stay."""
    return ImportDeletionOut.of(delete_import(tenant=request.tenant, by=request.person, job=_job(id)))


@router.operation("GET", "/imports/{id}/deletion", KeyScope.CHATS_READ, answers=ImportDeletionOut)
def get_import_deletion(request: ApiRequest, id: Id) -> ImportDeletionOut:
    """How far the deletion of an import is, also when the import is gone."""
    found = ImportDeletion.objects.filter(number=id).first()
    if found is None:
        raise Http404
    return ImportDeletionOut.of(found)


def _job(pk: int) -> ImportJob:
    found = imports().filter(pk=pk).first()
    if found is None:
        raise Http404
    return found


def _answer(job: ImportJob) -> ImportAnswer:
    return ImportAnswer(job=ImportOut.of(job), report=json.loads(job.report))


# --- receiving


def _received(request: ApiRequest) -> tuple[File[bytes], str]:
    """The file, on disk, with the digest of its bytes. Raises Problem."""
    if request.content_type == "multipart/form-data":
        return _posted(request)
    return _streamed(request)


def _posted(request: ApiRequest) -> tuple[File[bytes], str]:
    found = request.FILES
    if any(getattr(handler, "received", 0) > settings.UPLOAD_LIMIT for handler in request.upload_handlers):
        raise _too_large()
    file = found.get("file")
    if not isinstance(file, File) or len(found.getlist("file")) != 1 or not file.size:
        raise wrong("file", "missing", _("One file is needed."))
    digest = hashlib.sha256()
    for chunk in file.chunks():
        digest.update(chunk)
    file.seek(0)
    return file, digest.hexdigest()


def _streamed(request: ApiRequest) -> tuple[File[bytes], str]:
    """The body itself, written down as it comes in."""
    announced = request.META.get("CONTENT_LENGTH") or "0"
    file = TemporaryUploadedFile("upload", request.content_type or "application/octet-stream", 0, None)
    digest, size = hashlib.sha256(), 0
    try:
        while chunk := request.read(_READ_AT_ONCE):
            size += len(chunk)
            if size > settings.UPLOAD_LIMIT:
                raise _too_large()
            digest.update(chunk)
            file.write(chunk)
        if not size:
            raise wrong("file", "missing", _("One file is needed."))
        if announced.isdecimal() and int(announced) != size:
            raise Problem("malformed_request", _("The body ended early."))
    except BaseException:
        file.close()
        raise
    file.seek(0)
    file.size = size
    return file, digest.hexdigest()


def _too_large() -> Problem:
    megabytes = settings.UPLOAD_LIMIT // (1024 * 1024)
    return Problem("too_large", _("The upload is larger than %(n)s MB.") % {"n": megabytes})
