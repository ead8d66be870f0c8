"""Endpoints of the conversation side. Each calls the service or query that its page calls."""

from __future__ import annotations

import json
from typing import Annotated, Any

from django.http import Http404, HttpResponse
from django.utils.translation import gettext as _
from ninja import Body, Query
from pydantic import Field

from chats.api_types import (
    MOST_CHATS,
    ChatAnswer,
    ChatBatch,
    ChatList,
    ChatSummary,
    DescribedAs,
    NewWrapper,
    RenderAnswer,
    RenderIn,
    StoredChat,
    StoredChats,
    WrapperAnswer,
    WrapperContent,
    WrapperDraftIn,
    WrapperList,
    WrapperSummary,
    WrapperVersionIn,
    own_summary,
    read_chat,
)
from chats.domain import ChatRecord
from chats.domain.exchange import to_exchange
from chats.models import Chat, ChatVersion
from chats.models.wrappers import CONTENT_FIELDS
from chats.queries.chats import ChatFilter, chats, record_of
from chats.queries.previews import preview
from chats.queries.wrappers import WrapperRow, built_ins, choice, wrapper_row, wrapper_rows
from chats.services import receiving
from chats.services import wrappers as wrapper_services
from eleanor_site import limits
from eleanor_site.api_access import LARGEST_PAGE, PAGE, ApiRequest, Day, KeyRouter, json_answer, rows_after
from eleanor_site.api_problems import Problem, wrong
from eleanor_site.tenants.models import KeyScope

router = KeyRouter(tags=["chats"])

Id = Annotated[int, Field(ge=1, le=2**63 - 1)]
Number = Annotated[int, Field(ge=1, le=2**31 - 1)]
Limit = Annotated[int, Field(ge=1, le=LARGEST_PAGE)]
After = Annotated[str | None, Query(description="The `next` of the page before.", max_length=64)]
Text = Annotated[str, Query(max_length=300)]


@router.operation("GET", "/chats", KeyScope.CHATS_READ, answers=ChatList)
def list_chats(
    request: ApiRequest,
    q: Text = "",
    language: Text = "",
    model: Text = "",
    format: Text = "",
    nudged: bool = False,
    start: Annotated[Day | None, Query(alias="from")] = None,
    end: Annotated[Day | None, Query(alias="to")] = None,
    after: After = None,
    limit: Limit = PAGE,
) -> ChatList:
    """The newest first. `q` searches the texts: words in any inflection, and phrases in quotes."""
    wanted = ChatFilter(
        text=q.strip(), language=language, model=model, format=format, nudged=nudged, start=start, end=end
    )
    rows, following = rows_after(chats(wanted), after, limit)
    return ChatList(items=[ChatSummary.of(chat, listed=True) for chat in rows], next=following)


@router.operation("GET", "/chats/{id}", KeyScope.CHATS_READ, answers=ChatAnswer)
def get_chat(request: ApiRequest, id: Id, version: Number | None = None) -> ChatAnswer:
    """One chat with the content of its newest version, or of the one that `version` names."""
    row = _chat_version(id, version)
    return ChatAnswer(chat=ChatSummary.of(row.chat), version=row.number, content=to_exchange(record_of(row)))


@router.operation("POST", "/chats", KeyScope.CHATS_WRITE, answers=StoredChats, idempotent=True)
def post_chats(request: ApiRequest, body: Annotated[dict[str, Any], DescribedAs(ChatBatch), Body()]) -> HttpResponse:
    """Store chats in the exchange form, or bring them up to date: the same `external_id` is the same chat.

    The body is `{"chats": […]}`. All of them are stored or none; sending the same chat again changes nothing.
    """
    stored = receiving.receive_chats(tenant=request.tenant, by=request.person, records=_records(body))
    return json_answer(StoredChats(chats=[StoredChat.of(one) for one in stored]))


def _records(body: dict[str, Any]) -> list[ChatRecord]:
    """The chats of a body. They are read as they came: a model of ours would reorder what has to be kept as it is."""
    given = body.get("chats")
    if not isinstance(given, list):
        raise wrong("chats", "missing" if given is None else "list_type", _("A list of chats is needed."))
    for key in body:
        if key != "chats":
            raise wrong(key, "extra_forbidden", _("There is no field with this name."))
    if not 1 <= len(given) <= MOST_CHATS:
        code = "too_short" if not given else "too_long"
        raise wrong("chats", code, _("One to %(n)s chats can be sent at once.") % {"n": MOST_CHATS})
    return [read_chat(value, f"chats[{n}]") for n, value in enumerate(given)]


# --- wrappers


@router.operation("GET", "/wrappers", KeyScope.WRAPPERS_READ, answers=WrapperList)
def list_wrappers(request: ApiRequest) -> WrapperList:
    """The tenant's own wrappers by name, then the built-in ones."""
    own = [own_summary(row) for row in wrapper_rows()]
    others = [
        WrapperSummary(key=one.id, label=one.label, group="built_in", kind="settings", version=None, has_draft=False)
        for one in built_ins()
    ]
    return WrapperList(items=[*own, *others])


