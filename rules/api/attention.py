"""What needs somebody, as the overview says it."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import BaseModel, Field

from eleanor_site.api_access import ApiRequest, KeyRouter
from eleanor_site.tenants.models import KeyScope, Role
from rules.queries.overview import attention

router = KeyRouter(tags=["attention"])

# What verdicts and the history of nudges tell.
_OF_NUDGES: Final = frozenset({"precision", "silent"})


class Place(BaseModel):
    """A page where it is dealt with; `path` has no host."""

    label: str
    path: str


class NoteOut(BaseModel):
    """One thing that needs attention: a sentence in the language of the request, the first places, and how many more.

    `approval`: changes wait. `failed`: an import, a replay, or a schedule's run. `regressed`: a scheduled replay
    differs from its baseline. `observe`: an observed rule goes back to a draft soon. `precision`: a rule's is under
    the target. `draft`: yours. `silent`: a live rule never fires.
    """

    kind: Literal["approval", "failed", "regressed", "observe", "precision", "draft", "silent"]
    sentence: str
    places: list[Place]
    more: int = Field(description="How many places aren't named.")


class Attention(BaseModel):
    items: list[NoteOut]


@router.operation("GET", "/attention", KeyScope.RULES_READ, answers=Attention)
def get_attention(request: ApiRequest) -> Attention:
    """What needs somebody, the most urgent first; empty when nothing does.

    Waiting changes are told to a key that may publish, except those of the person who made it. Imports are left out
    for one that may not read chats, precision and silence for one that may not read nudges.
    """
    key = request.auth
    role = Role.PUBLISHER if key.allows(KeyScope.RULES_PUBLISH) else Role.VIEWER
    notes = attention(request.tenant, request.person, role, imports=key.allows(KeyScope.CHATS_READ))
    return Attention(
        items=[
            NoteOut(
                kind=note.kind,
                sentence=note.sentence,
                places=[Place(label=label, path=path) for label, path in note.links],
                more=note.more,
            )
            for note in notes
            if note.kind not in _OF_NUDGES or key.allows(KeyScope.NUDGES_READ)
        ]
    )
