"""The limits of an upload (import-formats.md section 5) and the options of an import."""

from __future__ import annotations

from dataclasses import dataclass, field

MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """Per tenant and adjustable. Sizes in bytes.

    `record_bytes` bounds what one chat may hold in memory while it is read: one line, one array item, one document.
    """

    upload_bytes: int = 512 * MEGABYTE
    ratio: int = 200
    members: int = 200_000
    message_bytes: int = 10 * MEGABYTE
    messages: int = 20_000
    depth: int = 64
    digits: int = 100
    record_bytes: int = 128 * MEGABYTE
    gzip_levels: int = 2


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What a person chose for one import.

    `encoding` is only asked for when the bytes are not Unicode; `all_branches` makes a chat of each leaf of a tree;
    `text_protocol` names a protocol of `text_protocols.PROTOCOLS`; `nudge_codes` are the foreign nudges that are
    recognised (None = those that are on by default).
    """

    limits: Limits = field(default_factory=Limits)
    encoding: str | None = None
    all_branches: bool = False
    text_protocol: str | None = None
    nudge_codes: frozenset[str] | None = None
