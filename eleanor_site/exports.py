"""Exports that prove to be whole: the last line says how many rows there are and the SHA-256 of all bytes before it."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, Literal

Flaw = Literal["no_trailer", "rows_differ", "digest_differs", "after_trailer"]

TRAILER_KEY: Final = "eleanor_export"
_CSV_TRAILER: Final = re.compile(rb"^# eleanor_export rows=(\d+) sha256=([0-9a-f]{64})\r?\n?$")
# A cell that a spreadsheet would run as a formula is set behind an apostrophe.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found in a file: its rows, the digest of their bytes, and what is wrong (None: nothing)."""

    rows: int
    sha256: str
    flaw: Flaw | None


def json_lines(rows: Iterable[Mapping[str, Any] | str]) -> Iterator[bytes]:
    """Each row as one line of JSON (a text is taken as JSON already), then the trailer. Streams."""
    digest = hashlib.sha256()
    count = 0
    for row in rows:
        text = row if isinstance(row, str) else json.dumps(row, ensure_ascii=False, default=str)
        line = text.encode("utf-8", "surrogatepass") + b"\n"
        digest.update(line)
        count += 1
        yield line
    yield json.dumps({TRAILER_KEY: {"rows": count, "sha256": digest.hexdigest()}}).encode() + b"\n"


def csv_lines(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[bytes]:
    """A heading, each row as CSV, then the trailer as a comment line. The heading isn't counted. Streams."""
    digest = hashlib.sha256()
    count = -1
    for row in _with_header(header, rows):
        buffer = io.StringIO()
        csv.writer(buffer).writerow([_cell(value) for value in row])
        line = buffer.getvalue().encode("utf-8", "surrogatepass")
        digest.update(line)
        count += 1
        yield line
    yield f"# {TRAILER_KEY} rows={count} sha256={digest.hexdigest()}\r\n".encode()


def check(stream: BinaryIO) -> Checked:
    """Read an export, whichever of the two, and compare it with its trailer. Memory doesn't grow with the file."""
    digest = hashlib.sha256()
    count = 0
    trailer: tuple[int, str, bool] | None = None
    for line in stream:
        if trailer is not None:
            return Checked(count, digest.hexdigest(), "after_trailer")
        trailer = _trailer(line)
        if trailer is None:
            digest.update(line)
            count += 1
    if trailer is None:
        return Checked(count, digest.hexdigest(), "no_trailer")
    rows, sha256, is_csv = trailer
    if sha256 != digest.hexdigest():
        return Checked(count, digest.hexdigest(), "digest_differs")
    # A cell of CSV may hold line ends, so only the digest can tell there.
    if not is_csv and rows != count:
        return Checked(count, digest.hexdigest(), "rows_differ")
    return Checked(rows, sha256, None)


def _trailer(line: bytes) -> tuple[int, str, bool] | None:
    found = _CSV_TRAILER.match(line)
    if found:
        return int(found[1]), found[2].decode(), True
    if not line.startswith(b'{"' + TRAILER_KEY.encode()):
        return None
    try:
        said = json.loads(line)[TRAILER_KEY]
        return int(said["rows"]), str(said["sha256"]), False
    except (ValueError, KeyError, TypeError):
        return None


def _with_header(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[Sequence[object]]:
    yield header
    yield from rows


def _cell(value: object) -> object:
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return "" if value is None else value
