"""Names of what an engine result depends on: equal names, equal results (rule-engine.md sections 5 and 7.2)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

import numpy as np

from rules.domain.atoms import Flags
from rules.domain.replaying import SegmentResult


def corpus_digest(segments: Sequence[tuple[str, Flags | None]]) -> str:
    """SHA-256 of a corpus: the digests of its segments in order, each with its scope (None: all of its points)."""
    whole = hashlib.sha256()
    for digest, scope in segments:
        whole.update(digest.encode())
        whole.update(b"*" if scope is None or scope.all() else np.packbits(scope).tobytes())
        whole.update(b"\n")
    return whole.hexdigest()


def result_digest(results: Sequence[SegmentResult]) -> str:
    """SHA-256 of what a replay gave: its outcomes, whatever their compression, and its counts."""
    whole = hashlib.sha256()
    for result in results:
        whole.update(result.outcome.astype("<u2").tobytes())
        whole.update(json.dumps(result.counts, sort_keys=True, separators=(",", ":")).encode())
    return whole.hexdigest()
