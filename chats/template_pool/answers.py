"""Requests and answers as they go through the pipes of a worker, and as values."""

from __future__ import annotations

import json
from typing import Any

from chats.domain.chat_templates import Origin, Rendered, TemplateFailure, TemplateVariable, plain
from chats.domain.chat_templates.lint import Finding, LintReport, Sample

Answer = dict[str, Any]


class WorkerLost(Exception):
    """The worker gave no answer. `limit` says why: "time", or "stopped" when it died by itself."""

    def __init__(self, limit: str) -> None:
        super().__init__(limit)
        self.limit = limit


def decoded(answer: bytes) -> Answer:
    """A worker may have been taken over by its template, so its answers are read like any stranger's."""
    try:
        content, _ = _FROM_JSON.raw_decode(answer.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        raise WorkerLost("stopped") from None
    # A text alone is what most renders have to tell.
    if isinstance(content, str):
        return {"text": content}
    if not isinstance(content, dict):
        raise WorkerLost("stopped")
    return content


UNREADABLE = (KeyError, TypeError, ValueError, AttributeError)
# Lone surrogates pass as they are: escaped, two of them side by side would come back as one character.
_TO_JSON = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":"), default=plain)
_FROM_JSON = json.JSONDecoder()


def encoded(content: dict[str, Any]) -> bytes:
    return _TO_JSON.encode(content).encode("utf-8", "surrogatepass")


def refused(limit: str, **args: int) -> TemplateFailure:
    return TemplateFailure("limit", "LimitExceeded", "", None, limit, args)


def failure_in(told: Answer) -> TemplateFailure:
    line = told["line"]
    return TemplateFailure(
        told["kind"],
        str(told["error_class"]),
        str(told["message"]),
        None if line is None else int(line),
        told["limit"],
        dict(told["args"]),
    )


def rendered_in(answer: Answer) -> Rendered:
    text = answer["text"]
    if not isinstance(text, str):
        raise TypeError
    spans = tuple((start, end) for start, end in answer.get("spans", ()))
    return Rendered(text, spans, tuple(Origin(*origin) for origin in answer.get("provenance", ())))


def variables_in(answer: Answer) -> tuple[TemplateVariable, ...]:
    return tuple(
        TemplateVariable(v["name"], v["line"], tuple(v["choices"]), v["looks_boolean"]) for v in answer["variables"]
    )


def report_in(answer: Answer) -> LintReport:
    return LintReport(answer["facts"], tuple(_finding(told) for told in answer["findings"]))


def _finding(told: Answer) -> Finding:
    samples = [None if s is None else Sample(s["about"], s["text"], s["failed"]) for s in (told["left"], told["right"])]
    return Finding(told["code"], told["check"], told["severity"], told["args"], *samples)
