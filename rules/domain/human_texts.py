"""Which chats a new prompt concerns: hashes of what people wrote, kept beside the columns of a segment.

A prompt is recognised in a history by its whole text (continuation.md section 8), so a chat in which nobody wrote that
text gives the same points whether the prompt is known or not. The first message of a chat is never a nudge.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from chats.domain.record import ChatRecord
from rules.domain.nudges import normal_form_hash

_ROW = np.dtype([("hash", "<u8"), ("chat", "<u4")])
_DIGITS = 16


class HumanTexts:
    """Collects the hashes of one chat after the other."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int]] = []
        self._chats = 0

    def add(self, record: ChatRecord) -> None:
        """The texts of a chat that stand where a nudge could stand, each once."""
        chat = record.chat
        texts = {
            message.content
            for message, details in zip(chat.messages[1:], record.details[1:], strict=True)
            if message.role == chat.human_role and not message.fewshot_example and not details.nudge_code
        }
        self._rows += sorted((_short(normal_form_hash(text)), self._chats) for text in texts)
        self._chats += 1

    def build(self) -> bytes:
        """Twelve bytes a text: the beginning of its hash, and the number of the chat in the segment."""
        return np.array(self._rows, dtype=_ROW).tobytes()


def _short(digest: str) -> int:
    return int(digest[:_DIGITS], 16)


def chats_with(people: bytes, hashes: Collection[str]) -> npt.NDArray[np.int64]:
    """The numbers of the chats in which somebody wrote one of the texts, given by `normal_form_hash`.

    Two texts that share the beginning of their hashes make a chat too many, never one too few.
    """
    rows = np.frombuffer(people, dtype=_ROW)
    wanted = np.array([_short(digest) for digest in hashes], dtype=np.uint64)
    return np.unique(rows["chat"][np.isin(rows["hash"], wanted)]).astype(np.int64)


def renumbered(people: bytes, numbers: npt.NDArray[np.int64]) -> bytes:
    """The same hashes when chats have other numbers: the new one of each by its old one, -1 for a chat that is gone."""
    rows = np.frombuffer(people, dtype=_ROW)
    chats = numbers[rows["chat"]]
    kept = rows[chats >= 0].copy()
    kept["chat"] = chats[chats >= 0]
    return bytes(kept.tobytes())
