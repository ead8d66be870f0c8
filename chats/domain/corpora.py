"""The digest that names a corpus."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def corpus_digest(content_hashes: Iterable[str]) -> str:
    """SHA-256 over the content hashes of the chat versions, in order, one a line. Replays name their chats alike."""
    return hashlib.sha256("\n".join(content_hashes).encode()).hexdigest()
