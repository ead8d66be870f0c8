"""Importing conversations: open an upload, see what it is, go through its chats (import-formats.md)."""

from chats.domain.formats.identity import content_hash, identity_key, state_hash
from chats.domain.formats.limits import ImportOptions, Limits
from chats.domain.formats.problems import PROBLEM_CODES, ImportReport, Place, Problem
from chats.domain.formats.register import FORMATS, Format
from chats.domain.formats.sources import Detection, Located, Source, detect, open_source

__all__ = [
    "FORMATS",
    "PROBLEM_CODES",
    "Detection",
    "Format",
    "ImportOptions",
    "ImportReport",
    "Limits",
    "Located",
    "Place",
    "Problem",
    "Source",
    "content_hash",
    "detect",
    "identity_key",
    "open_source",
    "state_hash",
]
