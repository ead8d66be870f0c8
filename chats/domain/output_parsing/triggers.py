"""Detecting stop triggers, tags and call prefixes in a token stream (chat-wrappers.md section 14.1)."""

from __future__ import annotations

from collections.abc import Sequence

from chats.domain.output_parsing.vocabulary import Token


class _Node:
    """A place in the tree of triggers; `trigger` is set where one is complete, and then nothing follows."""

    __slots__ = ("following", "trigger")

    def __init__(self) -> None:
        self.following: dict[Token, _Node] = {}
        self.trigger: tuple[Token, ...] | None = None


class TriggerDetector:
    """Looks for any of its triggers in the tokens recorded.

    Among triggers that begin alike the shortest wins. A special token has no text, so it doesn't interrupt a trigger
    that is spelled out around it. A token costs time by the size of the triggers, never by what was recorded before.
    """

    def __init__(self, triggers: Sequence[Sequence[Token]] = ()) -> None:
        self._root = _Node()
        # For each place reached: where the earliest match in progress began. Later ones share its fate.
        self._active: dict[_Node, int] = {}
        self._found: dict[_Node, int] = {}
        for trigger in triggers:
            self.add(trigger)

    def add(self, trigger: Sequence[Token]) -> None:
        """Add a trigger; an empty one is ignored, as is one that begins with a trigger known already."""
        if not trigger:
            return
        node = self._root
        for token in trigger:
            if node.trigger is not None:
                return
            node = node.following.setdefault(token, _Node())
        node.following = {}
        node.trigger = tuple(trigger)

    def record(self, token: Token, position: int = 0, start: bool = True) -> None:
        """Take the next token, which stands at `position` of the stream; `start` false only continues matches."""
        before = self._active
        self._active = {}
        for node, begun in before.items():
            if not isinstance(token, str):
                self._active.setdefault(node, begun)
            if (following := node.following.get(token)) is not None:
                self._reach(following, begun)
        if start and (first := self._root.following.get(token)) is not None:
            self._reach(first, position)

    def _reach(self, node: _Node, begun: int) -> None:
        if node.trigger is not None:
            self._found.setdefault(node, begun)
        else:
            self._active.setdefault(node, begun)

    def ignores(self, token: Token) -> bool:
        """Whether recording the token would change nothing and nothing is found or in progress."""
        return not self._active and not self._found and token not in self._root.following

    @property
    def in_progress(self) -> bool:
        return bool(self._active)

    @property
    def triggered(self) -> bool:
        return bool(self._found)

    @property
    def first_found(self) -> tuple[Token, ...] | None:
        """The trigger that was completed first, if any."""
        return next((node.trigger for node in self._found), None)

    @property
    def held_positions(self) -> list[int]:
        """Where the matches begin that are complete or in progress: text from there on isn't free yet."""
        return [*self._active.values(), *self._found.values()]

    def forget_progress(self) -> None:
        self._active = {}

    def forget_found(self) -> None:
        self._found = {}

    def lost_by(self, token: Token, start: bool) -> int:
        """How many possible triggers the token would rule out."""
        if isinstance(token, str):
            return sum(_lost_at(node, token) for node in self._active)
        # The text of a special token is empty and rules out no match in progress.
        first = self._root.following.get(token) if start else None
        return int(first is not None and first.trigger is not None)


def _lost_at(node: _Node, token: str) -> int:
    following = node.following.get(token)
    if following is None:
        return len(node.following)
    return len(node.following) - 1 + (following.trigger is not None)


class HeldTokens:
    """Tokens waiting until no detector needs them for a match any more. Positions count all tokens ever added."""

    def __init__(self) -> None:
        self._tokens: list[Token] = []
        self._first = 0
        self._locks: set[int] = set()

    @property
    def next_position(self) -> int:
        return self._first + len(self._tokens)

    @property
    def tokens(self) -> list[Token]:
        return list(self._tokens)

    @property
    def is_empty(self) -> bool:
        return not self._tokens

    def add(self, token: Token) -> int:
        self._tokens.append(token)
        return self.next_position - 1

    def lock(self, position: int) -> None:
        """Keep everything from this position on, whatever the detectors say."""
        self._locks.add(position)

    def unlock(self, position: int) -> None:
        self._locks.discard(position)

    def release(self, *detectors: TriggerDetector | None) -> list[Token]:
        """Take out the tokens before the first one that a detector or a lock still holds."""
        limits = [held for detector in detectors if detector for held in detector.held_positions]
        # A match that began in tokens thrown away meanwhile holds nothing any more.
        limit = min([at for at in (*limits, *self._locks) if at >= self._first], default=self.next_position)
        count = limit - self._first
        freed = self._tokens[:count]
        del self._tokens[:count]
        self._first += count
        return freed

    def clear(self) -> None:
        self._first = self.next_position
        self._tokens = []
        self._locks = set()
