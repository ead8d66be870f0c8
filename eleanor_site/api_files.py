"""Files that endpoints answer with: written while they are sent, with a last line that proves them whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from django.http import StreamingHttpResponse

from eleanor_site.downloads import CSV, JSON_LINES, download

__all__ = ["JSON_LINES", "TABLES", "FileForm", "file_answer"]

FileForm = Literal["csv", "jsonl"]
TABLES: Final = ("text/csv", JSON_LINES)


def file_answer(lines: Iterator[bytes], form: FileForm, name: str) -> StreamingHttpResponse:
    """The lines as a file. The last one says how many rows there are, and the digest of all bytes before it."""
    return download(lines, f"{name}.{form}", CSV if form == "csv" else JSON_LINES)
