"""Versions of a wrapper: making one, reading, comparing, going back to one."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from django.http import Http404, HttpResponse
from django.utils.translation import gettext as _
from ninja import Query
from pydantic import BaseModel, Field

from chats.api.wrappers import WrapperAnswer, WrapperContent, content_of, found_row, wrapper_answer
from chats.domain.text_differences import diff_rows
from chats.models import WrapperDraft, WrapperVersion
from chats.queries.previews import chosen_chat, preview
from chats.queries.wrappers import WrapperRow, recipe_of
from chats.services import wrappers as services
from chats.wrapper_forms.conflicts import conflict_rows
from eleanor_site import limits
from eleanor_site.api_access import ApiRequest, KeyRouter, json_answer, rows_after, take_from
from eleanor_site.api_problems import wrong
from eleanor_site.api_values import PAGE, After, Id, Limit, Note, Number, Revision, Strict
from eleanor_site.tenants.models import KeyScope

router = KeyRouter(tags=["wrappers"])


class WrapperVersionIn(Strict):
    revision: Revision
    note: str = Field(min_length=1, max_length=2000)


class WrapperRollBackIn(Strict):
    note: Note = ""


class WrapperVersionOut(BaseModel):
    number: int
    note: str
    by: str | None
    created_at: datetime

    @classmethod
    def of(cls, row: WrapperVersion) -> WrapperVersionOut:
        return cls(number=row.number, note=row.note, by=row.by.email if row.by else None, created_at=row.created_at)


class WrapperVersionList(BaseModel):
    items: list[WrapperVersionOut]
    next: str | None


class WrapperVersionAnswer(BaseModel):
    version: WrapperVersionOut
    content: WrapperContent


class PathDifference(BaseModel):
    """A path at which the two differ, with both values as JSON text; null where a side has nothing there."""

    path: str
    a: str | None
    b: str | None


class LineDifference(BaseModel):
    """A line of a comparison; `skip` stands for equal lines that are left out."""

    kind: Literal["same", "gone", "added", "skip"]
    text: str
    count: int


class WrapperComparison(BaseModel):
    """Two states by path, their templates line by line, and what a chat looks like under each, line by line."""

    paths: list[PathDifference]
    template: list[LineDifference]
    output: list[LineDifference]
    problem: str = Field(description="Why there is no output to compare; empty when there is.")


@router.operation("GET", "/wrappers/{slug}/versions", KeyScope.WRAPPERS_READ, answers=WrapperVersionList)
def list_wrapper_versions(
    request: ApiRequest, slug: str, after: After = None, limit: Limit = PAGE
) -> WrapperVersionList:
    """The newest first."""
    found = WrapperVersion.objects.filter(wrapper=found_row(slug).wrapper).select_related("by").order_by("-number")
    rows, following = rows_after(found, after, limit, "number")
    return WrapperVersionList(items=[WrapperVersionOut.of(row) for row in rows], next=following)


@router.operation(
    "POST", "/wrappers/{slug}/versions", KeyScope.WRAPPERS_WRITE, answers=WrapperAnswer, status=201, idempotent=True
)
def make_wrapper_version(request: ApiRequest, slug: str, body: WrapperVersionIn) -> HttpResponse:
    """Make a version of the draft."""
    row = found_row(slug)
    services.make_wrapper_version(
        tenant=request.tenant, wrapper=row.wrapper, by=request.person, revision=body.revision, note=body.note
    )
    return json_answer(wrapper_answer(found_row(slug), draft=False), status=201)


@router.operation("GET", "/wrappers/{slug}/versions/{number}", KeyScope.WRAPPERS_READ, answers=WrapperVersionAnswer)
def get_wrapper_version(request: ApiRequest, slug: str, number: Number) -> WrapperVersionAnswer:
    """One version with its content."""
    found = _version(found_row(slug), number)
    return WrapperVersionAnswer(version=WrapperVersionOut.of(found), content=content_of(found))


@router.operation(
    "POST",
    "/wrappers/{slug}/versions/{number}/roll-back",
    KeyScope.WRAPPERS_WRITE,
    answers=WrapperAnswer,
    status=201,
    idempotent=True,
)
def roll_back_wrapper(request: ApiRequest, slug: str, number: Number, body: WrapperRollBackIn) -> HttpResponse:
    """Make a new version with the content of an old one. A draft stays as it is."""
    row = found_row(slug)
    _version(row, number)
    services.roll_back_wrapper(
        tenant=request.tenant, wrapper=row.wrapper, by=request.person, number=number, note=body.note
    )
    return json_answer(wrapper_answer(found_row(slug), draft=False), status=201)


State = Annotated[str, Query(pattern=r"^(draft|[0-9]{1,8})$", description="The number of a version, or `draft`.")]


@router.operation("GET", "/wrappers/{slug}/comparison", KeyScope.WRAPPERS_READ, answers=WrapperComparison)
def compare_wrapper_versions(
    request: ApiRequest, slug: str, a: State, b: State, chat: Id | None = None, turn: Number | None = None
) -> WrapperComparison:
    """Two states of a wrapper side by side, on the newest chat or the one that is named, up to the end of a turn."""
    take_from(limits.PREVIEWS, request.tenant)
    row = found_row(slug)
    old, new = _state(row, "a", a), _state(row, "b", b)
    on = chosen_chat(str(chat or ""), str(turn or ""))
    if chat is not None and on.key != str(chat):
        raise wrong("chat", "unknown", _("There is no chat with this id."))
    before, after = (preview(on.record, recipe_of(one), on.upto) for one in (old, new))
    both = before.is_good and after.is_good
    return WrapperComparison(
        paths=[
            PathDifference(path=found.key, a=found.theirs, b=found.mine)
            for found in conflict_rows(services.content_of(old), services.content_of(new))
            if found.key != "template"
        ],
        template=_lines(old.template, new.template),
        output=_lines(before.text, after.text) if both else [],
        problem=str(on.problem or before.problem or after.problem),
    )


def _lines(old: str, new: str) -> list[LineDifference]:
    if old == new:
        return []
    return [LineDifference(kind=row.kind, text=row.text, count=row.count) for row in diff_rows(old, new)]


def _state(row: WrapperRow, path: str, name: str) -> WrapperVersion | WrapperDraft:
    found = row.draft if name == "draft" else _numbered(row, int(name))
    if found is None:
        raise wrong(path, "unknown", _("There is nothing with this number."))
    return found


def _version(row: WrapperRow, number: int) -> WrapperVersion:
    found = _numbered(row, number)
    if found is None:
        raise Http404
    return found


def _numbered(row: WrapperRow, number: int) -> WrapperVersion | None:
    return WrapperVersion.objects.select_related("by").filter(wrapper=row.wrapper, number=number).first()
