"""Wrappers: the list, a new one, drafts, putting one away."""

from __future__ import annotations

import json
from typing import Any, Literal

from django.http import Http404, HttpResponse
from pydantic import BaseModel, ConfigDict, Field

from chats.domain.recipes import recipe_from_texts
from chats.models import WrapperDraft, WrapperVersion
from chats.models.wrappers import CONTENT_FIELDS
from chats.queries.wrappers import WrapperRow, built_ins, wrapper_row, wrapper_rows
from chats.services import wrappers as services
from eleanor_site.api_access import ApiRequest, KeyRouter, json_answer
from eleanor_site.api_problems import wrong
from eleanor_site.tenants.models import KeyScope

router = KeyRouter(tags=["wrappers"])


class WrapperSummary(BaseModel):
    """A wrapper that a chat can be rendered with. `key` is what `render` takes; built-in ones have no version."""

    key: str
    label: str
    group: Literal["own", "built_in"]
    kind: str
    version: int | None
    has_draft: bool


class WrapperList(BaseModel):
    items: list[WrapperSummary]


class WrapperContent(BaseModel):
    """The fields of a wrapper. `settings`, `options`, `wording` and the like are objects; `template` is text."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model_name: str | None = Field(default=None, max_length=200)
    base: str | None = Field(default=None, max_length=60)
    settings: dict[str, Any] | None = None
    options: dict[str, Any] | None = None
    wording: dict[str, Any] | None = None
    template: str | None = None
    named_templates: dict[str, str] | None = None
    template_tokens: dict[str, Any] | None = None
    template_kwargs: dict[str, Any] | None = None
    template_profile: Literal["current", "classic"] | None = None
    serving: dict[str, Any] | None = None
    silenced: dict[str, str] | None = Field(default=None, description="Findings of the lint with an answer to each.")


class WrapperAnswer(BaseModel):
    wrapper: WrapperSummary
    revision: int = Field(description="The draft's revision, 0 when there is no draft. Send it when you save.")
    content: WrapperContent


class NewWrapper(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    slug: str = Field(max_length=60)
    name: str = Field(min_length=1, max_length=120)
    content: WrapperContent


class WrapperDraftIn(BaseModel):
    """Fields that are left out stay as they are."""

    model_config = ConfigDict(extra="forbid", strict=True)

    revision: int = Field(ge=0, le=2**31 - 1)
    name: str = Field(default="", max_length=120)
    content: WrapperContent


@router.operation("GET", "/wrappers", KeyScope.WRAPPERS_READ, answers=WrapperList)
def list_wrappers(request: ApiRequest, archived: bool = False) -> WrapperList:
    """The tenant's own wrappers by name, then the built-in ones; with `archived` those that are put away."""
    own = [own_summary(row) for row in wrapper_rows(archived=archived)]
    if archived:
        return WrapperList(items=own)
    others = [
        WrapperSummary(key=one.id, label=one.label, group="built_in", kind="settings", version=None, has_draft=False)
        for one in built_ins()
    ]
    return WrapperList(items=[*own, *others])


@router.operation("GET", "/wrappers/{slug}", KeyScope.WRAPPERS_READ, answers=WrapperAnswer)
def get_wrapper(request: ApiRequest, slug: str, draft: bool = False) -> WrapperAnswer:
    """One of the tenant's wrappers: what holds, or with `draft` what is being written."""
    return wrapper_answer(found_row(slug), draft)


@router.operation("POST", "/wrappers", KeyScope.WRAPPERS_WRITE, answers=WrapperAnswer, status=201, idempotent=True)
def create_wrapper(request: ApiRequest, body: NewWrapper) -> HttpResponse:
    """A new wrapper with a draft."""
    made = services.create_wrapper(
        tenant=request.tenant, by=request.person, name=body.name, slug=body.slug, content=content_texts(body.content)
    )
    return json_answer(wrapper_answer(found_row(made.slug), draft=True), status=201)


