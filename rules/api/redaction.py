"""Taking texts out of a chat for good: first what would go, then doing it."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from pydantic import BaseModel, Field

from chats.models import Chat
from eleanor_site.api_access import ApiRequest, KeyRouter, json_answer
from eleanor_site.api_values import Id, Index, Number, Strict
from eleanor_site.tenants.models import KeyScope
from rules.services import redacting as services

router = KeyRouter(tags=["chats"])


class RedactionTried(Strict):
    """What should go: all that a pattern (RE2) finds, and everything that these messages say."""

    pattern: str = Field(default="", max_length=10_000)
    messages: list[Index] = Field(default=[], max_length=1000)


class RedactionIn(RedactionTried):
    version: Number = Field(description="The chat's version that you saw. 409 when it went on meanwhile.")


class RedactedPlace(BaseModel):
    """A text that goes, with a little of what stands around it; `message` is null for what is said of the chat."""

    message: int | None
    part: str
    before: str
    found: str
    after: str


class RedactionPreview(BaseModel):
    """The first fifty of `places` texts that would go, in this version of the chat."""

    version: int
    places: int
    shown: list[RedactedPlace]


class RedactionDone(BaseModel):
    """How many texts are gone, and how many uploaded files went because they still held them."""

    places: int
    files: int


@router.operation("POST", "/chats/{id}/redaction/preview", KeyScope.CHATS_READ, answers=RedactionPreview)
def preview_redaction(request: ApiRequest, id: Id, body: RedactionTried) -> RedactionPreview:
    """What would go. Nothing is changed."""
    chat = _chat(id)
    found = services.preview(Chat.objects.filter(pk=chat.pk), services.redactor_of(body.pattern, body.messages))
    shown = [place for one in found.shown for place in one.places]
    return RedactionPreview(
        version=chat.version_count,
        places=found.places,
        shown=[
            RedactedPlace(
                message=place.message, part=place.part, before=place.before, found=place.found, after=place.after
            )
            for place in shown
        ],
    )


@router.operation("POST", "/chats/{id}/redaction", KeyScope.CHATS_DELETE, answers=RedactionDone, idempotent=True)
def redact_chat(request: ApiRequest, id: Id, body: RedactionIn) -> HttpResponse:
    """Take these texts out for good; `[redacted]` stands in their places, and points keep theirs."""
    chat = _chat(id)
    done = services.redact_chats(
        tenant=request.tenant,
        by=request.person,
        seen={chat.pk: body.version},
        pattern=body.pattern,
        chosen=body.messages,
    )
    return json_answer(RedactionDone(places=done.places, files=done.files))


def _chat(pk: int) -> Chat:
    found = Chat.objects.filter(pk=pk).first()
    if found is None:
        raise Http404
    return found
