"""What a person reads about an import: problems and everything that wasn't taken as it stood."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

PROBLEMS: Mapping[str, str | Promise] = {
    "empty_file": _("There is nothing in the file"),
    "encoding": _("Bytes that aren't in the file's encoding"),
    "not_json": _("Neither JSON, JSON Lines, Parquet, an archive nor a table of instructions"),
    "invalid_json": _("JSON with an error"),
    "truncated_json": _("JSON that ends too early"),
    "unknown_format": _("No known format fits"),
    "limit": _("A limit was passed; the file was left there"),
    "damaged_archive": _("A damaged archive"),
    "unsafe_member": _("An archive member with an unsafe name, or no regular file"),
    "encrypted_member": _("An archive member that needs a password"),
    "nested_archive": _("An archive inside an archive"),
    "unreadable": _("A record that doesn't have the shape of its format"),
    "wrong_type": _("A value of the wrong type"),
    "wrong_value": _("A value that isn't allowed there"),
    "refused_key": _("A key that the exchange form doesn't know"),
    "no_messages": _("A record without messages"),
    "failed_run": _("A run that failed and has no messages"),
    "parent_missing": _("A chain of answers whose earlier part isn't in the file"),
    "unsupported_version": _("A version that isn't known"),
    "missing_library": _("Reading this needs a library that isn't installed"),
}

SKIPPED: Mapping[str, str | Promise] = {
    "no_record": _("Entries that are no records"),
    "no_chat_request": _("Requests that are about no answer"),
    "no_text": _("Messages without anything that can be read"),
    "text_before_first_message": _("Text before the first message"),
    "hidden": _("Messages hidden from the conversation"),
    "empty_system": _("Empty system messages"),
    "demonstration": _("Demonstrations before the run"),
    "control_mark": _("Control marks of a simulation"),
    "customer_call": _("Tool calls of the simulated customer"),
    "customer_result": _("Tool results of the simulated customer"),
    "exit_message": _("Messages that only end a run"),
    "compaction": _("Places where the history was replaced by a summary"),
    "record:meta": _("Records that only serve the program"),
}

COUNTS: Mapping[str, str | Promise] = {
    "results_without_call": _("Tool results without a call"),
    "calls_without_result": _("Tool calls without a result"),
    "arguments_not_json": _("Call arguments that aren't a JSON object"),
    "replaced_characters": _("Characters that can't be stored and were replaced"),
    "numbers_read_as_null": _("Numbers that JSON doesn't have, read as null"),
    "duplicate_keys": _("Repeated keys, of which the last one counts"),
    "other_branches": _("Other branches that weren't taken"),
    "members_passed_over": _("Archive members that are no conversations"),
    "ids_used_twice": _("Chats whose id is used twice; they are told apart by their messages"),
}


def sections_of(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The report as sections of rows (label, count, places); sections without rows are left out."""
    left_out = [_row(PROBLEMS.get(code, code), noted) for code, noted in report.get("problems", {}).items()]
    skipped = [_row(_skipped(code), noted) for code, noted in report.get("skipped", {}).items()]
    as_found = [_row(label, report.get(name)) for name, label in COUNTS.items()]
    unknown = [_row(name, count) for name, count in report.get("not_understood", {}).items()]
    roles = [_row(name, count) for name, count in report.get("unknown_roles", {}).items()]
    nudges = [_row(code, count) for code, count in report.get("nudges", {}).items()]
    sections = [
        {"title": _("Left out"), "rows": left_out},
        {"title": _("Skipped on purpose"), "rows": skipped},
        {"title": _("Worth knowing"), "rows": [row for row in as_found if row["count"]]},
        {"title": _("Recorded nudges of other runtimes"), "rows": nudges},
        {"title": _("Roles that were kept as they are"), "rows": roles},
        {"title": _("Fields that weren't understood"), "rows": unknown},
    ]
    return [section for section in sections if section["rows"]]


def _skipped(code: str) -> str | Promise:
    """Why records were left out on purpose: a reason of its own, or the type of a record that isn't part of a chat."""
    _kind, colon, name = code.partition(":")
    if code in SKIPPED or not colon:
        return SKIPPED.get(code, code)
    return gettext("Records of type %(type)s") % {"type": name}


LIMITS: Mapping[str, str | Promise] = {
    "upload_bytes": _("bytes in all, unpacked"),
    "ratio": _("times as large unpacked as packed"),
    "members": _("members of an archive"),
    "message_bytes": _("bytes in a message"),
    "messages": _("messages in a chat"),
    "depth": _("levels of nesting"),
    "digits": _("digits of a number"),
    "record_bytes": _("bytes in one record"),
    "gzip_levels": _("layers of compression"),
}


def place_text(place: Mapping[str, Any]) -> str:
    """Where it stands in the file, and what was found there: "line 3: levels of nesting, at most 64"."""
    where = [place["member"]] if place.get("member") else []
    if place.get("line") is not None:
        where.append(gettext("line %(n)s") % {"n": place["line"]})
    if place.get("index") is not None:
        where.append(gettext("record %(n)s") % {"n": place["index"]})
    if place.get("path"):
        where.append(place["path"])
    found = _found(place.get("details") or {})
    start = ", ".join(where) or gettext("the file")
    return f"{start}: {found}" if found else start


def _found(details: Mapping[str, str]) -> str:
    if "limit" in details:
        what = LIMITS.get(details["limit"], details["limit"])
        return gettext("%(what)s: at most %(n)s") % {"what": what, "n": details.get("allowed", "?")}
    words = [value for key, value in details.items() if key in ("reason", "key", "error", "name", "keys", "library")]
    if "expected" in details:
        words.append(gettext("expected %(expected)s") % {"expected": details["expected"]})
    if details.get("offset"):
        words.append(gettext("at character %(n)s") % {"n": details["offset"]})
    return ", ".join(word for word in words if word)


def _row(label: Any, noted: Any) -> dict[str, Any]:
    if isinstance(noted, Mapping):
        return {"label": label, "count": noted["count"], "places": [place_text(place) for place in noted["places"]]}
    return {"label": label, "count": noted or 0, "places": []}
