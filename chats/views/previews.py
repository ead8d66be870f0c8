"""Side by side: one to four wrappers on one chat and turn."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from chats.models import Chat
from chats.nudge_texts import nudge_texts
from chats.queries.previews import SAMPLE, ChosenChat, Preview, chosen_chat, side_by_side
from chats.queries.wrappers import DEFAULT_BUILT_IN, choice, choice_labels
from eleanor_site.access import viewer
from eleanor_site.errors import too_many
from eleanor_site.limits import PREVIEWS, take
from eleanor_site.web import Request, page

MAX_COLUMNS = 4
MAX_NUDGE = 20_000
CHATS_OFFERED = 50
MAX_CANONICAL = 400


@viewer
@require_safe
def wrapper_previews(request: Request) -> HttpResponse:
    """`?m=a&m=b&chat=&turn=&nudge=CODE&canonical=1`; `nudge_text` tries words of one's own."""
    wait = take(PREVIEWS, f"{request.user.pk}")
    if wait:
        return too_many(request, wait)
    given = request.GET
    chat = chosen_chat(given.get("chat", ""), given.get("turn", ""))
    nudges = nudge_texts(request.tenant)
    code = given.get("nudge", "")
    own = given.get("nudge_text", "").replace("\r\n", "\n").replace("\x00", "")[:MAX_NUDGE]
    text = own or next((nudge.text for nudge in nudges if nudge.code == code), "")
    keys = [key for key in given.getlist("m") if key][:MAX_COLUMNS] or [DEFAULT_BUILT_IN]
    choices = [found for key in keys if (found := choice(key)) is not None]
    made = (
        [Preview(problem=chat.problem) for _one in choices]
        if chat.problem
        else (side_by_side(chat.record, choices, chat.upto, text or None))
    )
    context: dict[str, Any] = {
        "chat": chat,
        "chats": _offered(chat),
        "keys": [*keys, *[""] * (MAX_COLUMNS - len(keys))],
        "wrappers": choice_labels(),
        "columns": [{"choice": one, "preview": shown} for one, shown in zip(choices, made, strict=True)],
        "unknown": [key for key in keys if key not in {one.key for one in choices} and choice(key) is None],
        "nudges": nudges,
        "nudge": code,
        "nudge_text": own,
        "added_by": "" if own else code,
        "canonical": _canonical(chat) if given.get("canonical") else [],
        "with_canonical": bool(given.get("canonical")),
        "anything": Chat.objects.exists(),
        "same": len(made) > 1 and all(one.is_good and one.text == made[0].text for one in made),
    }
    return page(request, "chats/wrapper_previews.html", context, part="columns")


def _canonical(chat: ChosenChat) -> list[dict[str, Any]]:
    messages = chat.record.chat.messages
    end = len(messages) if chat.upto is None else chat.upto + 1
    first = max(0, end - MAX_CANONICAL)
    return [
        {"index": i, "role": messages[i].role, "text": messages[i].content, "details": chat.record.details[i]}
        for i in range(first, end)
    ]


def _offered(chosen: ChosenChat) -> list[tuple[str, str]]:
    newest = [(str(chat.pk), str(chat)) for chat in Chat.objects.order_by("-id")[:CHATS_OFFERED]]
    offered = [*newest, (SAMPLE, _("Sample conversation"))]
    if chosen.key not in dict(offered):
        offered.insert(0, (chosen.key, chosen.title))
    return offered
