"""How wrappers that merge neighbours group the items of a chat (chat-wrappers.md section 9), and write the groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chats.domain.history_items import HistoryItem, ModelItem, SystemItem, UserItem
from chats.domain.llama_text import Piece
from chats.domain.wrappers.base import ChatWrapper, Unit
from chats.domain.wrappers.pieces import GAP


@dataclass(frozen=True, slots=True)
class Turn:
    """A group of G2: systems, then users, then models; any may be missing."""

    systems: list[SystemItem]
    users: list[UserItem]
    models: list[ModelItem]


def grouped_alone(items: Sequence[HistoryItem]) -> list[Unit]:
    """G1: runs of systems merge, every user and every model stands alone."""
    groups: list[Unit] = []
    run: list[HistoryItem] = []
    for item in items:
        if isinstance(item, SystemItem):
            if not run:
                groups.append(run)
            run.append(item)
        else:
            run = []
            groups.append((item,))
    return groups


def grouped_in_turns(items: Sequence[HistoryItem]) -> list[Unit]:
    """G2: systems, then users, then models."""
    groups: list[Unit] = []
    group: list[HistoryItem] = []
    previous: type | None = None
    for item in items:
        kind = type(item)
        starts = (kind is SystemItem and previous is not SystemItem) or (
            kind is UserItem and previous is not SystemItem and previous is not UserItem
        )
        if starts or not groups:
            group = []
            groups.append(group)
        group.append(item)
        previous = kind
    return groups


def grouped_by_role(items: Sequence[HistoryItem]) -> list[Unit]:
    """G3: runs of one role merge."""
    groups: list[Unit] = []
    group: list[HistoryItem] = []
    previous: type | None = None
    for item in items:
        if type(item) is not previous:
            group = []
            groups.append(group)
            previous = type(item)
        group.append(item)
    return groups


def turn_of(unit: Unit) -> Turn:
    """The roles of a G2 group apart."""
    return Turn(
        [item for item in unit if isinstance(item, SystemItem)],
        [item for item in unit if isinstance(item, UserItem)],
        [item for item in unit if isinstance(item, ModelItem)],
    )


def write_systems(out: list[Piece], items: Sequence[HistoryItem], separator: Piece = GAP) -> None:
    """The texts of system items with the separator between them."""
    for index, item in enumerate(items):
        if index:
            out.append(separator)
        assert isinstance(item, SystemItem)
        out.extend(item.text.values)


def write_users(out: list[Piece], items: Sequence[HistoryItem]) -> None:
    for index, item in enumerate(items):
        if index:
            out.append(GAP)
        assert isinstance(item, UserItem)
        out.append(item.text)


def write_models(wrapper: ChatWrapper, out: list[Piece], items: Sequence[HistoryItem]) -> None:
    for index, item in enumerate(items):
        if index:
            out.append(GAP)
        assert isinstance(item, ModelItem)
        wrapper.write_response(out, item.response)


def write_group(wrapper: ChatWrapper, out: list[Piece], items: Sequence[HistoryItem]) -> None:
    """The texts of one role with blank lines between them."""
    if not items:
        return
    if isinstance(items[0], SystemItem):
        write_systems(out, items)
    elif isinstance(items[0], UserItem):
        write_users(out, items)
    else:
        write_models(wrapper, out, items)
