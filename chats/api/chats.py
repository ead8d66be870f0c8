"""Chats: the list, one of them, sending, taking them along, deleting one."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Any, Literal

from django.http import Http404, HttpResponse, StreamingHttpResponse
from django.utils.translation import gettext as _
from ninja import Body, Query
from pydantic import BaseModel, ConfigDict, Field

from chats.api.exchange import DescribedAs, Exchange, read_chat
from chats.domain import ChatRecord
from chats.domain.exchange import to_exchange
from chats.domain.masking import masked, masked_id
from chats.models import Chat
from chats.queries.chats import ChatFilter, chats, record_of, stored_version
from chats.services import receiving
from chats.services.exporting import export_chats
from chats.services.retention import delete_chat
from chats.storing import Stored
from eleanor_site.api_access import ApiRequest, KeyRouter, json_answer, rows_after
from eleanor_site.api_files import JSON_LINES, file_answer
from eleanor_site.api_problems import wrong
from eleanor_site.api_values import PAGE, After, Day, Id, Limit, Number, Text
from eleanor_site.tenants.models import KeyScope

router = KeyRouter(tags=["chats"])
MOST_CHATS = 100


class ChatSummary(BaseModel):
    """A chat; the counts are those of its newest version.

    Lists show e-mail addresses, keys and tokens in `external_id` and `title` masked, as pages do; the chat itself,
    asked for by its `id`, has them as they are.
    """

    id: int
    external_id: str
    title: str
    format: str
    version: int
    language: str
    model: str
    messages: int
    turns: int
    round_points: int
    final_points: int
    nudges: int
    started_at: datetime | None
    updated_at: datetime

    @classmethod
    def of(cls, chat: Chat, *, listed: bool = False) -> ChatSummary:
        return cls(
            id=chat.pk,
            external_id=masked_id(chat.external_id) if listed else chat.external_id,
            title=masked(chat.title) if listed else chat.title,
            format=chat.format,
            version=chat.version_count,
            language=chat.language,
            model=chat.model,
            messages=chat.message_count,
            turns=chat.turn_count,
            round_points=chat.round_points,
            final_points=chat.final_points,
            nudges=chat.nudge_count,
            started_at=chat.started_at,
            updated_at=chat.updated_at,
        )


class ChatList(BaseModel):
    items: list[ChatSummary]
    next: str | None = Field(description="The cursor of the next page: send it as `after`. Null at the end.")


class ChatAnswer(BaseModel):
    """A chat with the content of one of its versions, in the exchange form."""

    chat: ChatSummary
    version: int
    content: dict[str, Any]


class ChatBatch(BaseModel):
    """One to a hundred chats. They are stored all or none."""

    model_config = ConfigDict(extra="forbid", strict=True)

    chats: list[Exchange] = Field(min_length=1, max_length=MOST_CHATS)


class StoredChat(BaseModel):
    """What became of a chat: `taken` (new), `updated` (a new version) or `unchanged`."""

    id: int
    external_id: str
    version: int
    outcome: Literal["taken", "updated", "unchanged"]

    @classmethod
    def of(cls, stored: Stored) -> StoredChat:
        return cls(
            id=stored.chat.pk,
            external_id=stored.chat.external_id,
            version=stored.version.number,
            outcome=stored.outcome.value,
        )


class StoredChats(BaseModel):
    chats: list[StoredChat]


class DeletedChat(BaseModel):
    """What went with it: versions of the chat, and uploaded files that held it."""

    versions: int
    files: int


@router.operation("GET", "/chats", KeyScope.CHATS_READ, answers=ChatList)
def list_chats(
    request: ApiRequest,
    q: Text = "",
    language: Text = "",
    model: Text = "",
    format: Text = "",
    nudged: bool = False,
    fired: Text = "",
    verdict: Text = "",
    job: Annotated[Id | None, Query(alias="import")] = None,
    start: Annotated[Day | None, Query(alias="from")] = None,
    end: Annotated[Day | None, Query(alias="to")] = None,
    after: After = None,
    limit: Limit = PAGE,
) -> ChatList:
    """The newest first. `q` searches the texts: words in any inflection, and phrases in quotes.

    `fired` is the code of a rule that fired or a nudge that is recorded; `verdict` is right, wrong, unsure, missed, any
    or none.
    """
    wanted = _filter(q, language, model, format, nudged, fired, verdict, job, start, end)
    rows, following = rows_after(chats(wanted), after, limit)
    return ChatList(items=[ChatSummary.of(chat, listed=True) for chat in rows], next=following)


@router.operation("GET", "/chats/export", KeyScope.CHATS_READ, answers=None, files=(JSON_LINES,))
def export_all_chats(
    request: ApiRequest,
    q: Text = "",
    language: Text = "",
    model: Text = "",
    format: Text = "",
    nudged: bool = False,
    fired: Text = "",
    verdict: Text = "",
    job: Annotated[Id | None, Query(alias="import")] = None,
    start: Annotated[Day | None, Query(alias="from")] = None,
    end: Annotated[Day | None, Query(alias="to")] = None,
) -> StreamingHttpResponse:
    """The chats that the filters leave, one a line in the exchange form, then a trailer with count and digest."""
    wanted = _filter(q, language, model, format, nudged, fired, verdict, job, start, end)
    lines = export_chats(tenant=request.tenant, chats=chats(wanted))
    return file_answer(lines, "jsonl", f"{request.tenant.slug}-chats")


@router.operation("GET", "/chats/{id}", KeyScope.CHATS_READ, answers=ChatAnswer)
def get_chat(request: ApiRequest, id: Id, version: Number | None = None) -> ChatAnswer:
    """One chat with the content of its newest version, or of the one that `version` names."""
    row = stored_version(id, version)
    if row is None:
        raise Http404
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


@router.operation("DELETE", "/chats/{id}", KeyScope.CHATS_DELETE, answers=DeletedChat)
def delete_one_chat(request: ApiRequest, id: Id) -> DeletedChat:
    """Delete a chat for good, with what was made from it and the uploaded files that hold it. Counts stay."""
    found = Chat.objects.filter(pk=id).first()
    if found is None:
        raise Http404
    removed = delete_chat(tenant=request.tenant, by=request.person, chat=found)
    return DeletedChat(versions=removed.versions, files=removed.files)


def _filter(
    q: str,
    language: str,
    model: str,
    format: str,
    nudged: bool,
    fired: str,
    verdict: str,
    job: int | None,
    start: date | None,
    end: date | None,
) -> ChatFilter:
    return ChatFilter(
        text=q.strip(),
        language=language,
        model=model,
        format=format,
        nudged=nudged,
        job=job,
        start=start,
        end=end,
        narrowed=tuple((key, value) for key, value in (("fired", fired), ("verdict", verdict)) if value),
    )
