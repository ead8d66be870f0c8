"""Texts that are removed when an answer begins with them (`ignoreStartText`, chat-wrappers.md section 14.1)."""

from __future__ import annotations

from collections.abc import Sequence

from chats.domain.output_parsing.triggers import TriggerDetector
from chats.domain.output_parsing.vocabulary import Token


class StartTexts:
    """Decides how long the beginning of an answer must wait, and what is cut off it.

    As in the original, texts and special tokens are looked at apart from each other to see whether waiting is
    worthwhile, and together to find what is cut off: a start text that mixes both is cut off only if another one was
    seen, too.
    """

    def __init__(self) -> None:
        self._triggers: list[Sequence[Token]] = []
        self._texts = TriggerDetector()
        self._specials = TriggerDetector()
        self._seen = 0
        self.removed: list[Token] | None = None

    def add(self, triggers: Sequence[Sequence[Token]]) -> None:
        self._triggers.extend(triggers)
        self._restart()

    def _restart(self) -> None:
        self._texts = TriggerDetector(self._triggers)
        self._specials = TriggerDetector(self._triggers)
        self._seen = 0

    @property
    def must_wait(self) -> bool:
        return self._texts.in_progress or self._specials.in_progress

    def look_at(self, pending: Sequence[Token]) -> None:
        """Take note of the pending tokens that haven't been looked at yet."""
        for token in pending[self._seen :]:
            if isinstance(token, str):
                self._texts.record(token)
                self._specials.forget_progress()
            else:
                self._specials.record(token)
        self._seen = len(pending)

    def cut(self, pending: list[Token], force: bool = False) -> list[Token]:
        """The pending tokens without the start text; without `force` only once nothing is waited for."""
        seen_any = self._texts.triggered or self._specials.triggered
        if self.removed is not None or not pending or not seen_any or (self.must_wait and not force):
            return pending
        self._restart()
        detector = TriggerDetector(self._triggers)
        rest: list[Token] | None = None
        for index, token in enumerate(pending):
            detector.record(token, start=index == 0)
            if detector.triggered:
                self.removed = list(detector.first_found or ())
                rest = pending[index + 1 :]
                detector.forget_found()
            elif not detector.in_progress:
                break
        return pending if rest is None else rest
