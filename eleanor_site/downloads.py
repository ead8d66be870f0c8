"""Exports as answers: files that are streamed and end with a trailer (`exports`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from django.http import Http404, StreamingHttpResponse

from eleanor_site.exports import csv_lines, json_lines
from eleanor_site.web import Request

JSON_LINES: Final = "application/x-ndjson"
CSV: Final = "text/csv; charset=utf-8"


def download(lines: Iterator[bytes], name: str, content_type: str = JSON_LINES) -> StreamingHttpResponse:
    """The lines as a file of that name."""
    answer = StreamingHttpResponse(lines, content_type=content_type)
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


def table(
    request: Request, name: str, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]
) -> StreamingHttpResponse:
    """The rows as CSV or JSON Lines, whichever `format` in the address names; 404 for another one."""
    form = request.GET.get("format", "csv")
    if form == "csv":
        lines = csv_lines(columns, ([row[column] for column in columns] for row in rows))
        return download(lines, f"{request.tenant.slug}-{name}.csv", CSV)
    if form == "jsonl":
        return download(json_lines(rows), f"{request.tenant.slug}-{name}.jsonl")
    raise Http404
