"""Histories as a chat template can take them (chat-wrappers.md section 12.4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from chats.domain.history_items import (
    FunctionCall,
    HistoryItem,
    ModelItem,
    ResponseEntry,
    Segment,
    SystemItem,
    UserItem,
    is_thought,
)
from chats.domain.llama_text import LlamaText
from chats.domain.wrappers.jinja.options import MESSAGE

_PUNCTUATION = "1234567890!@#$%^&*()_+-=[]{}|\\:;\"',./<>?`~"


def as_user(item: SystemItem, form: str) -> UserItem:
    return UserItem(str(LlamaText.join(item.text, form.split(MESSAGE))))


def with_thoughts(item: ModelItem, after_calls: bool) -> ModelItem:
    """The response with empty thoughts where the template opens one."""
    response: list[ResponseEntry] = []
    if not item.response or not is_thought(item.response[0]):
        response.append(Segment("thought", "", True))
    is_open = not response
    for index, entry in enumerate(item.response):
        response.append(entry)
        if isinstance(entry, Segment) and entry.segment_type == "thought":
            is_open = not entry.ended
        elif after_calls and isinstance(entry, FunctionCall):
            following = item.response[index + 1] if index + 1 < len(item.response) else None
            if not isinstance(following, FunctionCall) and not (following is not None and is_thought(following)):
                response.append(Segment("thought", "", not is_open))
    return ModelItem(tuple(response))


def joined(items: Sequence[HistoryItem]) -> list[HistoryItem]:
    """Neighbours of one type merged, with a blank line between them."""
    groups: list[list[HistoryItem]] = []
    for item in items:
        if groups and type(groups[-1][0]) is type(item):
            groups[-1].append(item)
        else:
            groups.append([item])
    return [_merged(group) if len(group) > 1 else group[0] for group in groups]


def _merged(group: Sequence[HistoryItem]) -> HistoryItem:
    if isinstance(group[0], SystemItem):
        return SystemItem(LlamaText.join("\n\n", [cast(SystemItem, item).text for item in group]))
    if isinstance(group[0], UserItem):
        return UserItem("\n\n".join([cast(UserItem, item).text for item in group]))
    response: list[ResponseEntry] = []
    for index, item in enumerate(group):
        # Texts meet only at the seams; inside an item they stay apart.
        added: list[ResponseEntry] = list(cast(ModelItem, item).response)
        if index:
            added.insert(0, "\n\n")
        while index and added and isinstance(added[0], str) and response and isinstance(response[-1], str):
            response[-1] += cast(str, added.pop(0))
        response += added
    return ModelItem(tuple(response))


def _sanity_histories() -> list[list[HistoryItem]]:
    system = SystemItem(LlamaText("System message ~!@#$%^&*()\n*"))
    user, second_user = UserItem(f"Message {_PUNCTUATION}"), UserItem(f"Message2 {_PUNCTUATION}")
    answer, second_answer = ModelItem((f"Result {_PUNCTUATION}",)), ModelItem((f"Result2 {_PUNCTUATION}",))
    nothing = ModelItem(("",))
    return [
        [system, user, nothing],
        [system, user, answer],
        [system, user, answer, second_user, nothing],
        [system, user, answer, second_user, second_answer],
    ]


SANITY_HISTORIES: Final = _sanity_histories()
"""The chats that every template must be able to render."""