@router.operation("GET", "/wrappers/{slug}", KeyScope.WRAPPERS_READ, answers=WrapperAnswer)
def get_wrapper(request: ApiRequest, slug: str, draft: bool = False) -> WrapperAnswer:
    """One of the tenant's wrappers: what holds, or with `draft` what is being written."""
    return _wrapper_answer(_row(slug), draft)


@router.operation("POST", "/wrappers", KeyScope.WRAPPERS_WRITE, answers=WrapperAnswer, status=201, idempotent=True)
def create_wrapper(request: ApiRequest, body: NewWrapper) -> HttpResponse:
    """A new wrapper with a draft."""
    made = wrapper_services.create_wrapper(
        tenant=request.tenant, by=request.person, name=body.name, slug=body.slug, content=_content_texts(body.content)
    )
    return json_answer(_wrapper_answer(_row(made.slug), draft=True), status=201)


@router.operation("PUT", "/wrappers/{slug}/draft", KeyScope.WRAPPERS_WRITE, answers=WrapperAnswer)
def save_wrapper_draft(request: ApiRequest, slug: str, body: WrapperDraftIn) -> WrapperAnswer:
    """Save the draft. 409 when somebody else saved since the revision that you saw."""
    row = _row(slug)
    wrapper_services.save_wrapper_draft(
        tenant=request.tenant,
        wrapper=row.wrapper,
        by=request.person,
        revision=body.revision,
        content=_content_texts(body.content),
        name=body.name,
    )
    return _wrapper_answer(_row(slug), draft=True)


@router.operation(
    "POST", "/wrappers/{slug}/versions", KeyScope.WRAPPERS_WRITE, answers=WrapperAnswer, status=201, idempotent=True
)
def make_wrapper_version(request: ApiRequest, slug: str, body: WrapperVersionIn) -> HttpResponse:
    """Make a version of the draft."""
    row = _row(slug)
    wrapper_services.make_wrapper_version(
        tenant=request.tenant, wrapper=row.wrapper, by=request.person, revision=body.revision, note=body.note
    )
    return json_answer(_wrapper_answer(_row(slug), draft=False), status=201)


@router.operation("POST", "/wrappers/{key}/render", KeyScope.WRAPPERS_READ, answers=RenderAnswer)
def render(request: ApiRequest, key: str, body: RenderIn) -> RenderAnswer:
    """The prompt that a wrapper makes of a chat. `key` is that of a list entry, `SLUG@draft` or `SLUG@N`."""
    found = choice(key)
    if found is None:
        raise Http404
    if (body.chat is None) == (body.conversation is None):
        raise wrong("chat", "one_of", _("Give either a stored chat or a conversation."))
    wait = limits.take(limits.PREVIEWS, request.tenant.slug)
    if wait:
        raise Problem("too_many_requests", headers={"Retry-After": str(wait)})
    if body.chat is not None:
        version = _known_version(body.chat)
        if version is None:
            raise wrong("chat", "unknown", _("There is no chat with this id."))
        record = record_of(version)
    else:
        record = read_chat(body.conversation, "conversation")
    last = len(record.chat.messages) - 1
    if body.upto is not None and body.upto > last:
        raise wrong("upto", "out_of_range", _("The chat ends before this message."))
    shown = preview(record, found.recipe, body.upto, body.nudge)
    return RenderAnswer(text=shown.text, problem=str(shown.problem), left_out=[str(text) for text in shown.left_out])


def _known_version(chat: int, number: int | None = None) -> ChatVersion | None:
    row = Chat.objects.filter(pk=chat).first()
    if row is None:
        return None
    wanted = row.version_count if number is None else number
    return ChatVersion.objects.select_related("chat").filter(chat=row, number=wanted).first()


def _chat_version(chat: int, number: int | None) -> ChatVersion:
    found = _known_version(chat, number)
    if found is None:
        raise Http404
    return found


def _row(slug: str) -> WrapperRow:
    row = wrapper_row(slug) if "\x00" not in slug else None
    if row is None:
        raise Http404
    return row


_JSON_FIELDS = frozenset(CONTENT_FIELDS) - {"model_name", "base", "template", "template_profile"}


def _content_texts(content: WrapperContent) -> dict[str, str]:
    given = content.model_dump(exclude_none=True)
    return {
        name: json.dumps(value, ensure_ascii=False) if name in _JSON_FIELDS else value for name, value in given.items()
    }


def _wrapper_answer(row: WrapperRow, draft: bool) -> WrapperAnswer:
    if draft and row.draft is None:
        raise Http404
    content = row.newest if draft else row.content
    values = {
        name: json.loads(getattr(content, name) or "{}") if name in _JSON_FIELDS else getattr(content, name)
        for name in WrapperContent.model_fields
    }
    # What is empty holds the default, and stays away.
    known = {name: value for name, value in values.items() if value not in ("", {})}
    revision = row.draft.revision if row.draft else 0
    return WrapperAnswer(wrapper=own_summary(row), revision=revision, content=WrapperContent(**known))