@router.operation("PUT", "/wrappers/{slug}/draft", KeyScope.WRAPPERS_WRITE, answers=WrapperAnswer)
def save_wrapper_draft(request: ApiRequest, slug: str, body: WrapperDraftIn) -> WrapperAnswer:
    """Save the draft. 409 when somebody else saved since the revision that you saw."""
    row = found_row(slug)
    services.save_wrapper_draft(
        tenant=request.tenant,
        wrapper=row.wrapper,
        by=request.person,
        revision=body.revision,
        content=content_texts(body.content),
        name=body.name,
    )
    return wrapper_answer(found_row(slug), draft=True)


@router.operation("DELETE", "/wrappers/{slug}/draft", KeyScope.WRAPPERS_WRITE, answers=None, status=204)
def discard_wrapper_draft(request: ApiRequest, slug: str) -> HttpResponse:
    """Throw the draft away; a wrapper without versions disappears with it."""
    services.discard_wrapper_draft(tenant=request.tenant, wrapper=found_row(slug).wrapper, by=request.person)
    return HttpResponse(status=204)


@router.operation("POST", "/wrappers/{slug}/draft/rebase", KeyScope.WRAPPERS_WRITE, answers=WrapperAnswer)
def rebase_wrapper_draft(request: ApiRequest, slug: str) -> WrapperAnswer:
    """Put the draft on top of the newest version, once somebody has looked at what that one changed."""
    row = found_row(slug)
    if row.draft is None:
        raise Http404
    services.begin_again_on_newest(tenant=request.tenant, wrapper=row.wrapper, by=request.person)
    return wrapper_answer(found_row(slug), draft=True)


@router.operation("POST", "/wrappers/{slug}/archive", KeyScope.WRAPPERS_WRITE, answers=WrapperSummary)
def archive_wrapper(request: ApiRequest, slug: str) -> WrapperSummary:
    """Put a wrapper away; it stays readable, and can be brought back."""
    services.archive_wrapper(tenant=request.tenant, wrapper=found_row(slug).wrapper, by=request.person)
    return own_summary(found_row(slug))


@router.operation("POST", "/wrappers/{slug}/restore", KeyScope.WRAPPERS_WRITE, answers=WrapperSummary)
def restore_wrapper(request: ApiRequest, slug: str) -> WrapperSummary:
    """Bring a wrapper back that was put away."""
    services.restore_wrapper(tenant=request.tenant, wrapper=found_row(slug).wrapper, by=request.person)
    return own_summary(found_row(slug))


def found_row(slug: str) -> WrapperRow:
    row = wrapper_row(slug)
    if row is None:
        raise Http404
    return row


_JSON_FIELDS = frozenset(CONTENT_FIELDS) - {"model_name", "base", "template", "template_profile"}


def content_texts(content: WrapperContent) -> dict[str, str]:
    """The fields as they are stored. Raises Problem for what no page could read again."""
    given = content.model_dump(exclude_none=True)
    texts = {
        name: json.dumps(value, ensure_ascii=False) if name in _JSON_FIELDS else value for name, value in given.items()
    }
    try:
        recipe_from_texts(texts)
    except ValueError as error:
        raise wrong("content", "recipe", str(error)) from None
    return texts


def content_of(row: WrapperVersion | WrapperDraft) -> WrapperContent:
    values = {
        name: json.loads(getattr(row, name) or "{}") if name in _JSON_FIELDS else getattr(row, name)
        for name in WrapperContent.model_fields
    }
    # What is empty holds the default, and stays away.
    return WrapperContent(**{name: value for name, value in values.items() if value not in ("", {})})


def wrapper_answer(row: WrapperRow, draft: bool) -> WrapperAnswer:
    if draft and row.draft is None:
        raise Http404
    revision = row.draft.revision if row.draft else 0
    content = content_of(row.newest if draft else row.content)
    return WrapperAnswer(wrapper=own_summary(row), revision=revision, content=content)


def own_summary(row: WrapperRow) -> WrapperSummary:
    return WrapperSummary(
        key=row.wrapper.slug,
        label=row.wrapper.name,
        group="own",
        kind=row.wrapper.kind,
        version=row.content.number if isinstance(row.content, WrapperVersion) else None,
        has_draft=row.draft is not None,
    )
